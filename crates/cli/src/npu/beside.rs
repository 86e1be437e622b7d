//! A static-graph device in `run` and `serve`: its part of the memory, and the costs by which
//! experts go there.

use super::enabled::{NpuArgs, Share};
use crate::args::LoadArgs;
use crate::known::Known;
use crate::load::decision;
use crate::terminal::note;
use anyhow::{Context, Result, ensure};
use motley_engine::blocks::npu::{NpuChoice, load_runtime};
use motley_engine::{Loading, machine_memory};
use motley_model::format_bytes;
use motley_plan::{Decision, Outputs};
use std::path::PathBuf;

/// What graphs get of the machine's memory, and of a ceiling, if nobody says: one of so many parts.
const MACHINE_PARTS: u64 = 8;
const CEILING_PARTS: u64 = 4;

/// The decision of these flags, within a ceiling that leaves graphs their part.
pub(crate) fn decide(
    known: &Known,
    load: &LoadArgs,
    outputs: Outputs,
    args: &NpuArgs,
) -> Result<(Decision, Share)> {
    let alone = decision(known, load, outputs)?;
    if args.npu.is_none() {
        return Ok((alone, Share::default()));
    }
    let ceiling = alone.memory_bytes.filter(|_| alone.loading == Loading::OnDemand);
    let of_machine = machine_memory().map(|memory| memory.total_bytes / MACHINE_PARTS);
    let by_default = ceiling.map(|bytes| bytes / CEILING_PARTS).or(of_machine);
    let memory_bytes = args.npu_memory.or(by_default);
    let (Some(ceiling), Some(graphs)) = (ceiling, memory_bytes) else {
        let choice = choice(known, &alone);
        return Ok((alone, Share { memory_bytes, choice }));
    };
    ensure!(
        load.plan.is_none(),
        "--npu: the plan divides all of its memory already; leave --plan out"
    );
    ensure!(
        graphs < ceiling,
        "--npu-memory {}: that is all of the {} there are for everything",
        format_bytes(graphs),
        format_bytes(ceiling)
    );
    let mut load = load.clone();
    load.wishes.memory = Some(ceiling - graphs);
    let beside = decision(known, &load, outputs).context("beside the graphs of --npu")?;
    let choice = choice(known, &beside);
    Ok((beside, Share { memory_bytes, choice }))
}

/// Measured costs where this machine was calibrated.
fn choice(known: &Known, decision: &Decision) -> NpuChoice {
    let costs = known.expert_on_cpu(decision.threads.prefill.threads);
    costs.map_or(NpuChoice::Every, |(cpu, read_us)| NpuChoice::Measured { cpu, read_us })
}

impl NpuArgs {
    /// Loads ONNX Runtime while files may still be opened. The folder of its library stays
    /// readable: providers load more from there when the first graph is compiled.
    pub(crate) fn load_library(&self) -> Result<Option<PathBuf>> {
        if self.npu.is_none() {
            return Ok(None);
        }
        let path = load_runtime(self.npu_library.as_deref()).context("--npu")?;
        Ok(path.canonicalize().ok().and_then(|path| path.parent().map(PathBuf::from)))
    }

    /// Whether the device computes.
    pub(crate) fn is_used(&self) -> bool {
        self.npu.is_some()
    }

    /// What is written: compiled graphs, where they are kept.
    pub(crate) fn written(&self) -> Option<PathBuf> {
        self.npu_cache.clone().filter(|_| self.npu.is_some())
    }
}

/// One line: who computes graphs, and how many, if somebody does.
pub(crate) fn announce(args: &NpuArgs, share: &Share) {
    if args.npu.is_none() {
        return;
    }
    let most = share
        .memory_bytes
        .map_or("any number of".into(), |bytes| format!("up to {} of", format_bytes(bytes)));
    let choice = match share.choice {
        NpuChoice::Measured { .. } => "where measured costs say it pays",
        _ => "wherever a profile expects rows (`motley calibrate` measures what pays)",
    };
    let provider = args.npu_provider.name();
    note(&format!("static graphs by {provider}: {most} experts take part in prompts, {choice}"));
}
