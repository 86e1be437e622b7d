//! `motley explain`: where the time of a run went, what bound it, and what other circumstances
//! would have given (M2). Prints; `motley_sim::explain` computes.

use crate::args::{Explain, Global};
use crate::commands::sim::read_trace;
use crate::last;
use crate::page::{Fact, align_right, bar, facts, percent, printable, table, width_of};
use crate::terminal::print;
use crate::ways::ways;
use anyhow::{Context, Result, bail};
use comfy_table::presets;
use motley_calibrate::library;
use motley_cost::calibration::CalibrationFile;
use motley_model::format_bytes;
use motley_sim::explain::picture::Picture;
use motley_sim::explain::{Answer, Change, PhaseParts, Scaling, TimePart, WhatIf, what_if};
use motley_sim::rerun::{check_pair, trace_tokens};
use motley_trace::{RunRecord, Trace, WorkerRecord};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Cells of the bars beside parts.
const BAR_CELLS: usize = 12;

/// Runs the command.
pub(crate) fn run(global: &Global, args: &Explain, columns: Option<u16>) -> Result<()> {
    let source = Source::find(args)?;
    let record = read_record(&source.record)?;
    let (trace, note) = source.trace(&record)?;
    let calibration = library::of_this_machine().map(|(_, found)| found);
    let explained = Explained::of(record, calibration.as_ref(), (trace.as_ref(), note))?;
    if let Some(path) = &args.svg {
        std::fs::write(path, explained.svg())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let text = match global.json {
        true => serde_json::to_string_pretty(&explained)?,
        false => explained.render(width_of(columns)),
    };
    print(global.json, &text)
}

/// The page about a run that is still going on, whose routing is not known yet.
pub(crate) fn page(
    record: RunRecord,
    calibration: Option<&CalibrationFile>,
    columns: Option<u16>,
) -> Result<String> {
    let note = "so far; `motley explain` says more once the run has ended".to_owned();
    let explained = Explained::of(record, calibration, (None, Some(note)))?;
    Ok(explained.render(width_of(columns)))
}

/// Which files are read.
struct Source {
    record: PathBuf,
    trace: Option<PathBuf>,
    /// Whether it is the run kept by Motley itself, whose trace may stop before the run did.
    kept: bool,
}

impl Source {
    fn find(args: &Explain) -> Result<Self> {
        if args.run != Path::new("last") {
            return Ok(Self { record: args.run.clone(), trace: args.trace.clone(), kept: false });
        }
        let folder = last::folder()?;
        let record = last::record_path(&folder);
        if !record.exists() {
            bail!(
                "no run is kept in {}; `motley run` keeps its last, or give a RUN.json",
                folder.display()
            );
        }
        let own = Some(last::trace_path(&folder)).filter(|path| path.exists());
        let kept = args.trace.is_none();
        Ok(Self { record, trace: args.trace.clone().or(own), kept })
    }

    /// The routing, and what to say about it.
    fn trace(&self, record: &RunRecord) -> Result<(Option<Trace>, Option<String>)> {
        if let Some(shared) = record.shared {
            let share = shared.device_pairs as f64 / shared.routed_pairs.max(1) as f64;
            let why = format!(
                "devices (room for {} experts) computed {}: only cores can be asked about",
                shared.cache_slots,
                percent(share)
            );
            return Ok((None, Some(why)));
        }
        if record.workers.iter().any(|worker| worker.recomputed > 0 || worker.keeps.is_empty()) {
            let why = "a worker was lost or kept nothing: only cores can be asked about";
            return Ok((None, Some(why.into())));
        }
        if record.speculation.is_some_and(|made| made.guessed > 0) {
            let why = "tokens were guessed ahead: only the number of cores can be asked about";
            return Ok((None, Some(why.into())));
        }
        if record.streaming.as_ref().is_some_and(|streaming| streaming.skip_cold.is_some()) {
            let why = "experts were left out: only the number of cores can be asked about";
            return Ok((None, Some(why.into())));
        }
        if record.streaming.is_none() {
            let why = "every expert was in memory: only the number of cores can be asked about";
            return Ok((None, Some(why.into())));
        }
        let Some(path) = &self.trace else {
            let why = "without the run's routing (--trace) only cores can be asked about";
            return Ok((None, Some(why.into())));
        };
        let trace = read_trace(path)?;
        let all = record.prefill.tokens + record.decode.tokens;
        let seen = trace_tokens(&trace);
        if self.kept && seen < all {
            let why = format!("answers are from the first {seen} of {all} tokens");
            return Ok((Some(trace), Some(why)));
        }
        check_pair(record, &trace)?;
        Ok((Some(trace), None))
    }
}

fn read_record(path: &Path) -> Result<RunRecord> {
    let name = || format!("cannot use {}", path.display());
    let text = std::fs::read_to_string(path).with_context(name)?;
    RunRecord::parse(&text).with_context(name)
}

/// How fast experts are computed for one token, by threads: the mean over measured types.
fn scaling(calibration: &CalibrationFile) -> Scaling {
    let mut counts: Vec<u32> = calibration.experts.iter().map(|cost| cost.threads).collect();
    counts.sort_unstable();
    counts.dedup();
    let speed = |threads: u32| {
        let costs = calibration.experts.iter().filter(|cost| cost.threads == threads);
        let speeds: Vec<f64> = costs.map(|cost| 1.0 / cost.us_per_mb.max(1e-9)).collect();
        speeds.iter().sum::<f64>() / speeds.len().max(1) as f64
    };
    Scaling { speeds: counts.into_iter().map(|threads| (threads, speed(threads))).collect() }
}

/// Everything the page and the JSON say.
#[derive(Serialize)]
struct Explained {
    record: RunRecord,
    prefill: PhaseParts,
    decode: PhaseParts,
    what_if: WhatIf,
    /// Rate at which this machine reads memory, where it was measured.
    memory_limit_gb_per_s: Option<f64>,
    note: Option<String>,
}

impl Explained {
    /// What `record` tells, with the run's routing if it is known, and what to say about that.
    fn of(
        record: RunRecord,
        calibration: Option<&CalibrationFile>,
        (trace, note): (Option<&Trace>, Option<String>),
    ) -> Result<Self> {
        let rate = calibration.and_then(|found| found.memory_gb_per_s(record.threads));
        let scaling = calibration.map(scaling).unwrap_or_default();
        Ok(Self {
            prefill: PhaseParts::prefill(&record, rate),
            decode: PhaseParts::decode(&record, rate),
            what_if: what_if(&record, trace, &scaling)?,
            memory_limit_gb_per_s: rate,
            note,
            record,
        })
    }

    fn render(&self, width: u16) -> String {
        let mut parts = vec![
            format!(" {}", self.title()),
            facts(&self.head(), width),
            self.times(width),
            self.answers(width),
        ];
        parts.extend(self.note.iter().map(|note| format!(" {note}")));
        if let Some(error) = self.what_if.decode_error {
            let prefill = self.what_if.prefill_error.unwrap_or(0.0);
            parts.push(format!(
                " The unchanged run replayed: prefill {:+.1} %, decode {:+.1} % of the real speed",
                100.0 * prefill,
                100.0 * error
            ));
        }
        parts.join("\n")
    }

    fn title(&self) -> String {
        let model = printable(&self.record.model);
        match self.record.memory_bytes {
            Some(memory) => format!("{model} within {}", format_bytes(memory)),
            None => model,
        }
    }

    fn head(&self) -> Vec<Fact> {
        let threads = self.record.threads;
        let speed = |phase: &PhaseParts, real: f64| match phase.tokens {
            0 => "nothing".to_owned(),
            tokens => format!("{tokens} tokens, {real:.1}/s, bound by {}", phase.bound.name()),
        };
        let mut facts = vec![
            ("Prefill", speed(&self.prefill, self.record.prefill.tokens_per_s())),
            ("Decode", speed(&self.decode, self.record.decode.tokens_per_s())),
        ];
        facts.extend(self.record.speculation.map(|made| ("Guesses", made.to_string())));
        if let Some(streaming) = &self.record.streaming {
            let hits = self.record.prefill.plus(&self.record.decode).hit_rate();
            let kept = streaming.cache_slots;
            let ways = format!("{}, prefetch {}", streaming.policy, streaming.prefetch);
            facts.push(("Experts", format!("{kept} stay ({ways}), {} resident", percent(hits))));
            let both = self.record.prefill.plus(&self.record.decode);
            if let (Some(part), (pairs, weight)) = (streaming.skip_cold, both.left_out()) {
                let (pairs, weight) = (percent(pairs), percent(weight));
                let below = format!("{pairs} of routed pairs, {weight} of their weight");
                facts.push(("Left out", format!("{below} (--skip-cold {part})")));
            }
            if let Some(least) = streaming.cache_slots_least.filter(|least| *least < kept) {
                let why = "memory was scarce, which a replay does not know";
                facts.push(("", format!("at times only {least}: {why}")));
            }
            let disk = self.record.decode.plus(&self.record.prefill);
            let rate = disk.disk_bytes_per_s() / 1e9;
            let busy = percent(disk.disk_busy_share());
            facts.push(("Disk", format!("{rate:.2} GB/s while busy, busy {busy} of the time")));
        }
        if self.record.shared.is_none() {
            let ways = ways(&self.record).into_iter().enumerate();
            facts.extend(ways.map(|(at, way)| (if at == 0 { "Kernels" } else { "" }, way)));
        }
        if let Some(rate) = self.decode.memory_gb_per_s {
            let limit = self.memory_limit_gb_per_s;
            let reach = limit.map(|most| format!(", {} of {most:.1}", percent(rate / most)));
            let reach = reach.unwrap_or_default();
            let read = format!("experts read at {rate:.1} GB/s{reach} on {threads} threads");
            facts.push(("Memory", read));
        }
        let workers = self.record.workers.iter().map(|worker| ("Worker", times_of(worker)));
        facts.extend(workers);
        if let Some(energy) = &self.record.energy {
            facts.push(("Energy", energy.to_string()));
            let predicted = energy.predicted_joules_per_token;
            facts.extend(predicted.map(|joules| ("", format!("{joules:.3} J/token predicted"))));
        }
        facts
    }

    fn times(&self, width: u16) -> String {
        let mut rows = table(width, presets::UTF8_FULL_CONDENSED);
        rows.set_header(["Time", "prefill ms", "of it", "decode", "ms/token", "of it"]);
        for part in TimePart::ALL {
            let (prompt, single) = (self.prefill.seconds(part), self.decode.seconds(part));
            if prompt + single <= 0.0 {
                continue;
            }
            let (prompt_share, single_share) =
                (share(prompt, self.prefill.time_s), share(single, self.decode.time_s));
            rows.add_row([
                part.name().to_owned(),
                format!("{:.1}", 1e3 * prompt),
                percent(prompt_share),
                bar(single_share, BAR_CELLS),
                format!("{:.2}", 1e3 * share(single, self.decode.tokens as f64)),
                percent(single_share),
            ]);
        }
        align_right(&mut rows, &[1, 2, 4, 5]);
        rows.trim_fmt()
    }

    fn answers(&self, width: u16) -> String {
        let mut rows = table(width, presets::UTF8_FULL_CONDENSED);
        rows.set_header(["What if", "prefill/s", "decode/s", "resident", "run"]);
        for answer in &self.what_if.answers {
            rows.add_row([
                described(&answer.change),
                format!("{:.1}", answer.prefill_tokens_per_s),
                format!("{:.1}", answer.decode_tokens_per_s),
                self.resident(answer),
                format!("{:.2} ×", answer.gain),
            ]);
        }
        align_right(&mut rows, &[1, 2, 3, 4]);
        rows.trim_fmt()
    }

    /// Share of the routed experts that were in memory; all, where none were read.
    fn resident(&self, answer: &Answer) -> String {
        match &self.record.streaming {
            Some(_) => percent(answer.hit_rate),
            None => "all".into(),
        }
    }

    fn svg(&self) -> String {
        let gain = |answer: &Answer| (short(&answer.change), answer.gain);
        let title = format!("{}: where the time went", self.title());
        let phases = [("prefill", &self.prefill), ("decode", &self.decode)];
        Picture {
            title: &title,
            phases: phases.into_iter().filter(|(_, parts)| parts.tokens > 0).collect(),
            gains: self.what_if.answers.iter().map(gain).collect(),
        }
        .to_svg()
    }
}

/// Where the time of a worker's requests went.
fn times_of(worker: &WorkerRecord) -> String {
    let each = |us: u64| us as f64 / 1e3 / worker.requests.max(1) as f64;
    let lost = match worker.recomputed {
        0 => String::new(),
        rows => format!("; {rows} rows computed elsewhere"),
    };
    format!(
        "{}: {} requests, each {:.2} ms computing, {:.2} ms on the wire; the head waited {:.2} ms of \
         it{lost}",
        printable(&worker.name),
        worker.requests,
        each(worker.compute_us),
        each(worker.wire_us()),
        each(worker.wait_us)
    )
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn described(change: &Change) -> String {
    match change {
        Change::Memory { factor, experts, memory_bytes } => {
            let size =
                memory_bytes.map_or(String::new(), |size| format!(" ({})", format_bytes(size)));
            format!("memory × {factor}{size}: {experts} experts stay")
        }
        Change::AllExperts { experts } => format!("memory for all {experts} experts"),
        Change::Cores { threads, measured: false, .. } => {
            format!("{} if computing scales", cores(*threads))
        }
        Change::Gpu { like, experts, more_ram, .. } => {
            let ram = if *more_ram { " and RAM for all" } else { "" };
            format!("{}{ram}, as {like} is described: {experts} experts on it", short(change))
        }
        change => short(change),
    }
}

fn short(change: &Change) -> String {
    match change {
        Change::Memory { factor, .. } => format!("memory × {factor}"),
        Change::AllExperts { .. } => "memory for all experts".into(),
        Change::Disk { factor } => format!("disk × {factor}"),
        Change::Cores { threads, .. } => cores(*threads),
        Change::Policy { name } => format!("policy {name}"),
        Change::Prefetch { name: "none" } => "no prefetch".into(),
        Change::Prefetch { name } => format!("prefetch {name}"),
        Change::Gpu { memory_gib, .. } => format!("a GPU of {memory_gib} GB"),
    }
}

fn cores(threads: u32) -> String {
    if threads == 1 { "1 core".into() } else { format!("{threads} cores") }
}
