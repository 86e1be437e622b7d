//! A head with workers, from descriptions: who has which experts, and one drive with them, without
//! them, and split by layers. Puts together; placing is `motley_plan::hosts`.

use std::cmp::Reverse;

use motley_cost::exchange::request_bytes;
use motley_cost::{ComputeCost, Efficiency, HostLink};
use motley_machine::{DeviceKind, Machine};
use motley_plan::Decision;
use motley_plan::decide::facts::described_memory;
use motley_plan::hosts::{Block, Division, Host, Uses, all_experts, rows_there, worker_speed};
use motley_plan::worker::worker_slots;
use motley_sched::cache::PolicyChoice;
use motley_sched::regime::{self, Regime, RegimeError};
use motley_sched::remote::ExpertSet;
use motley_sched::{Memories, Share};
use motley_trace::{ExpertGrid, ExpertKey, Trace, TraceHeader};

use super::split::{SplitHost, SplitOutcome, layer_split};
use super::unit::HostRoom;
use super::{HostUnit, Hosts};
use crate::drive::DriveError;
use crate::outcome::Outcome;
use crate::setup::{Choices, Setup, SetupError, decision, dense_cost};
use crate::shape::ModelShape;

/// What is to be simulated.
#[derive(Debug, Clone, Copy)]
pub struct HostChoices<'a> {
    /// The head, its model and its rules.
    pub head: Choices<'a>,
    /// Every worker is one of these; only its CPU, RAM and disk are used.
    pub worker: &'a Machine,
    pub workers: u16,
    pub link: HostLink,
    /// How often each expert was used before, dense by grid index.
    pub uses: &'a [u64],
    /// Whether room that is left over has copies.
    pub replicas: bool,
    /// Tokens of a pass.
    pub streams: u32,
}

/// A head and its workers put together.
#[derive(Debug, Clone)]
pub struct HostSetup {
    /// The head as it runs alone.
    pub head: Setup,
    /// What each worker has.
    pub placed: Vec<ExpertSet>,
    /// Experts a worker has room for.
    pub worker_slots: u32,
    link: HostLink,
    model: ModelShape,
    decision: Decision,
    /// All experts, the most used first.
    ranked: Vec<ExpertKey>,
    worker: WorkerCosts,
    head_cpu: WorkerCosts,
    head_machine: Machine,
    worker_machine: Machine,
}

/// One expert on a host's CPU, and from its disk.
#[derive(Debug, Clone, Copy)]
struct WorkerCosts {
    unit: ComputeCost,
    read_us: f64,
}

impl HostSetup {
    /// Places the experts and derives every cost.
    pub fn new(choices: &HostChoices<'_>) -> Result<Self, SetupError> {
        let Choices { machine, model, .. } = choices.head;
        let decision = decision(machine, model)?;
        let head = Setup::of(&choices.head, &decision)?;
        let grid = ExpertGrid { layers: model.layers, experts: model.experts };
        let mut ranked: Vec<ExpertKey> = all_experts(grid).collect();
        ranked.sort_by_key(|key| Reverse(choices.uses[grid.index(*key)]));
        let all = grid.len() as u32;
        let memory = described_memory(choices.worker);
        let worker_slots = worker_slots(&model.needs(), all, None, memory)?;
        let link = HostLink {
            round_trip_us: choices.link.round_trip_us + to_gpu_us(machine, &decision),
            ..choices.link
        };
        let mut setup = Self {
            worker: worker_costs(choices.worker, model)?,
            head_cpu: worker_costs(machine, model)?,
            placed: Vec::new(),
            head_machine: machine.clone(),
            worker_machine: choices.worker.clone(),
            model: model.clone(),
            head,
            worker_slots,
            link,
            decision,
            ranked,
        };
        setup.placed = setup.place(choices, grid);
        Ok(setup)
    }

    /// Experts the head's memories hold.
    pub fn head_slots(&self) -> u32 {
        let grid = ExpertGrid { layers: self.model.layers, experts: self.model.experts };
        self.head_hosts(grid).iter().map(|host| host.slots).sum::<u32>().min(grid.len() as u32)
    }

    /// The head with its workers through `trace`.
    pub fn run(&self, trace: &Trace) -> Result<Outcome, DriveError> {
        let set_of = |set: &ExpertSet| (set.clone(), self.worker_unit(&trace.header, set));
        let workers = self.placed.iter().map(set_of).collect();
        let hosts = Hosts::new(self.link, self.model.expert.hidden, workers);
        let elsewhere = |key: &ExpertKey| {
            self.placed.iter().any(|set| set.contains(key.layer.into(), key.expert))
        };
        let own: Vec<ExpertKey> =
            self.ranked.iter().copied().filter(|key| !elsewhere(key)).collect();
        self.head.run_from(trace, &self.residents(&own), Some(hosts), None)
    }

    /// The head alone.
    pub fn alone(&self, trace: &Trace) -> Result<Outcome, DriveError> {
        self.head.run_from(trace, &self.residents(&self.ranked), None, None)
    }

    /// Whole layers on each host: the head's GPU as far as they fit, the rest evenly over RAM of all
    /// hosts. What fits nowhere the head reads from its disk as a mapping does.
    pub fn split(&self, trace: &Trace) -> SplitOutcome {
        layer_split(
            trace,
            &mut self.split_hosts(&trace.header),
            &self.link,
            self.model.expert.hidden,
        )
    }

    /// Places experts by use on the head's GPU and CPU and on the workers, which it returns.
    fn place(&self, choices: &HostChoices<'_>, grid: ExpertGrid) -> Vec<ExpertSet> {
        let head = self.head_hosts(grid);
        let on_gpu: u32 = head[..head.len() - 1].iter().map(|host| host.slots).sum();
        let speed = self.speed_of_workers(choices, self.used_share(choices, grid, on_gpu));
        let worker = Host { slots: self.worker_slots, speed };
        let workers = vec![worker; usize::from(choices.workers)];
        let (uses, replicas) = (Uses::Counted(choices.uses), choices.replicas);
        Division { grid, head: &head, workers: &workers, uses, replicas }.kept()
    }

    /// The head's GPUs as one, where they have experts, and its CPU with the link to them.
    fn head_hosts(&self, grid: ExpertGrid) -> Vec<Host> {
        let all = grid.len() as u32;
        let scheduler = &self.head.scheduler;
        let from_disk = scheduler.memories().ram;
        let gpus = &scheduler.tiers[usize::from(from_disk)..];
        let gpu_slots: u32 = gpus.iter().map(|tier| tier.capacity.total()).sum();
        let ram = match from_disk {
            true => scheduler.tiers[0].capacity.total().min(all),
            false => all,
        };
        let cpu = Host { slots: ram, speed: 1.0 };
        if gpu_slots == 0 {
            return vec![cpu];
        }
        let gpu_us =
            scheduler.costs.tier_time(u16::from(from_disk), 1, Share::WHOLE).as_us().max(1.0);
        vec![Host { slots: gpu_slots.min(all), speed: self.head_us(1) / gpu_us }, cpu]
    }

    /// One expert with `load` rows that no GPU has: the CPU computes it, or it is copied to a GPU, as
    /// both are busy all the time (H1).
    fn head_us(&self, load: u32) -> f64 {
        let scheduler = &self.head.scheduler;
        let (costs, from_disk) = (&scheduler.costs, scheduler.memories().ram);
        let cpu_us = match from_disk {
            true => costs.tier_time(0, load, Share::WHOLE).as_us(),
            false => costs.home_time(load, Share::WHOLE).as_us(),
        };
        let first_gpu = usize::from(from_disk);
        if scheduler.tiers.len() <= first_gpu {
            return cpu_us;
        }
        let copy_us = costs.load_time(first_gpu as u16, Share::WHOLE).as_us();
        cpu_us * copy_us / (cpu_us + copy_us)
    }

    /// Part of all uses that the first `slots` of the most used have.
    fn used_share(&self, choices: &HostChoices<'_>, grid: ExpertGrid, slots: u32) -> f64 {
        let uses = |key: &ExpertKey| choices.uses[grid.index(*key)];
        let first: u64 = self.ranked.iter().take(slots as usize).map(uses).sum();
        first as f64 / choices.uses.iter().sum::<u64>().max(1) as f64
    }

    /// As placing sees them, when `on_gpu` of a block are the GPU's.
    fn speed_of_workers(&self, choices: &HostChoices<'_>, on_gpu: f64) -> f64 {
        let (experts, k) = (f64::from(self.model.experts), f64::from(self.model.k));
        let streams = f64::from(choices.streams);
        let distinct = experts * (1.0 - (1.0 - k / experts).powf(streams));
        let load = (streams * k / distinct).round() as u32;
        let width = u64::from(self.model.expert.hidden);
        let workers = u32::from(choices.workers);
        let rows = rows_there(choices.streams, self.model.k.into(), workers).round() as u64;
        worker_speed(&Block {
            experts: distinct * (1.0 - on_gpu),
            head_us: self.head_us(load),
            worker_us: self.worker.unit.us(load),
            answer_us: self.link.bytes_us(u64::from(load) * self.model.expert.row_bytes(4)),
            fixed_us: self.link.round_trip_us + self.link.bytes_us(request_bytes(0, rows, width)),
            workers,
        })
    }

    fn worker_unit(&self, header: &TraceHeader, set: &ExpertSet) -> HostUnit {
        let unit = HostUnit::new(header, self.worker.unit);
        if set.count() <= self.worker_slots {
            return unit;
        }
        let has = |key: &&ExpertKey| set.contains(key.layer.into(), key.expert);
        let own: Vec<ExpertKey> = self.ranked.iter().filter(has).copied().collect();
        let policy = self.head.scheduler.rules.ram.policy;
        let (slots, read_us) = (self.worker_slots, self.worker.read_us);
        unit.with_disk(header, &own, HostRoom { slots, policy, read_us })
    }

    /// What each tier of the head begins with of `own`: GPUs with the most used, RAM with the next.
    fn residents(&self, own: &[ExpertKey]) -> Vec<Vec<ExpertKey>> {
        let scheduler = &self.head.scheduler;
        let Memories { ram, .. } = scheduler.memories();
        let mut left = own.iter().copied();
        let mut fill = |tier: usize| -> Vec<ExpertKey> {
            left.by_ref().take(scheduler.tiers[tier].capacity.total() as usize).collect()
        };
        let gpus: Vec<_> = (usize::from(ram)..scheduler.tiers.len()).map(&mut fill).collect();
        let of_ram = ram.then(|| fill(0));
        of_ram.into_iter().chain(gpus).collect()
    }

    fn split_hosts(&self, header: &TraceHeader) -> Vec<SplitHost> {
        let (model, holdings) = (&self.model, &self.decision.placement.holdings);
        let experts_bytes = f64::from(model.experts) * model.expert.bytes as f64;
        let layer_bytes = model.dense_layer.bytes + experts_bytes;
        let held = |number: usize| holdings[number].dense_bytes + holdings[number].expert_bytes;
        let ram = holdings.len() - 1;
        let on_gpus: u64 = (0..ram).map(held).sum();
        let fits = |bytes: u64| (bytes as f64 / layer_bytes) as u16;
        let gpu = self.head_machine.first(DeviceKind::Gpu).filter(|_| ram > 0);
        let on_gpu = gpu.map_or(0, |_| fits(on_gpus).min(model.layers));
        let cpu_rooms: Vec<u16> = std::iter::once(fits(held(ram)))
            .chain(
                self.placed.iter().map(|_| fits(u64::from(self.worker_slots) * model.expert.bytes)),
            )
            .collect();
        let mut counts = divided(model.layers - on_gpu, &cpu_rooms);
        let over = model.layers - on_gpu - counts.iter().sum::<u16>();
        counts[0] += over;
        let mut hosts = Vec::new();
        if let Some(gpu) = gpu {
            let cost = ComputeCost::derive(gpu, &model.expert, Efficiency::DEFAULT);
            let dense = dense_cost(gpu, model);
            let unit = HostUnit::new(header, cost);
            hosts.push(SplitHost { layers: on_gpu, dense, unit, is_remote: false });
        }
        for (number, layers) in counts.into_iter().enumerate() {
            let machine = if number == 0 { &self.head_machine } else { &self.worker_machine };
            let Some(cpu) = machine.first(DeviceKind::Cpu) else { continue };
            let dense = dense_cost(cpu, model);
            let costs = if number == 0 { self.head_cpu } else { self.worker };
            let mut unit = HostUnit::new(header, costs.unit);
            if number == 0 && over > 0 {
                let slots = (held(ram) / model.expert.bytes) as u32;
                let first = on_gpu..on_gpu + layers;
                let own: Vec<ExpertKey> =
                    self.ranked.iter().copied().filter(|key| first.contains(&key.layer)).collect();
                let read_us = self.head_cpu.read_us;
                let room = HostRoom { slots, policy: PolicyChoice::Lru, read_us };
                unit = unit.with_disk(header, &own, room);
            }
            hosts.push(SplitHost { layers, dense, unit, is_remote: number > 0 });
        }
        hosts
    }
}

/// Layers of each host as they have room, at most so many.
fn divided(layers: u16, rooms: &[u16]) -> Vec<u16> {
    let mut counts = vec![0; rooms.len()];
    for _ in 0..layers {
        let fullness = |host: usize| f64::from(counts[host] + 1) / f64::from(rooms[host]);
        let open = (0..rooms.len()).filter(|&host| counts[host] < rooms[host]);
        let Some(host) = open.min_by(|&a, &b| fullness(a).total_cmp(&fullness(b))) else { break };
        counts[host] += 1;
    }
    counts
}

/// Rows from the GPU that has the dense weights, and back to it.
fn to_gpu_us(machine: &Machine, decision: &Decision) -> f64 {
    let [cpu, gpu] = [DeviceKind::Cpu, DeviceKind::Gpu].map(|kind| machine.first(kind));
    let link = cpu.zip(gpu).and_then(|(cpu, gpu)| machine.link(&cpu.name, &gpu.name));
    link.filter(|_| decision.placement.dense_on_gpu).map_or(0.0, |link| 2.0 * link.latency_us)
}

fn worker_costs(machine: &Machine, model: &ModelShape) -> Result<WorkerCosts, RegimeError> {
    let costs = regime::costs(Regime::BeyondRam, machine, &model.expert, Efficiency::DEFAULT)?;
    let read_us = costs.load_time(0, Share::WHOLE).as_us();
    Ok(WorkerCosts { unit: costs.tiers[0].unit, read_us })
}
