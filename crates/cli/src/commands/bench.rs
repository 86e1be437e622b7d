//! `motley bench`: interleaved pairs against the bare engine, each run in a child
//! process of the same binary, so that the only difference is the seam.
//!
//! Ratios are within a pair (runs next to each other in time); the order swaps
//! from pair to pair. The machine's load is recorded before and after.

use crate::args::{Bench, Global};
use crate::commands::measure_job::{Job, Outcome, streams_shape};
use crate::commands::neighbours;
use crate::known::Known;
use crate::load::{check_skip, decision};
use crate::npu;
use crate::page::progress_target;
use crate::terminal::{print_json, print_page};
use crate::ways::ways;
use crate::workers::Workers;
use anyhow::{Context, Result, ensure};
use comfy_table::Table;
use indicatif::{ProgressBar, ProgressStyle};
use motley_cost::statistics::quartiles;
use motley_engine::{Runtime, Seam, load};
use motley_plan::{Decision, Outputs};
use motley_trace::{EnergySource, RunRecord, WorkerRecord};
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the command.
pub(crate) fn run(global: &Global, bench: &Bench) -> Result<()> {
    if let Some(count) = bench.neighbours {
        return neighbours::run(global, bench, count);
    }
    let prompts = npu::Prompts {
        model: &bench.model,
        load: &bench.load,
        prefill: bench.prefill,
        pairs: bench.pairs,
    };
    if npu::bench(global, &prompts, &bench.device)? {
        return Ok(());
    }
    let job = job(global, bench)?;
    let load_before = load_average();
    let (mut pairs, mut last) = (Vec::new(), None);
    let bar = progress(global.json, bench.pairs);
    for index in 0..bench.pairs {
        let (pair, record) = pair(&job, index % 2 == 1)?;
        pairs.push(pair);
        last = record.or(last);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let report = BenchReport::new(bench, &job, pairs, (load_before, load_average()), last);
    if global.json {
        print_json(&serde_json::to_string_pretty(&report)?)?;
    } else {
        print_page(render(&report).trim_end())?;
    }
    Ok(())
}

/// Tokens per second of one pair.
#[derive(Debug, Clone, Copy, Serialize)]
struct Pair {
    bare_prefill: f64,
    motley_prefill: f64,
    bare_decode: f64,
    motley_decode: f64,
    bare_streams: f64,
    motley_streams: f64,
    /// Of decoding, where both were read from a meter.
    joules_per_token: Option<(f64, f64)>,
    /// Whether both decoded the same tokens.
    same_tokens: bool,
    delegated: u64,
}

fn pair(job: &Job, motley_first: bool) -> Result<(Pair, Option<RunRecord>)> {
    let bare = Job { bare: true, workers: Vec::new(), ..job.clone() };
    let (bare, motley) = if motley_first {
        let motley = child(job)?;
        (child(&bare)?, motley)
    } else {
        (child(&bare)?, child(job)?)
    };
    let pair = Pair {
        bare_prefill: rate(job.prefill, &bare.prefill_s),
        motley_prefill: rate(job.prefill, &motley.prefill_s),
        bare_decode: rate(job.decode, &bare.decode_s),
        motley_decode: rate(job.decode, &motley.decode_s),
        bare_streams: rate(streams_tokens(job.streams), &bare.streams_s),
        motley_streams: rate(streams_tokens(job.streams), &motley.streams_s),
        joules_per_token: joules_per_token(&bare).zip(joules_per_token(&motley)),
        same_tokens: bare.tokens == motley.tokens,
        delegated: motley.delegated,
    };
    Ok((pair, motley.record))
}

/// Of decoding, all repetitions together, by meter: workers watch nothing else.
fn joules_per_token(outcome: &Outcome) -> Option<f64> {
    outcome.record.as_ref()?.energy.as_ref()?.joules_per_token
}

pub(crate) fn child(job: &Job) -> Result<Outcome> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("measure-job")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start a worker")?;
    let mut stdin = child.stdin.take().context("the worker's stdin")?;
    stdin.write_all(&serde_json::to_vec(job)?)?;
    drop(stdin);
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "a worker failed ({}); see its message above", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// What both sides measure: Motley as decided, the bare engine with the same threads and chunk.
fn job(global: &Global, bench: &Bench) -> Result<Job> {
    let context = (bench.prefill + bench.decode + 1).next_multiple_of(256) as u32;
    let mut load = bench.load.clone();
    load.wishes.at_least(context);
    let runtime = Runtime::start(Seam::Registered)?;
    let known = Known::to_run(&runtime, global, &bench.model, load.trust)?;
    let known = known.with_experts(load.approximate.experts)?;
    let decision = decision(&known, &load, Outputs::One)?;
    check_skip(&decision, bench.workers.is_used())?;
    // Those not met before are met now: runs cannot ask.
    Workers::reach(&bench.workers, runtime, &known.files.paths[0], decision.exact)?;
    let fits = decision.session.context_tokens;
    ensure!(context <= fits, "the plan has a context of {fits}; these runs need {context}");
    Ok(Job {
        model: known.files.paths[0].clone(),
        workers: bench.workers.workers.clone(),
        context: fits,
        kv: decision.session.kv,
        windows: decision.session.windows,
        chunk: decision.session.chunk_tokens,
        decision: Some(decision),
        prefill: bench.prefill,
        decode: bench.decode,
        repeat: bench.repeat,
        streams: bench.streams,
        ..Job::default()
    })
}

/// Tokens that streams decode together.
fn streams_tokens(streams: u32) -> usize {
    (streams * streams_shape(streams).steps) as usize
}

/// Tokens per second of the fastest repetition: the one least disturbed.
pub(crate) fn rate(tokens: usize, seconds: &[f64]) -> f64 {
    let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    tokens as f64 / best
}

/// A sample's middle and its quartiles.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) lower_quartile: f64,
    pub(crate) upper_quartile: f64,
}

impl Spread {
    /// Of at least one value.
    pub(crate) fn of(values: &[f64]) -> Self {
        let [lower_quartile, median, upper_quartile] =
            quartiles(values).expect("at least one value");
        Self { median, lower_quartile, upper_quartile }
    }
}

/// One phase over all pairs, tokens per second (of energy: joules per token) and Motley ÷ bare.
#[derive(Debug, Serialize)]
struct Phase {
    name: &'static str,
    tokens: usize,
    bare: Spread,
    motley: Spread,
    ratio: Spread,
}

impl Phase {
    fn new(
        name: &'static str,
        tokens: usize,
        pairs: &[Pair],
        pick: fn(&Pair) -> (f64, f64),
    ) -> Self {
        let column =
            |of: fn((f64, f64)) -> f64| pairs.iter().map(|p| of(pick(p))).collect::<Vec<_>>();
        Self {
            name,
            tokens,
            bare: Spread::of(&column(|(bare, _)| bare)),
            motley: Spread::of(&column(|(_, motley)| motley)),
            ratio: Spread::of(&column(|(bare, motley)| motley / bare)),
        }
    }
}

#[derive(Debug, Serialize)]
struct BenchReport {
    model: String,
    /// How Motley ran, in words.
    loading: String,
    devices: String,
    memory_bytes: Option<u64>,
    repack: bool,
    /// How the CPU computed the experts of each phase, in words.
    experts: Vec<String>,
    phases: Vec<Phase>,
    /// What other machines computed, in the last run.
    workers: Vec<WorkerRecord>,
    /// Where `energy` was read.
    meter: Option<String>,
    /// Joules of a decoded token; `None` where no meter tells them.
    energy: Option<Phase>,
    pairs: Vec<Pair>,
    same_tokens: bool,
    delegated: u64,
    load_before: Option<f64>,
    load_after: Option<f64>,
}

impl BenchReport {
    fn new(
        bench: &Bench,
        job: &Job,
        pairs: Vec<Pair>,
        (before, after): (Option<f64>, Option<f64>),
        last: Option<RunRecord>,
    ) -> Self {
        let prefill: fn(&Pair) -> (f64, f64) = |p| (p.bare_prefill, p.motley_prefill);
        let decode: fn(&Pair) -> (f64, f64) = |p| (p.bare_decode, p.motley_decode);
        let streams: fn(&Pair) -> (f64, f64) = |p| (p.bare_streams, p.motley_streams);
        let joules: fn(&Pair) -> (f64, f64) = |p| p.joules_per_token.unwrap_or_default();
        let metered = pairs.iter().all(|pair| pair.joules_per_token.is_some());
        let mut phases = vec![
            Phase::new("prefill", bench.prefill, &pairs, prefill),
            Phase::new("decode", bench.decode, &pairs, decode),
        ];
        if bench.streams > 0 {
            phases.push(Phase::new("streams", bench.streams as usize, &pairs, streams));
        }
        Self {
            model: bench.model.display().to_string(),
            loading: decided(job, |decision| decision.why.loading.clone()),
            devices: decided(job, |decision| decision.why.devices.clone()),
            memory_bytes: job.decision.as_ref().and_then(|decision| decision.memory_bytes),
            repack: job.decision.as_ref().is_some_and(|decision| !decision.exact),
            experts: last.as_ref().map_or_else(Vec::new, ways),
            phases,
            workers: last.as_ref().map_or_else(Vec::new, |record| record.workers.clone()),
            meter: last.and_then(meter_of),
            energy: metered.then(|| Phase::new("energy", bench.decode, &pairs, joules)),
            same_tokens: pairs.iter().all(|pair| pair.same_tokens),
            delegated: pairs.iter().map(|pair| pair.delegated).sum(),
            pairs,
            load_before: before,
            load_after: after,
        }
    }
}

fn decided(job: &Job, words: impl Fn(&Decision) -> String) -> String {
    job.decision.as_ref().map_or_else(String::new, words)
}

fn render(report: &BenchReport) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::UTF8_HORIZONTAL_ONLY);
    table.set_header(["phase", "bare t/s", "motley t/s", "motley ÷ bare", "quartiles"]);
    for phase in &report.phases {
        table.add_row([
            format!("{} {}", phase.name, phase.tokens),
            format!("{:.1}", phase.bare.median),
            format!("{:.1}", phase.motley.median),
            format!("{:.3}", phase.ratio.median),
            format!("{:.3} … {:.3}", phase.ratio.lower_quartile, phase.ratio.upper_quartile),
        ]);
    }
    let load = |value: Option<f64>| value.map_or("unknown".into(), |load| format!("{load:.2}"));
    format!(
        "{}: {}\n{table}\n{}\n{}{}\n{} pairs, medians; same tokens: {}; delegated splits: {}; load {} before, {} after\n",
        report.model,
        report.loading,
        report.experts.join("; "),
        report.workers.iter().map(|worker| format!("{worker}\n")).collect::<String>(),
        energy(report),
        report.pairs.len(),
        if report.same_tokens { "yes" } else { "no" },
        report.delegated,
        load(report.load_before),
        load(report.load_after),
    )
}

/// Energy in a line. A model knows what the plan draws, and nothing of the bare engine.
fn energy(report: &BenchReport) -> String {
    let Some((energy, meter)) = report.energy.as_ref().zip(report.meter.as_ref()) else {
        return "no meter tells the energy, and a model would know nothing of the bare engine"
            .into();
    };
    let Phase { bare, motley, ratio, .. } = energy;
    format!(
        "decode by meter {meter}: bare {:.3} J/token, motley {:.3}, ratio {:.3} ({:.3} … {:.3})",
        bare.median, motley.median, ratio.median, ratio.lower_quartile, ratio.upper_quartile
    )
}

fn meter_of(record: RunRecord) -> Option<String> {
    match record.energy?.source {
        EnergySource::Meter(name) => Some(name),
        EnergySource::Model => None,
    }
}

/// The one-minute load average, where the system has one.
pub(crate) fn load_average() -> Option<f64> {
    load::average(Path::new("/")).map(|load| load.one_min)
}

fn progress(quiet: bool, pairs: u32) -> ProgressBar {
    let style = ProgressStyle::with_template("pair {pos}/{len} {wide_bar} {eta} left")
        .expect("the template is a constant");
    let bar =
        ProgressBar::with_draw_target(Some(pairs.into()), progress_target(quiet)).with_style(style);
    bar.tick();
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_interpolate() {
        let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0, 5.0]);
        assert_eq!((spread.lower_quartile, spread.median, spread.upper_quartile), (2.0, 3.0, 4.0));
        let spread = Spread::of(&[1.0, 2.0]);
        assert_eq!(spread.median, 1.5);
    }

    #[test]
    fn the_rate_is_that_of_the_fastest_repetition() {
        assert_eq!(rate(100, &[2.0, 1.0, 4.0]), 100.0);
    }
}
