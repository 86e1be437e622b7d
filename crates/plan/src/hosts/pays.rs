//! Whether other hosts pay: the speed to expect with workers, of this machine alone, and of whole
//! layers on each host. Arithmetic on costs (M1); the simulator drives the same through routing.
//!
//! ```text
//! workers  pass = dense + Σ_layers E[ max( gpu · i, cpu · h, trip + bytes / rate + cpu / speed · n_w ) ]
//! split    pass = Σ_hosts layers · (dense + experts) / speed + Σ_workers (trip + bytes / rate)
//! ```
//!
//! A token's experts are with each host by chance, as the hosts have them. Hosts split by layers
//! work in turn: llama.cpp computes one pass after the other.

use motley_cost::HostLink;
use motley_cost::exchange::{answer_bytes, request_bytes};
use serde::Serialize;

use super::Host;
use super::balance::{Block, rows_there, worker_speed};
use super::slowest::{Ends, mean_of_last};
use crate::calibration::Matrices;
use crate::predict::hits::{distinct_experts, hit_rate};
use crate::predict::layer::{DEFAULT_DISK, binomial};
use crate::predict::{self, Case, Prediction, Work};

/// Most experts of a block whose chances are summed; of more the mean is taken.
const EXACT_EXPERTS: f64 = 64.0;

/// Gain from which another machine is worth its while: predictions err, and it draws power.
const LEAST_GAIN: f64 = 1.1;

/// Machines that help another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Others<'a> {
    /// Experts each has room for, and its speed over the head's CPU. Each is taken to have a disk
    /// like the head's.
    pub workers: &'a [Host],
    pub link: HostLink,
    /// Conversations that decode together, one token of each in a pass.
    pub streams: u32,
}

/// A machine, and others to help it.
#[derive(Debug, Clone, Copy)]
pub struct RemoteCase<'a> {
    /// This machine as it would run alone.
    pub head: Case<'a>,
    pub others: Others<'a>,
}

/// Tokens per second of all streams, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RemoteAdvice {
    pub with_workers: f64,
    pub alone: f64,
    /// Whole layers on each host, one after the other.
    pub split: f64,
    pub advised: Advised,
}

/// The fastest of three ways; others must gain something over none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advised {
    Workers,
    Alone,
    LayerSplit,
}

/// Predicts all three.
pub fn remote_pays(case: &RemoteCase<'_>) -> RemoteAdvice {
    let alone = predict::together(&case.head, case.others.streams);
    let layer = Layer::of(case);
    let speed = |pass_s: f64| f64::from(case.others.streams) / pass_s.max(f64::MIN_POSITIVE);
    let with_workers = speed(with_workers_s(case, &layer, &alone));
    let split = speed(split_s(case, &layer, &alone));
    let alone = alone.tokens_per_s;
    let advised = if with_workers.max(split) < LEAST_GAIN * alone {
        Advised::Alone
    } else if with_workers >= split {
        Advised::Workers
    } else {
        Advised::LayerSplit
    };
    RemoteAdvice { with_workers, alone, split, advised }
}

/// The experts of one layer in one pass.
struct Layer {
    /// Different ones.
    distinct: f64,
    /// Rows of each, on average.
    load: f64,
    /// One on the head's CPU, on its GPU, and from a disk.
    cpu_us: f64,
    gpu_us: f64,
    disk_us: f64,
}

impl Layer {
    fn of(case: &RemoteCase<'_>) -> Self {
        let (head, demand) = (&case.head, case.head.demand);
        let distinct = match case.others.streams {
            1 => f64::from(demand.used),
            streams => distinct_experts(demand, head.profile, streams),
        };
        let load = f64::from(case.others.streams) * f64::from(demand.used) / distinct.max(1.0);
        let matrices = demand.expert_matrices();
        let cpu_us = head.calibration.cpu.us(&matrices, load);
        let disk = head.calibration.disk.unwrap_or(DEFAULT_DISK).cost();
        Self {
            distinct,
            load,
            cpu_us,
            gpu_us: head.calibration.gpu.as_ref().map_or(cpu_us, |gpu| gpu.us(&matrices, load)),
            disk_us: disk.us(demand.expert_bytes as u64),
        }
    }
}

fn with_workers_s(case: &RemoteCase<'_>, layer: &Layer, alone: &Prediction) -> f64 {
    let (demand, placement) = (case.head.demand, case.head.placement);
    let all = demand.all_experts().max(1.0);
    let hit = |slots: f64| hit_rate(demand, case.head.profile, (slots / all).min(1.0));
    let gpu_slots = f64::from(placement.gpu_slots());
    let on_gpu = hit(gpu_slots);
    let rooms: Vec<f64> = std::iter::once(placement.ram_slots())
        .chain(case.others.workers.iter().map(|worker| worker.slots))
        .map(f64::from)
        .collect();
    // What memories do not hold each host reads from its disk.
    let missed = 1.0 - hit(gpu_slots + rooms.iter().sum::<f64>());
    let caps = caps(&rooms, all - gpu_slots);
    let shares = shares(&speeds(case, layer, on_gpu), &caps);
    let disk_us = missed * layer.disk_us;
    let wire_us = wire_us(case, layer, (1.0 - on_gpu) * shares[1..].iter().sum::<f64>());
    let on_cpu = |(host, share): (usize, &f64)| {
        let worker = host.checked_sub(1).map(|worker| &case.others.workers[worker]);
        let one_us = layer.cpu_us / worker.map_or(1.0, |worker| worker.speed);
        let trip_us = if worker.is_some() { wire_us } else { 0.0 };
        ends(layer.distinct, (1.0 - on_gpu) * share, trip_us, one_us + disk_us)
    };
    let mut hosts: Vec<Ends> = shares.iter().enumerate().map(on_cpu).collect();
    hosts.push(ends(layer.distinct, on_gpu, 0.0, layer.gpu_us));
    let others: f64 = rest(alone, &[Work::Experts, Work::DiskWait]);
    others + f64::from(demand.expert_layers) * mean_of_last(&hosts) / 1e6
}

/// Most each host can have of `experts`; where rooms are too small, in proportion to them.
fn caps(rooms: &[f64], experts: f64) -> Vec<f64> {
    let whole = experts.min(rooms.iter().sum()).max(f64::MIN_POSITIVE);
    rooms.iter().map(|room| room / whole).collect()
}

/// Of the head's CPU and of each worker, as placing sees them.
fn speeds(case: &RemoteCase<'_>, layer: &Layer, on_gpu: f64) -> Vec<f64> {
    let width = case.head.demand.hidden;
    let answer_bytes = (layer.load * width as f64 * size_of::<f32>() as f64) as u64;
    let workers = case.others.workers.len() as u32;
    let rows = rows_there(case.others.streams, case.head.demand.used, workers).round() as u64;
    let beside = worker_speed(&Block {
        experts: (1.0 - on_gpu) * layer.distinct,
        head_us: layer.cpu_us,
        worker_us: layer.cpu_us,
        answer_us: case.others.link.bytes_us(answer_bytes),
        fixed_us: case.others.link.round_trip_us
            + case.others.link.bytes_us(request_bytes(0, rows, width)),
        workers,
    });
    let workers = case.others.workers.iter().map(|worker| beside * worker.speed);
    std::iter::once(1.0).chain(workers).collect()
}

/// The cable in one block, when workers have `share` of its experts.
fn wire_us(case: &RemoteCase<'_>, layer: &Layer, share: f64) -> f64 {
    let (demand, width) = (case.head.demand, case.head.demand.hidden);
    let pairs = (share * layer.distinct * layer.load).round() as u64;
    let rows = rows_there(case.others.streams, demand.used, case.others.workers.len() as u32);
    let rows = (rows.round() as u64).min(pairs);
    let bytes = request_bytes(pairs, rows, width) + answer_bytes(pairs, width);
    case.others.link.round_trip_us + case.others.link.bytes_us(bytes)
}

/// When a host is done that has each of `experts` with a chance of `share`.
fn ends(experts: f64, share: f64, trip_us: f64, one_us: f64) -> Ends {
    let at = |count: f64| if count > 0.0 { trip_us + count * one_us } else { 0.0 };
    if experts > EXACT_EXPERTS || experts.fract() != 0.0 {
        return vec![(at(experts * share), 1.0)];
    }
    let counts = binomial(experts as u32, share).into_iter();
    counts.map(|(count, chance)| (at(f64::from(count)), chance)).collect()
}

/// Parts of a whole as `speeds` have them, none above its cap; what that leaves goes to the others.
fn shares(speeds: &[f64], caps: &[f64]) -> Vec<f64> {
    let mut shares = vec![0.0; speeds.len()];
    for _ in 0..speeds.len() {
        let left = 1.0 - shares.iter().sum::<f64>();
        let open = |host: &usize| shares[*host] < caps[*host];
        let with_room: Vec<usize> = (0..speeds.len()).filter(open).collect();
        let sum: f64 = with_room.iter().map(|&host| speeds[host]).sum();
        for host in with_room {
            let more = left * speeds[host] / sum;
            shares[host] = (shares[host] + more).min(caps[host]);
        }
    }
    shares
}

fn split_s(case: &RemoteCase<'_>, layer: &Layer, alone: &Prediction) -> f64 {
    let (head, demand) = (&case.head, case.head.demand);
    let layers = f64::from(demand.expert_layers);
    let expert_bytes = demand.all_experts() * demand.expert_bytes;
    let bytes = (demand.dense_bytes + expert_bytes).max(1.0);
    let dense = Matrices {
        bytes: demand.dense_bytes,
        weights: demand.dense_weights,
        ty: demand.dense_type,
    };
    let streams = f64::from(case.others.streams);
    let gpu = head.calibration.gpu.as_ref().filter(|_| head.placement.has_gpu_memory());
    let holdings = &head.placement.holdings;
    let room = |number: usize| holdings.get(number).map_or(0.0, |at| at.room_bytes as f64);
    let ram = holdings.len().saturating_sub(1);
    let on_gpu = ((0..ram).map(room).sum::<f64>() / bytes).min(1.0);
    let cpu_us = head.calibration.cpu.us(&dense, streams) + layers * layer.distinct * layer.cpu_us;
    let gpu_us =
        gpu.map_or(0.0, |gpu| gpu.us(&dense, streams)) + layers * layer.distinct * layer.gpu_us;
    let of_worker = |worker: &Host| f64::from(worker.slots) * demand.expert_bytes;
    let mut left = 1.0 - on_gpu;
    let mut us = on_gpu * gpu_us;
    let rooms: f64 = room(ram) + case.others.workers.iter().map(of_worker).sum::<f64>();
    let scale = (left * bytes / rooms.max(1.0)).min(1.0);
    let row_bytes = 2 * u64::from(case.others.streams) * demand.hidden * size_of::<f32>() as u64;
    for worker in case.others.workers {
        let part = scale * of_worker(worker) / bytes;
        left -= part;
        us += part * cpu_us / worker.speed;
        us += case.others.link.round_trip_us + case.others.link.bytes_us(row_bytes);
    }
    // The head has what no worker has room for, and reads what it has no room for.
    let held = (room(ram) / (left * bytes).max(1.0)).min(1.0);
    let missed = 1.0 - hit_rate(demand, head.profile, held);
    us += left * (cpu_us + layers * layer.distinct * missed * layer.disk_us);
    rest(alone, &[Work::Experts, Work::DiskWait, Work::Dense]) + us / 1e6
}

/// What a pass takes beside some of its work.
fn rest(pass: &Prediction, without: &[Work]) -> f64 {
    let others = pass.terms.iter().filter(|term| !without.contains(&term.what));
    others.map(|term| term.seconds).sum()
}
