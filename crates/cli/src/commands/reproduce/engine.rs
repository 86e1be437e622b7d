//! `motley reproduce hybrimoe --engine`: the same set-ups through the engine's executor, whose
//! threads drive devices that sleep for what the cost model says, beside the simulator's answer.

use crate::args::EngineRuns;
use crate::page::{align_right, table, width_of};
use crate::terminal::{print_json, print_page};
use anyhow::{Context, Result};
use comfy_table::presets;
use motley_cost::{ComputeCost, Nanos};
use motley_engine::blocks::machine::artificial::{Artificial, Driven};
use motley_reproduce::hybrimoe::models::MODELS;
use motley_reproduce::hybrimoe::setup::{RATIOS, Run, SetUp, System};
use motley_reproduce::hybrimoe::{ASSUMED, Routing};
use motley_sched::Share;
use motley_sched::overlap::Overlap;
use motley_sim::predictions::Predictor;
use motley_trace::{Phase, Trace};
use serde::Serialize;

/// Tokens decoded in each run; sleeping takes as long as running would.
const DECODED: u32 = 8;
/// Tokens of the prompt.
const PROMPT: u32 = 128;
/// Time of one copy: each model runs as much faster or slower as that takes, so that waking a
/// thread (tens of microseconds, three times a layer) costs next to nothing beside a layer.
const COPY_US: f64 = 3000.0;
/// Drives of each system; the one in the middle counts. Systems take turns, so that a stretch in
/// which the machine is busy meets all of them.
const DRIVES: usize = 3;

/// Runs the command.
pub(crate) fn run(runs: EngineRuns, json: bool, columns: Option<u16>) -> Result<()> {
    let speedups = speedups(runs)?;
    if json {
        return print_json(&serde_json::to_string_pretty(&speedups)?);
    }
    let mut page = table(width_of(columns), presets::UTF8_FULL_CONDENSED);
    page.set_header(["Model", "Cached", "Phase", "System", "Simulator", "Engine", "Difference"]);
    for one in &speedups {
        page.add_row([
            one.model.to_owned(),
            format!("{:.0} %", 100.0 * one.cached),
            one.phase.to_owned(),
            one.system.to_owned(),
            format!("{:.2} x", one.simulator),
            format!("{:.2} x", one.engine),
            format!("{:+.1} %", 100.0 * one.difference),
        ]);
    }
    align_right(&mut page, &[1, 4, 5, 6]);
    let worst = speedups.iter().map(|one| one.difference.abs()).fold(0.0, f64::max);
    let late = speedups.iter().map(|one| one.late).fold(0.0, f64::max);
    print_page(&format!(
        " Speed-up over the kTransformers policy, devices that sleep\n{}\n {DECODED} tokens decoded, {PROMPT} of prompt; middle of {DRIVES} drives; largest \
         difference {:.1} %\n Sleepers woke late for at most {:.1} % of a drive; on a busy machine \
         that is more, and so are differences",
        page.trim_fmt(),
        100.0 * worst,
        100.0 * late,
    ))
}

/// One speed-up, as the simulator says and as the engine's executor has it.
#[derive(Debug, Serialize)]
struct Speedup {
    model: &'static str,
    cached: f64,
    phase: &'static str,
    system: &'static str,
    simulator: f64,
    engine: f64,
    difference: f64,
    /// Part of the engine's time in which its sleepers woke late, of this system or the baseline.
    late: f64,
    /// Of the engine's run: part of the shorter of the CPU's and the device's work that ran
    /// beside the other's.
    overlap: Option<f64>,
    /// Part of the time in which both had work that both computed.
    both_when_both_could: Option<f64>,
}

fn speedups(runs: EngineRuns) -> Result<Vec<Speedup>> {
    let machine = motley_machine::find("a6000-xeon-5220r")?;
    let quick = runs == EngineRuns::Quick;
    let mut speedups = Vec::new();
    for model in MODELS.iter().filter(|model| !quick || model.name == "DeepSeek") {
        let routing = Routing::for_model(model, ASSUMED.skew)?;
        for &ratio in &RATIOS[..if quick { 1 } else { RATIOS.len() }] {
            let run = Run { machine: &machine, model, routing: &routing, ratio, open: ASSUMED };
            let parts = model.name == "Qwen2" && ratio == RATIOS[0];
            let systems: &[(System, &str)] = if parts { &PARTS } else { &PARTS[..1] };
            speedups.extend(compare(&run, Phase::Decode, systems)?);
            speedups.extend(compare(&run, Phase::Prefill, &PARTS[..1])?);
        }
    }
    Ok(speedups)
}

/// The whole, and where the source publishes them its parts.
const PARTS: [(System, &str); 4] = [
    (System::HybriMoe, "all"),
    (System::Scheduling, "scheduling"),
    (System::Prefetching, "prefetching"),
    (System::Caching, "caching"),
];

fn compare(
    run: &Run<'_>,
    phase: Phase,
    systems: &[(System, &'static str)],
) -> Result<Vec<Speedup>> {
    let (trace, name) = match phase {
        Phase::Decode => (run.routing.decoded(DECODED), "decode"),
        Phase::Prefill => (run.routing.prompt(PROMPT), "prefill"),
    };
    let base = (System::KTransformers, "baseline");
    let all: Vec<_> = std::iter::once(&base).chain(systems).collect();
    let mut drives: Vec<Vec<Driven>> = all.iter().map(|_| Vec::new()).collect();
    for _ in 0..DRIVES {
        for (of_system, &&(system, _)) in drives.iter_mut().zip(&all) {
            of_system.push(drive(run.set_up(system)?, &trace)?);
        }
    }
    let mut times = Vec::new();
    for (of_system, &&(system, called)) in drives.into_iter().zip(&all) {
        let outcome = run.outcome(system, &trace, None)?;
        let simulated = outcome.prefill.time + outcome.decode.time;
        times.push(Times { called, simulated, driven: middle(of_system) });
    }
    let Some((base, others)) = times.split_first() else { return Ok(Vec::new()) };
    Ok(others.iter().map(|times| times.over(base, run, name)).collect())
}

/// The drive that took neither longest nor shortest.
fn middle(mut drives: Vec<Driven>) -> Driven {
    drives.sort_by_key(took);
    drives.swap_remove(drives.len() / 2)
}

fn took(driven: &Driven) -> Nanos {
    driven.prefill + driven.decode
}

/// The same trace under the same system, twice.
struct Times {
    called: &'static str,
    simulated: Nanos,
    driven: Driven,
}

impl Times {
    fn over(&self, base: &Self, run: &Run<'_>, phase: &'static str) -> Speedup {
        let simulator = base.simulated.as_s() / self.simulated.as_s();
        let engine = took(&base.driven).as_s() / took(&self.driven).as_s();
        let late = |driven: &Driven| driven.late.as_s() / took(driven).as_s();
        let overlap = Overlap::of(&self.driven.spans);
        Speedup {
            model: run.model.name,
            cached: run.ratio,
            phase,
            system: self.called,
            simulator,
            engine,
            difference: engine / simulator - 1.0,
            late: late(&self.driven).max(late(&base.driven)),
            overlap: overlap.map(|overlap| overlap.of_shorter()),
            both_when_both_could: overlap.map(|overlap| overlap.while_both_had_work()),
        }
    }
}

fn drive(set_up: SetUp, trace: &Trace) -> Result<Driven> {
    let SetUp { scheduler, residents, costs, dense, predictions } = set_up;
    let scale = COPY_US / costs.load_time(0, Share::WHOLE).as_us();
    let mut predictor = Predictor::new(predictions, trace.header.experts);
    let artificial = Artificial {
        scheduler,
        costs,
        dense: ComputeCost {
            launch_us: dense.layer_us,
            per_token_us: dense.layer_per_token_us,
            floor_us: 0.0,
        },
        pass: Nanos::from_us(dense.pass_us),
        residents: &[residents],
        scale,
        fails_every: 0,
    };
    let driven = artificial.drive(trace, &mut |pass| predictor.predict_pass(pass).to_vec());
    let driven = driven.context("the engine's executor")?;
    anyhow::ensure!(driven.wrong_pairs == 0, "{} pairs went wrong", driven.wrong_pairs);
    Ok(driven)
}
