//! What passes of a model cost here, with everything in memory and with half of the experts on
//! disk: two short runs of the same text, each in a process of its own.

use crate::args::{Calibrate, Global};
use crate::commands::bench::child;
use crate::commands::measure_job::Job;
use crate::known::Known;
use crate::page::progress_target;
use anyhow::{Context, Result};
use indicatif::ProgressBar;
use motley_cost::calibration::WeightLayout;
use motley_engine::{Loading, Runtime, machine_memory};
use motley_plan::{Asked, Budget, Calibration, Decision, Demand, MeasuredKernels, Outputs};
use motley_profile::{PassCosts, PhaseCosts, PhasesCosts};
use motley_trace::{PhaseRecord, RunRecord};
use std::time::Duration;

/// Tokens of text that are read.
const READ_TOKENS: usize = 256;
/// Tokens decoded after them.
const DECODE_TOKENS: usize = 24;
/// How often both run, in turn: a machine's speed wanders.
const ROUNDS: usize = 2;

/// Nothing where the machine is not calibrated: costs are shown beside its own.
pub(super) fn measure(
    global: &Global,
    args: &Calibrate,
    runtime: &Runtime,
    threads: u32,
) -> Result<Option<PassCosts>> {
    let (Some(path), Some(text)) = (&args.model, args.text.first()) else { return Ok(None) };
    let known = Known::here(runtime, path)?;
    let Some(table) = &known.measured else { return Ok(None) };
    let text =
        std::fs::read_to_string(text).with_context(|| format!("cannot read {}", text.display()))?;
    let asked = Asked {
        threads: Some(threads),
        context_tokens: Some((READ_TOKENS + DECODE_TOKENS + 1).next_multiple_of(256) as u32),
        ..args.wishes.asked(Outputs::One)
    };
    let alone = known.decide(&asked)?;
    let fits = alone.loading == Loading::Mapped;
    let half = Asked { memory_bytes: Some(half_bytes(&alone.budget)), loading: None, ..asked };
    let half = known.decide(&half)?;
    let job = |decision: Decision| Job {
        model: path.clone(),
        context: decision.session.context_tokens,
        kv: decision.session.kv,
        windows: decision.session.windows,
        chunk: decision.session.chunk_tokens,
        decision: Some(decision),
        text: Some(text.clone()),
        prefill: READ_TOKENS.min(args.read),
        decode: DECODE_TOKENS,
        repeat: 1,
        // Who is watched is claimed: what llama.cpp computes by itself has no time of its own.
        routing: true,
        ..Job::default()
    };
    let (streamed, resident) = (job(half), job(alone));
    let bar = spinner(global.json);
    let (mut on_disk, mut in_memory) = (None, None);
    for _ in 0..ROUNDS {
        bar.set_message("measuring passes with half of the experts on disk");
        add(&mut on_disk, child(&streamed)?.record);
        if fits {
            bar.set_message("measuring passes with everything in memory");
            add(&mut in_memory, child(&resident)?.record);
        }
    }
    bar.finish_and_clear();
    let costs = |record: Option<&RunRecord>, layout: WeightLayout| -> Result<Option<PhasesCosts>> {
        let (Some(record), Some(counted)) = (record, &on_disk) else { return Ok(None) };
        let demand = Demand::of(&known.spec);
        let width = demand.expert_matrix_weights();
        let layout = |_: &str| layout;
        let kernels = MeasuredKernels::laid_out(&layout);
        let unit = Calibration::measured(table, &kernels, threads, width)?.cpu;
        let expected_us = |tokens| unit.us(&demand.expert_matrices(), tokens);
        Ok(costs(record, counted, &expected_us))
    };
    Ok(Some(PassCosts {
        cpu: table.provenance.cpu.clone(),
        threads,
        streamed: costs(on_disk.as_ref(), WeightLayout::Plain)?,
        resident: costs(in_memory.as_ref(), WeightLayout::Repacked)?,
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
    let predicted = record.streaming.as_ref().and_then(|streaming| streaming.predicted);
    Some(PhasesCosts {
        prefill: phase(&record.prefill, &counted.prefill)?,
        decode: PhaseCosts { predicted, ..phase(&record.decode, &counted.decode)? },
    })
}

fn spinner(quiet: bool) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_draw_target(progress_target(quiet));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}
