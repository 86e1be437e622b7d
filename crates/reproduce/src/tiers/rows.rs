//! Every machine with every model under every arrangement: speeds, gains, and what bounds them.

use motley_cost::Nanos;
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::{Named, SchedulerLimits};
use motley_trace::Trace;
use serde::Serialize;

use super::assumed::MACHINES;
use super::bound::{Binds, Bound, TokenWork, least_loads};
use super::models::MODELS;
use super::rooms::DenseFirst;
use super::systems::{Pair, Setting, System};
use crate::compared::routing::Stream;
use crate::compared::sums::{DriveSums, TIERS};
use crate::error::ReproduceError;
use crate::machines::Assumptions;

/// Tokens of the prompt, read in one pass.
pub const PROMPT: u32 = 512;

/// One machine with one model.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub machine: String,
    pub model: &'static str,
    /// Whether RAM is too small for its experts.
    pub beyond_ram: bool,
    /// Part of the experts today's arrangement holds outside the disk, or on GPUs.
    pub held_today: f64,
    /// The same of every memory at once.
    pub held: f64,
    /// Routed experts of decoded tokens that each finds there.
    pub hits_today: f64,
    pub hits: f64,
    /// Tokens one by one.
    pub decode: Speeds,
    /// A prompt; `None` for recorded tokens.
    pub prefill: Option<Speeds>,
    /// Busy milliseconds of a decoded token, of every memory at once and of today's.
    pub lanes: Lanes,
    pub lanes_today: Lanes,
    /// The least a decoded token can take.
    pub bound: Bound,
}

/// Speeds of one phase, tokens per second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Speeds {
    pub today: f64,
    /// llama.cpp's static split.
    pub split: f64,
    /// Pinned experts; `None` where that cannot run.
    pub pinned: Option<f64>,
    /// Every memory at once.
    pub tiers: f64,
    /// What it reads from disk early, and what it copies to GPUs early.
    pub prefetch: [&'static str; 2],
    pub dense_in_ram: bool,
}

impl Speeds {
    /// Every memory at once over today's.
    pub fn gain(&self) -> f64 {
        self.tiers / self.today
    }
}

/// Where a token's time goes, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Lanes {
    pub token_ms: f64,
    pub dense_ms: f64,
    pub disk_ms: f64,
    pub cpu_ms: f64,
    /// Copies to all GPUs, and experts on them.
    pub pcie_ms: f64,
    pub gpus_ms: f64,
}

impl Row {
    /// What is busy longest with every memory at once, and for which part of the token.
    pub fn busiest(&self) -> (Binds, f64) {
        let Lanes { token_ms, dense_ms, disk_ms, cpu_ms, pcie_ms, gpus_ms } = self.lanes;
        let lanes = [
            (Binds::Disk, disk_ms),
            (Binds::Cpu, cpu_ms),
            (Binds::Gpus, gpus_ms),
            (Binds::Pcie, pcie_ms),
            (Binds::Dense, dense_ms),
        ];
        let most = lanes.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        most.map_or((Binds::Dense, 0.0), |(lane, ms)| (lane, ms / token_ms))
    }

    /// Today's time over the bound: no schedule gains more.
    pub fn most_gain(&self) -> f64 {
        1e3 / self.decode.today / self.bound.token_ms
    }
}

/// The rows under one set of assumptions.
pub fn rows(open: Assumptions) -> Result<Vec<Row>, ReproduceError> {
    let synthetic = |model| Stream::synthetic(model, open.skew_factor);
    let streams: Vec<Stream> = MODELS.iter().map(synthetic).collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    for name in MACHINES {
        let machine = motley_machine::find(name)?;
        for (model, stream) in MODELS.iter().zip(&streams) {
            let pair = Pair { machine: &machine, model, stream, open };
            rows.push(row(&pair, Some(PROMPT))?);
        }
    }
    Ok(rows)
}

/// Decode alone, of recorded traces: each on every machine, as the models of the same grid.
pub fn recorded(traces: &[Trace], open: Assumptions) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    for name in MACHINES {
        let machine = motley_machine::find(name)?;
        for trace in traces {
            let (layers, experts) = (trace.header.layers, trace.header.experts);
            let stream = Stream::recorded(trace);
            for model in MODELS.iter().filter(|m| (m.layers, m.experts) == (layers, experts)) {
                rows.push(row(&Pair { machine: &machine, model, stream: &stream, open }, None)?);
            }
        }
    }
    Ok(rows)
}

/// One machine with one model; with a prompt of so many tokens where asked.
pub fn row(pair: &Pair<'_>, prompt: Option<u32>) -> Result<Row, ReproduceError> {
    let runs = decode(pair)?;
    let dense = DenseFirst::Gpus;
    let (rooms, beyond_ram) = (pair.rooms(dense), pair.is_beyond_ram());
    let shape = pair.model.shape();
    let all = f64::from(shape.layers) * f64::from(shape.experts);
    let part = |slots: u32| (f64::from(slots) / all).min(1.0);
    let (today, at_once) = match beyond_ram {
        true => (rooms.ram, rooms.ram + rooms.all_gpus()),
        false => (rooms.all_gpus(), rooms.all_gpus()),
    };
    Ok(Row {
        machine: pair.machine.name.clone(),
        model: pair.model.name,
        beyond_ram,
        held_today: part(today),
        held: part(at_once),
        hits_today: runs.today.hit_rate(),
        hits: runs.tiers.hit_rate(),
        prefill: prompt.map(|tokens| prefill(pair, tokens)).transpose()?,
        lanes: lanes(&runs.tiers, beyond_ram),
        lanes_today: lanes(&runs.today, beyond_ram),
        decode: runs.speeds(),
        bound: bound(pair)?,
    })
}

/// What every arrangement came to in one phase.
struct Runs {
    today: DriveSums,
    split: DriveSums,
    pinned: Option<DriveSums>,
    tiers: DriveSums,
    chosen: Setting,
}

impl Runs {
    fn speeds(&self) -> Speeds {
        Speeds {
            today: self.today.speed(),
            split: self.split.speed(),
            pinned: self.pinned.map(|pinned| pinned.speed()),
            tiers: self.tiers.speed(),
            prefetch: [self.chosen.disk.name(), self.chosen.gpus.name()],
            dense_in_ram: self.chosen.dense == DenseFirst::Ram,
        }
    }
}

/// Prefetchers that today's and ours choose from.
const PREFETCHERS: [PrefetchChoice; 4] = [
    PrefetchChoice::NextLayerRefill,
    PrefetchChoice::NextLayer,
    PrefetchChoice::Refill,
    PrefetchChoice::None,
];

/// Settings are chosen on the tokens before those measured (M6).
fn decode(pair: &Pair<'_>) -> Result<Runs, ReproduceError> {
    let run = |system, trace| -> Result<Option<DriveSums>, ReproduceError> {
        Ok(pair.run(system, trace)?.map(DriveSums::of))
    };
    let after_warm = |system| -> Result<Option<DriveSums>, ReproduceError> {
        let Some(all) = run(system, &pair.stream.decode)? else { return Ok(None) };
        Ok(run(system, &pair.stream.warm)?.map(|warm| all.less(&warm)))
    };
    let fastest = |systems: Vec<System>| -> Result<System, ReproduceError> {
        let mut best = (Nanos::NEVER, systems[0]);
        for system in systems {
            let time = run(system, &pair.stream.warm)?.map_or(Nanos::NEVER, |sums| sums.time);
            best = if time < best.0 { (time, system) } else { best };
        }
        Ok(best.1)
    };
    let today = fastest(PREFETCHERS.map(System::Today).to_vec())?;
    let tiers = fastest(choices(pair, &PREFETCHERS))?;
    Ok(Runs {
        today: after_warm(today)?.unwrap_or_default(),
        split: after_warm(System::Split)?.unwrap_or_default(),
        pinned: after_warm(System::Pinned)?,
        tiers: after_warm(tiers)?.unwrap_or_default(),
        chosen: setting_of(tiers),
    })
}

/// What ours chooses from. Dense weights are tried in RAM where GPUs are too small for them.
fn choices(pair: &Pair<'_>, gpus: &[PrefetchChoice]) -> Vec<System> {
    let beyond = pair.is_beyond_ram();
    let fits = pair.rooms(DenseFirst::Gpus).dense_on_gpus() >= 1.0;
    let dense: &[DenseFirst] = match beyond && !fits {
        true => &[DenseFirst::Gpus, DenseFirst::Ram],
        false => &[DenseFirst::Gpus],
    };
    let disk: &[PrefetchChoice] = match beyond {
        true => &[PrefetchChoice::None, PrefetchChoice::NextLayer],
        false => &[PrefetchChoice::None],
    };
    let mut all = Vec::new();
    for &dense in dense {
        for &disk in disk {
            all.extend(gpus.iter().map(|&gpus| System::Tiers(Setting { disk, gpus, dense })));
        }
    }
    all
}

fn setting_of(system: System) -> Setting {
    match system {
        System::Tiers(setting) => setting,
        _ => Setting::PLAIN,
    }
}

fn prefill(pair: &Pair<'_>, tokens: u32) -> Result<Speeds, ReproduceError> {
    let trace = pair.stream.warm_prompt(tokens);
    let run = |system| -> Result<Option<DriveSums>, ReproduceError> {
        Ok(pair.run(system, &trace)?.map(DriveSums::of))
    };
    let fastest = |systems: Vec<System>| -> Result<(System, DriveSums), ReproduceError> {
        let mut best: Option<(System, DriveSums)> = None;
        for system in systems {
            if let Some(sums) = run(system)?
                && best.is_none_or(|(_, other)| sums.time < other.time)
            {
                best = Some((system, sums));
            }
        }
        Ok(best.unwrap_or((System::Split, DriveSums::default())))
    };
    let prefetchers = [PrefetchChoice::NextLayerRefill, PrefetchChoice::None];
    let (_, today) = fastest(prefetchers.map(System::Today).to_vec())?;
    let (tiers, sums) = fastest(choices(pair, &prefetchers))?;
    let pinned = fastest(vec![System::Pinned, System::PinnedLoading])?.1;
    let runs = Runs {
        today,
        split: run(System::Split)?.unwrap_or_default(),
        pinned: (pinned.tokens > 0).then_some(pinned),
        tiers: sums,
        chosen: setting_of(tiers),
    };
    Ok(runs.speeds())
}

/// The smaller of the bounds with dense weights on GPUs and in RAM.
fn bound(pair: &Pair<'_>) -> Result<Bound, ReproduceError> {
    let (on_gpus, in_ram) =
        (bound_with(pair, DenseFirst::Gpus)?, bound_with(pair, DenseFirst::Ram)?);
    let beyond = pair.is_beyond_ram();
    Ok(if beyond && in_ram.token_ms < on_gpus.token_ms { in_ram } else { on_gpus })
}

fn bound_with(pair: &Pair<'_>, dense: DenseFirst) -> Result<Bound, ReproduceError> {
    let (rooms, shape, stream) = (pair.rooms(dense), pair.model.shape(), pair.stream);
    let costs = pair.costs(&rooms)?;
    let measured = stream.decode.visits.iter().filter(|visit| visit.pass >= stream.measured_from);
    let tokens = measured.clone().filter(|visit| visit.layer == 0).count().max(1) as f64;
    let experts: usize = measured.map(|visit| visit.experts.len()).sum();
    let loads = |slots: u32| {
        let loads = least_loads(&stream.decode, slots as usize, stream.measured_from);
        loads as f64 / tokens
    };
    let dense_cost = rooms.dense_cost(pair.machine, &shape);
    let mut work = TokenWork::new(&costs, dense_cost, shape.layers, experts as f64 / tokens);
    // Experts that pass through a GPU have buffers beside those that stay.
    let passing = rooms.gpus.len() as u32 * u32::from(SchedulerLimits::default().staging_slots);
    work.far = loads(rooms.all_gpus() + passing);
    if pair.is_beyond_ram() {
        work.reads = loads(rooms.ram + rooms.all_gpus() + passing);
    }
    Ok(work.bound())
}

fn lanes(sums: &DriveSums, beyond_ram: bool) -> Lanes {
    let first_gpu = usize::from(beyond_ram);
    let sum = |busy: &[Nanos; TIERS]| busy[first_gpu..].iter().copied().sum();
    let cpu = if beyond_ram { sums.tiers[0] } else { sums.home };
    let disk = if beyond_ram { sums.links[0] } else { Nanos::ZERO };
    Lanes {
        token_ms: sums.ms(sums.time),
        dense_ms: sums.ms(sums.dense),
        disk_ms: sums.ms(disk),
        cpu_ms: sums.ms(cpu),
        pcie_ms: sums.ms(sum(&sums.links)),
        gpus_ms: sums.ms(sum(&sums.tiers)),
    }
}
