//! What passes of a model cost here, with everything in memory and with half of the experts on
//! disk: two short runs of the same text, each in a process of its own.

use crate::args::{Calibrate, Global};
use crate::commands::bench::child;
use crate::commands::worker::Job;
use crate::load::{Residence, session_options};
use crate::page::progress_target;
use crate::planned::Here;
use anyhow::{Context, Result};
use indicatif::ProgressBar;
use motley_cost::calibration::WeightLayout;
use motley_engine::{Loading, SessionOptions, machine_memory};
use motley_model::ModelSpec;
use motley_plan::Budget;
use motley_profile::{PassCosts, PhaseCosts, PhasesCosts};
use motley_trace::{PhaseRecord, RunRecord};
use std::time::Duration;

/// Tokens of text that are read.
const READ_TOKENS: usize = 256;
/// Tokens decoded after them.
const DECODE_TOKENS: usize = 24;
/// How often both run, in turn: a machine's speed wanders.
const ROUNDS: usize = 2;

/// Nothing where the machine is not calibrated: costs are told beside its own.
pub(super) fn measure(
    global: &Global,
    args: &Calibrate,
    spec: &ModelSpec,
    threads: u32,
) -> Result<Option<PassCosts>> {
    let (Some(here), Some(path), Some(text)) = (Here::find(), &args.model, args.text.first())
    else {
        return Ok(None);
    };
    let text =
        std::fs::read_to_string(text).with_context(|| format!("cannot read {}", text.display()))?;
    let options = SessionOptions {
        context_tokens: (READ_TOKENS + DECODE_TOKENS + 1).next_multiple_of(256) as u32,
        ..session_options(&args.load)
    };
    let job = Job {
        model: path.clone(),
        repack: !args.load.exact,
        threads: Some(threads),
        context: options.context_tokens,
        chunk: options.chunk_tokens,
        text: Some(text),
        prefill: READ_TOKENS.min(args.read),
        decode: DECODE_TOKENS,
        repeat: 1,
        ..Job::default()
    };
    let fits = Residence::choose(spec, &args.load, global.memory)?.loading == Loading::Mapped;
    let half = half_bytes(&Budget::of(spec, options.shape()));
    let streamed = Job { on_demand: true, memory: Some(half), ..job.clone() };
    let bar = spinner(global.json);
    let (mut on_disk, mut in_memory) = (None, None);
    for _ in 0..ROUNDS {
        bar.set_message("measuring passes with half of the experts on disk");
        add(&mut on_disk, child(&streamed)?.record);
        if fits {
            bar.set_message("measuring passes with everything in memory");
            add(&mut in_memory, child(&job)?.record);
        }
    }
    bar.finish_and_clear();
    let costs = |record: Option<&RunRecord>, layout| {
        let expected_us = here.expert_us(spec, layout, threads)?;
        costs(record?, on_disk.as_ref()?, &expected_us)
    };
    Ok(Some(PassCosts {
        cpu: here.cpu().to_owned(),
        threads,
        streamed: costs(on_disk.as_ref(), WeightLayout::Plain),
        resident: costs(in_memory.as_ref(), WeightLayout::Rearranged),
    }))
}

/// Sums what runs spent.
fn add(sum: &mut Option<RunRecord>, record: Option<RunRecord>) {
    let Some(record) = record else { return };
    match sum {
        None => *sum = Some(record),
        Some(sum) => {
            sum.prefill = sum.prefill.plus(&record.prefill);
            sum.decode = sum.decode.plus(&record.decode);
        }
    }
}

/// Room for half of the experts, or as many as this machine has room for.
fn half_bytes(budget: &Budget) -> u64 {
    let half = budget.bytes_with((budget.experts / 2).max(2));
    let most = machine_memory().map_or(u64::MAX, |machine| budget.default_bytes(machine).bytes);
    half.min(most)
}

/// What runs spent. How many experts the text needs is only `counted` when they are read, and
/// is the same.
fn costs(
    record: &RunRecord,
    counted: &RunRecord,
    expected_us: &dyn Fn(f64) -> f64,
) -> Option<PhasesCosts> {
    let phase = |record: &PhaseRecord, counted: &PhaseRecord| {
        let load = counted.expert_tokens as f64 / counted.experts.max(1) as f64;
        PhaseCosts::of(record, counted.experts, expected_us(load))
    };
    let foreseen = record.streaming.as_ref().and_then(|streaming| streaming.foreseen);
    Some(PhasesCosts {
        prefill: phase(&record.prefill, &counted.prefill)?,
        decode: PhaseCosts { foreseen, ..phase(&record.decode, &counted.decode)? },
    })
}

fn spinner(quiet: bool) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_draw_target(progress_target(quiet));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
