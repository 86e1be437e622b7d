//! `motley run`: streams a continuation, or chats when no prompt is given.

use crate::args::{Global, Run};
use crate::known::Known;
use crate::last::{self, LastRun, write_record};
use crate::load::{execute, sampling};
use crate::npu::{self, NpuFigures, NpuRow};
use crate::sandbox::Sandbox;
use crate::terminal::{self, note, print_json};
use crate::timeline;
use anyhow::{Context, Result};
use motley_engine::{
    ChatMessage, EnergyWatch, Engine, Finish, Generation, MachineHandle, MachineReport, Runtime,
    Seam, Session, SessionOptions, SessionStats, StreamFigures, TextStream,
};
use motley_plan::{Decision, Outputs};
use motley_trace::EnergyRecord;
use serde::Serialize;
use std::io::{BufRead, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Runs the command.
pub(crate) fn run(global: &Global, run: &Run) -> Result<()> {
    let runtime = Runtime::start(Seam::Registered)?;
    let mut known = Known::to_run(&runtime, global, &run.model, run.load.trust)?;
    known.measure_once(&runtime, global)?;
    let (decision, share) = npu::decide(&known, &run.load, Outputs::Streams(1), &run.npu)?;
    // Meters are looked for before files are given up.
    let energy = EnergyWatch::of(Path::new("/"), &decision);
    let sandbox = restrict_files(run, &known, &decision)?;
    let mut engine = execute(runtime, global, known, &decision, timeline::is_wanted(run))?;
    if !global.json {
        npu::announce(&run.npu, &share);
    }
    let chunk_tokens = decision.session.chunk_tokens;
    let on_graphs = npu::attach(&mut engine, &run.npu, chunk_tokens, Some(share))?;
    timeline::check(run, &engine)?;
    let last = LastRun::start(&engine, &run.model, !run.no_record);
    let mut session = last::session(&engine, &SessionOptions::of(&decision), last.as_ref())?;
    session.energy = energy;
    sandbox.restrict_calls()?;
    let generation =
        Generation { sampling: sampling(&run.sampling), max_tokens: run.tokens, ignore_end: false };
    let units = Units { engine: &engine, on_graphs };
    match &run.prompt {
        Some(prompt) => complete(global, &units, &mut session, prompt, &generation)?,
        None => chat(global, &units, &mut session, &generation)?,
    }
    if let Some(energy) = engine.record(&session).energy.filter(|_| !global.json) {
        note(&energy.to_string());
    }
    if let Some(last) = last {
        last.finish(&engine, &session);
    }
    timeline::write(run, &engine, &session)?;
    run.stats.as_ref().map_or(Ok(()), |path| write_record(path, &engine, &session))
}

/// What is written: the last run, and what flags name.
fn restrict_files(run: &Run, known: &Known, decision: &Decision) -> Result<Sandbox> {
    let kept = if run.no_record { None } else { last::make_folder() };
    let named = [&run.stats, &run.timeline, &run.picture].into_iter().flatten().cloned();
    let written: Vec<PathBuf> = kept.into_iter().chain(named).chain(run.npu.written()).collect();
    let library = run.npu.load_library()?;
    Sandbox::restrict_files(run.sandbox.sandbox, &known.files, decision, (&written, library))
}

/// The engine, and what tells of the static graphs beside it.
struct Units<'a> {
    engine: &'a Engine,
    on_graphs: Option<NpuFigures>,
}

impl Units<'_> {
    /// What static graphs did since the last time, all layers together.
    fn graphs(&self) -> Option<NpuRow> {
        self.on_graphs.as_ref().and_then(|figures| figures().pop())
    }

    /// What units beside the CPU did, as the end of a line.
    fn said(&self) -> String {
        let graphs = self.graphs().map_or(String::new(), |row| {
            let (share, dropped) = (100.0 * row.device_share, 100.0 * row.drop_rate);
            let (launches, spilled) = (row.launches, row.spilled);
            format!(
                "; static graphs computed {share:.0} % of prompts' pairs in {launches} launches, \
                 {spilled} went to other units, {dropped:.1} % were dropped"
            )
        });
        shared(self.engine) + &graphs
    }
}

fn complete(
    global: &Global,
    units: &Units<'_>,
    session: &mut Session,
    prompt: &str,
    generation: &Generation,
) -> Result<()> {
    let engine = units.engine;
    let tokens = engine.tokenize(prompt)?;
    let interrupted = interrupt_flag()?;
    let answer = answer(engine, session, &tokens, generation, &interrupted, !global.json)?;
    if global.json {
        let report = RunReport {
            energy: engine.record(session).energy,
            npu: units.graphs(),
            ..RunReport::new(&answer, tokens.len(), &session.stats())
        };
        return print_json(&serde_json::to_string(&report)?);
    }
    writeln!(std::io::stdout())?;
    if global.verbose > 0 {
        note(&(figures(&session.stats()) + &units.said()));
    }
    Ok(())
}

fn chat(
    global: &Global,
    units: &Units<'_>,
    session: &mut Session,
    generation: &Generation,
) -> Result<()> {
    let (engine, interrupted) = (units.engine, interrupt_flag()?);
    let mut messages = Vec::new();
    let mut known: Vec<i32> = Vec::new();
    loop {
        let Some(line) = read_line()? else { return Ok(()) };
        messages.push(ChatMessage::new("user", &line));
        let tokens = engine.chat_tokens(&messages)?;
        // What the cache already holds of this conversation is not computed again;
        // at least one token is, for its logits.
        let common = known.iter().zip(&tokens).take_while(|(a, b)| a == b).count();
        let mut kept = common.min(tokens.len().saturating_sub(1));
        if !session.truncate(kept as u32) {
            session.clear();
            kept = 0;
        }
        interrupted.store(false, Relaxed);
        let answer = answer(engine, session, &tokens[kept..], generation, &interrupted, true)?;
        writeln!(std::io::stdout())?;
        if global.verbose > 0 {
            note(&(figures(&session.stats()) + &units.said()));
        }
        known = tokens;
        known.extend(&answer.tokens);
        known.truncate(session.len() as usize);
        messages.push(ChatMessage::new("assistant", &answer.text));
    }
}

struct Answer {
    text: String,
    tokens: Vec<i32>,
    finish: Finish,
}

fn answer(
    engine: &Engine,
    session: &mut Session,
    prompt: &[i32],
    generation: &Generation,
    interrupted: &AtomicBool,
    show: bool,
) -> Result<Answer> {
    let mut stream = TextStream::default();
    let mut answer = Answer { text: String::new(), tokens: Vec::new(), finish: Finish::Length };
    let mut output = std::io::stdout().lock();
    let is_terminal = output.is_terminal();
    let mut written = Ok(());
    answer.finish = session.generate(prompt, generation, &mut |token| {
        let text = stream.push(&engine.token_bytes(token));
        if show {
            written = terminal::answer(&mut output, is_terminal, &text);
        }
        answer.text.push_str(&text);
        answer.tokens.push(token);
        if written.is_err() || interrupted.load(Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    session.energy.rest();
    written?;
    let rest = stream.finish();
    if show {
        terminal::answer(&mut output, is_terminal, &rest)?;
    }
    answer.text.push_str(&rest);
    Ok(answer)
}

/// Ctrl-C stops the answer and leaves the program running to its end.
fn interrupt_flag() -> Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    let handler = Arc::clone(&flag);
    ctrlc::set_handler(move || {
        if handler.swap(true, Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(flag)
}

fn read_line() -> Result<Option<String>> {
    if std::io::stdin().is_terminal() {
        eprint!("> ");
    }
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim_end().to_owned()))
}

fn figures(stats: &SessionStats) -> String {
    let delegated = match stats.seam.delegated_reason {
        Some(reason) => format!("{} ({reason})", stats.seam.delegated),
        None => stats.seam.delegated.to_string(),
    };
    format!(
        "prefill {} tokens at {:.1}/s, decode {} at {:.1}/s; {} expert blocks, {delegated} delegated",
        stats.prefill_tokens,
        rate(stats.prefill_tokens, stats.prefill_time),
        stats.decode_tokens,
        rate(stats.decode_tokens, stats.decode_time),
        stats.seam.blocks,
    ) + &changes(stats)
        + &stats.stream.map_or(String::new(), |stream| streamed(stats, &stream))
}

/// What the device beside the CPU did.
fn shared(engine: &Engine) -> String {
    let Some(report) = engine.devices().map(MachineHandle::report) else { return String::new() };
    let MachineReport { cache_slots, refused, refused_reason, figures } = report;
    let pairs = figures.routed_pairs.max(1) as f64;
    let refused = refused_reason
        .map_or(String::new(), |reason| format!(", {refused} blocks refused ({reason})"));
    format!(
        "; device with {cache_slots} experts computed {:.0} % of pairs in {} launches, {} copies \
         on demand, {} on a guess, {} of them unused{refused}",
        100.0 * figures.device_pairs as f64 / pairs,
        figures.launches,
        figures.demanded_copies,
        figures.guessed_copies,
        figures.guessed_unused,
    )
}

/// How often other programs made decode go on with fewer or more threads.
fn changes(stats: &SessionStats) -> String {
    match stats.thread_changes {
        0 => String::new(),
        changes => format!(", threads changed {changes} times"),
    }
}

/// What streaming did: hits, bytes per token, how busy the disk was, waiting.
fn streamed(stats: &SessionStats, stream: &StreamFigures) -> String {
    let tokens = (stats.prefill_tokens + stats.decode_tokens).max(1) as f64;
    let time = (stats.prefill_time + stats.decode_time).as_secs_f64().max(1e-9);
    let both = stats.prefill.plus(&stats.decode);
    let predicted = stream.predicted.map_or(String::new(), |seen| {
        let share = 100.0 * seen.right as f64 / seen.predicted.max(1) as f64;
        format!(", next layer predicted {share:.0} %")
    });
    let shrunk = match stream.slots < stream.slots_most {
        true => format!(", {} of {} slots while memory is scarce", stream.slots, stream.slots_most),
        false => String::new(),
    };
    format!(
        "; {:.0} % of experts were resident, {:.1} MB read per token at {:.0} MB/s, disk busy {:.0} %, waited {:.1} ms per token{predicted}{shrunk}",
        100.0 * both.hit_rate(),
        stream.disk.bytes as f64 / 1e6 / tokens,
        stream.disk.mb_per_s(),
        100.0 * stream.disk.busy.as_secs_f64() / time,
        1e3 * both.stall_s / tokens,
    )
}

fn rate(tokens: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { tokens as f64 / time.as_secs_f64() }
}

#[derive(Serialize)]
struct RunReport<'a> {
    text: &'a str,
    tokens: &'a [i32],
    finish: &'static str,
    prompt_tokens: usize,
    prefill_tokens_per_s: f64,
    decode_tokens_per_s: f64,
    expert_blocks: u64,
    delegated_splits: u64,
    /// Where static graphs took part.
    #[serde(skip_serializing_if = "Option::is_none")]
    npu: Option<NpuRow>,
    /// Absent where nobody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    energy: Option<EnergyRecord>,
}

impl<'a> RunReport<'a> {
    fn new(answer: &'a Answer, prompt_tokens: usize, stats: &SessionStats) -> Self {
        Self {
            text: &answer.text,
            tokens: &answer.tokens,
            finish: match answer.finish {
                Finish::End => "end",
                Finish::Length => "length",
                Finish::Stopped => "stopped",
            },
            prompt_tokens,
            prefill_tokens_per_s: rate(stats.prefill_tokens, stats.prefill_time),
            decode_tokens_per_s: rate(stats.decode_tokens, stats.decode_time),
            expert_blocks: stats.seam.blocks,
            delegated_splits: stats.seam.delegated,
            npu: None,
            energy: None,
        }
    }
}
