//! Every machine with every model under every system: speeds, gains, and what bounds them.

use motley_cost::Nanos;
use motley_sched::Named;
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::regime::Regime;
use motley_trace::Trace;
use serde::Serialize;

use super::assumed::{Assumptions, MACHINES, PROMPTS};
use super::lanes::{DecodeLanes, Lanes};
use super::models::{MODELS, Model};
use super::systems::{Pair, System};
use crate::compared::routing::Stream;
use crate::compared::sums::DriveSums;
use crate::document::Figure;
use crate::error::ReproduceError;

/// One machine with one model.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The machine.
    pub machine: String,
    /// The model.
    pub model: &'static str,
    /// Where its experts are.
    pub regime: Regime,
    /// Part of the experts the fast tier holds: the GPU's memory, or RAM before a disk.
    pub held: f64,
    /// Prompts, in the order of [`PROMPTS`].
    pub prefill: Vec<Speeds>,
    /// Tokens one by one.
    pub decode: Speeds,
    /// Where their time goes, where experts are shared.
    pub lanes: Option<DecodeLanes>,
}

/// Speeds of one phase, tokens per second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Speeds {
    /// Tokens of a pass.
    pub tokens: u32,
    /// llama.cpp's static split.
    pub static_split: f64,
    /// Pinned experts; `None` where that cannot run. In prefill the faster of computing the
    /// others on the CPU and loading them.
    pub pinned: Option<f64>,
    /// Ours.
    pub ours: f64,
    /// Ours, moving parts of experts as well.
    pub parts: f64,
    /// Ours with all experts in the GPU's memory: what no scheduling passes.
    pub all_near: f64,
    /// What ours is bound by.
    pub bound_by: Busiest,
    /// The prefetcher ours chose.
    pub prefetch: &'static str,
    /// Routed experts ours finds in the fast tier.
    pub hit_rate: f64,
    /// Those of the pinned policy.
    pub pinned_hit_rate: Option<f64>,
}

/// What is busy most of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Busiest {
    /// Dense layers and experts on the GPU.
    Gpu,
    /// Experts on the CPU.
    Cpu,
    /// Copies to the GPU.
    Pcie,
    /// Reads.
    Disk,
}

impl Busiest {
    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gpu => "GPU",
            Self::Cpu => "CPU",
            Self::Pcie => "PCIe",
            Self::Disk => "disk",
        }
    }
}

impl Speeds {
    /// Ours over the pinned policy.
    pub fn gain(&self) -> Option<f64> {
        self.over_pinned(self.ours)
    }

    /// Another speed over the pinned policy's.
    pub fn over_pinned(&self, speed: f64) -> Option<f64> {
        self.pinned.map(|pinned| speed / pinned)
    }
}

impl Row {
    /// Whether CPU and GPU share the experts of a layer.
    pub fn is_shared(&self) -> bool {
        self.regime == Regime::Hybrid
    }

    /// Mean gain over the prompt lengths.
    pub fn prefill_gain(&self) -> Option<f64> {
        let gains: Vec<f64> = self.prefill.iter().filter_map(Speeds::gain).collect();
        mean(&gains)
    }
}

/// Which machines with which models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairs {
    /// All.
    All,
    /// Where CPU and GPU share the experts of a layer.
    Shared,
}

/// The rows under one set of assumptions.
pub fn rows(open: Assumptions, pairs: Pairs) -> Result<Vec<Row>, ReproduceError> {
    let synthetic = |model| Stream::synthetic(model, open.skew_factor);
    let streams: Vec<Stream> = MODELS.iter().map(synthetic).collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    for name in MACHINES {
        let machine = motley_machine::find(name)?;
        for (model, stream) in MODELS.iter().zip(&streams) {
            let pair = Pair { machine: &machine, model, stream, open };
            if pairs == Pairs::Shared && pair.regime() != Regime::Hybrid {
                continue;
            }
            let prompts = PROMPTS.iter().map(|&tokens| prefill(&pair, tokens));
            rows.push(row(&pair, prompts.collect::<Result<_, _>>()?)?);
        }
    }
    Ok(rows)
}

/// Decode alone, of recorded traces: each on every machine, as the model of the same grid.
pub fn recorded(traces: &[Trace], open: Assumptions) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    for name in MACHINES {
        let machine = motley_machine::find(name)?;
        for trace in traces {
            let (layers, experts) = (trace.header.layers, trace.header.experts);
            let same = |model: &&Model| (model.layers, model.experts) == (layers, experts);
            let Some(model) = MODELS.iter().find(same) else { continue };
            let stream = Stream::recorded(trace);
            let pair = Pair { machine: &machine, model, stream: &stream, open };
            rows.push(row(&pair, Vec::new())?);
        }
    }
    Ok(rows)
}

/// Mean gains over the machines and models where experts are shared, beside the goals.
pub(super) fn figures_of(rows: &[Row]) -> Vec<Figure> {
    let shared = || rows.iter().filter(|row| row.is_shared());
    let decode = |of: fn(&Speeds) -> f64| -> Vec<f64> {
        shared().filter_map(|row| row.decode.over_pinned(of(&row.decode))).collect()
    };
    let prefill: Vec<f64> = shared().filter_map(Row::prefill_gain).collect();
    let bounds: Vec<f64> = shared().filter_map(|row| row.lanes.map(|l| l.bound_gain())).collect();
    let figure =
        |what, paper, gains: &[f64]| Figure { what, paper, ours: mean(gains).unwrap_or(0.0) };
    vec![
        figure("decode over pinned experts", 1.7, &decode(|speeds| speeds.ours)),
        figure("prefill over pinned experts", 1.33, &prefill),
        figure("decode, parts moved too", 1.7, &decode(|speeds| speeds.parts)),
        figure("decode, had the GPU all experts", 1.7, &decode(|speeds| speeds.all_near)),
        figure("decode, all lanes busy, all predicted", 1.7, &bounds),
    ]
}

fn row(pair: &Pair<'_>, prefill: Vec<Speeds>) -> Result<Row, ReproduceError> {
    let (decode, lanes) = decode(pair)?;
    Ok(Row {
        machine: pair.machine.name.clone(),
        model: pair.model.name,
        regime: pair.regime(),
        held: f64::from(pair.slots_per_layer()) / f64::from(pair.model.experts),
        prefill,
        decode,
        lanes,
    })
}

fn prefill(pair: &Pair<'_>, tokens: u32) -> Result<Speeds, ReproduceError> {
    let trace = pair.stream.prompt(tokens);
    if pair.regime() == Regime::OneMemory {
        return step_aside(pair, &trace, tokens);
    }
    let run = |system| -> Result<DriveSums, ReproduceError> {
        Ok(pair.run(system, &trace)?.map(DriveSums::of).unwrap_or_default())
    };
    let prefetch = PrefetchChoice::NextLayerRefill;
    let (at_home, loading) = (run(System::Pinned)?, run(System::PinnedLoading)?);
    let pinned = if at_home.time <= loading.time { at_home } else { loading };
    let all = Runs {
        tokens,
        static_split: run(System::StaticSplit)?,
        pinned,
        ours: run(System::Ours(prefetch))?,
        parts: run(System::Parts(prefetch))?,
        all_near: run(System::AllNear)?,
        prefetch,
    };
    Ok(all.speeds(pair.regime()))
}

/// Settings are chosen on the tokens before those measured (M6).
fn decode(pair: &Pair<'_>) -> Result<(Speeds, Option<DecodeLanes>), ReproduceError> {
    if pair.regime() == Regime::OneMemory {
        return Ok((step_aside(pair, &pair.stream.decode, 1)?, None));
    }
    let run = |system, trace| -> Result<DriveSums, ReproduceError> {
        Ok(pair.run(system, trace)?.map(DriveSums::of).unwrap_or_default())
    };
    let after_warm = |system| -> Result<DriveSums, ReproduceError> {
        Ok(run(system, &pair.stream.decode)?.less(&run(system, &pair.stream.warm)?))
    };
    let chosen = |parts| -> Result<System, ReproduceError> {
        let mut best = (Nanos::NEVER, System::Ours(PrefetchChoice::None));
        for system in System::choices(parts) {
            let time = run(system, &pair.stream.warm)?.time;
            best = if time < best.0 { (time, system) } else { best };
        }
        Ok(best.1)
    };
    let ours = chosen(false)?;
    let all = Runs {
        tokens: 1,
        static_split: after_warm(System::StaticSplit)?,
        pinned: after_warm(System::Pinned)?,
        ours: after_warm(ours)?,
        parts: after_warm(chosen(true)?)?,
        all_near: after_warm(System::AllNear)?,
        prefetch: ours.prefetch(),
    };
    let shared = pair.regime() == Regime::Hybrid;
    let lanes = if shared { Some(all.lanes(pair)?) } else { None };
    Ok((all.speeds(pair.regime()), lanes))
}

/// The GPU holds everything: there is nothing to decide, and all systems do the same.
fn step_aside(pair: &Pair<'_>, trace: &Trace, tokens: u32) -> Result<Speeds, ReproduceError> {
    let prefetch = PrefetchChoice::None;
    let all = pair.run(System::Ours(prefetch), trace)?.map(DriveSums::of).unwrap_or_default();
    let runs = Runs {
        tokens,
        static_split: all,
        pinned: all,
        ours: all,
        parts: all,
        all_near: all,
        prefetch,
    };
    Ok(runs.speeds(Regime::OneMemory))
}

/// What every system came to in one phase.
struct Runs {
    tokens: u32,
    static_split: DriveSums,
    pinned: DriveSums,
    ours: DriveSums,
    parts: DriveSums,
    all_near: DriveSums,
    prefetch: PrefetchChoice,
}

impl Runs {
    fn speeds(&self, regime: Regime) -> Speeds {
        let ran = self.pinned.tokens > 0;
        Speeds {
            tokens: self.tokens,
            static_split: self.static_split.speed(),
            pinned: ran.then(|| self.pinned.speed()),
            ours: self.ours.speed(),
            parts: self.parts.speed(),
            all_near: self.all_near.speed(),
            bound_by: busiest(&self.ours, regime),
            prefetch: self.prefetch.name(),
            hit_rate: self.ours.hit_rate(),
            pinned_hit_rate: ran.then(|| self.pinned.hit_rate()),
        }
    }

    fn lanes(&self, pair: &Pair<'_>) -> Result<DecodeLanes, ReproduceError> {
        let (pinned, ours) = (lanes(&self.pinned), lanes(&self.ours));
        let parts = lanes(&self.parts);
        Ok(DecodeLanes { pinned, ours, parts, bound: pair.token_bound()? })
    }
}

/// Where the time of a token goes, in a machine of one tier.
fn lanes(sums: &DriveSums) -> Lanes {
    Lanes {
        token_ms: sums.ms(sums.time),
        dense_ms: sums.ms(sums.dense),
        gpu_ms: sums.ms(sums.tiers[0]),
        cpu_ms: sums.ms(sums.home),
        link_ms: sums.ms(sums.links[0]),
    }
}

/// The unit that is busy longest. Before a disk experts are computed by the CPU.
fn busiest(sums: &DriveSums, regime: Regime) -> Busiest {
    let fast = sums.tiers[0];
    let (gpu, cpu, link) = match regime {
        Regime::BeyondRam => (sums.dense, fast, Busiest::Disk),
        _ => (sums.dense + fast, sums.home, Busiest::Pcie),
    };
    let busy = [(gpu, Busiest::Gpu), (cpu, Busiest::Cpu), (sums.links[0], link)];
    busy.into_iter().max_by_key(|(busy, _)| *busy).map_or(Busiest::Gpu, |(_, bound)| bound)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
