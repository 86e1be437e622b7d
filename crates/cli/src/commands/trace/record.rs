//! `motley trace record`: runs a model and writes down which experts every token used.
//!
//! Weights stay in llama.cpp's graph and never reach the seam, so the trace has ids only, best
//! first; what learns from weights (MRS) then takes the chosen experts as equal.

use crate::args::{Global, Record};
use crate::commands::run::write_record;
use crate::load::{load, sampling, session_options};
use anyhow::{Context, Result, bail};
use motley_engine::{Generation, Routed, RoutingWatcher, Runtime, Seam};
use motley_model::ModelSpec;
use motley_trace::record::FORMAT_VERSION;
use motley_trace::write::WriteError;
use motley_trace::{Phase, TraceHeader, TraceWriter, Visit};
use serde::Serialize;
use std::fs::File;
use std::io::BufWriter;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// Runs the command.
pub(crate) fn run(global: &Global, record: &Record) -> Result<()> {
    let text = prompt(record)?;
    let runtime = Runtime::start(Seam::Registered)?;
    let engine = load(runtime, &record.model, &record.load, global)?;
    if !engine.spec().is_moe() {
        bail!("{}: a dense model has no routing to record", record.model.display());
    }
    let tokens = engine.tokenize(&text);
    let output = &record.output;
    let file =
        File::create(output).with_context(|| format!("cannot write {}", output.display()))?;
    let writer = TraceWriter::new(BufWriter::new(file), header(engine.spec(), &record.model))?;
    let recorder = Arc::new(Mutex::new(Recorder::new(writer)));
    let watcher = Box::new(Watcher(Arc::clone(&recorder)));
    let mut session = engine.watched_session(&session_options(&record.load), watcher)?;
    let generation = Generation {
        sampling: sampling(&record.sampling, global.seed),
        max_tokens: record.tokens,
        ignore_end: true,
    };
    session.generate(&tokens, &generation, &mut |_| {
        lock(&recorder).phase = Phase::Decode;
        ControlFlow::Continue(())
    })?;
    if let Some(path) = &record.stats {
        write_record(path, &engine, &session)?;
    }
    let counts = lock(&recorder).finish().with_context(|| output.display().to_string())?;
    if session.stats().seam.delegated > 0 {
        eprintln!("motley: some expert blocks were not seen; the trace has gaps");
    }
    tell(global, output, &counts)
}

fn prompt(record: &Record) -> Result<String> {
    match (&record.prompt, &record.file) {
        (Some(text), _) => Ok(text.clone()),
        (None, Some(file)) => {
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
        }
        (None, None) => bail!("no text to continue; give -p or --file"),
    }
}

fn header(spec: &ModelSpec, path: &Path) -> TraceHeader {
    let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    TraceHeader {
        version: FORMAT_VERSION,
        model: spec.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(stem),
        layers: spec.layers.len() as u16,
        experts: spec.experts as u16,
        k: spec.used as u16,
    }
}

fn tell(global: &Global, output: &Path, counts: &Counts) -> Result<()> {
    if global.json {
        println!("{}", serde_json::to_string(counts)?);
        return Ok(());
    }
    let Counts { prefill_tokens, decode_tokens, visits } = counts;
    println!(
        "{}: {prefill_tokens} prompt and {decode_tokens} decoded tokens, {visits} visits",
        output.display()
    );
    println!("Try it: motley sim --trace {}", output.display());
    Ok(())
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct Counts {
    prefill_tokens: u64,
    decode_tokens: u64,
    visits: u64,
}

struct Watcher(Arc<Mutex<Recorder>>);

impl RoutingWatcher for Watcher {
    fn on_routed(&mut self, routed: &Routed) {
        lock(&self.0).on_routed(routed);
    }
}

fn lock(recorder: &Mutex<Recorder>) -> MutexGuard<'_, Recorder> {
    recorder.lock().expect("nobody panics with this lock")
}

/// Turns what the seam shows into visits. Layers rise within a pass, so one that does not
/// begins the next.
struct Recorder {
    writer: Option<TraceWriter<BufWriter<File>>>,
    failed: Option<WriteError>,
    phase: Phase,
    visit: Visit,
    last_layer: Option<u32>,
    /// Position of the pass's first token, and its number of tokens.
    pass: (u32, u32),
    counts: Counts,
}

impl Recorder {
    fn new(writer: TraceWriter<BufWriter<File>>) -> Self {
        Self {
            writer: Some(writer),
            failed: None,
            phase: Phase::Prefill,
            visit: Visit::default(),
            last_layer: None,
            pass: (0, 0),
            counts: Counts::default(),
        }
    }

    fn on_routed(&mut self, routed: &Routed) {
        let tokens = routed.tokens() as u32;
        if self.last_layer.is_none_or(|last| routed.layer <= last) {
            self.begin_pass(tokens);
        }
        self.last_layer = Some(routed.layer);
        if tokens == 0 {
            return;
        }
        let (first, count) = self.pass;
        // The last layer computes only the tokens whose output is wanted: the last ones, or none.
        let end = first + count;
        self.visit.layer = routed.layer as u16;
        self.visit.phase = self.phase;
        self.visit.positions = (end - tokens.min(count)..end).collect();
        self.visit.experts = routed.experts.iter().map(|&expert| expert as u16).collect();
        self.write();
    }

    fn begin_pass(&mut self, tokens: u32) {
        self.visit.pass += u64::from(self.last_layer.is_some());
        self.pass = (self.pass.0 + self.pass.1, tokens);
        match self.phase {
            Phase::Prefill => self.counts.prefill_tokens += u64::from(tokens),
            Phase::Decode => self.counts.decode_tokens += u64::from(tokens),
        }
    }

    /// After a failure nothing more is written; it is told at the end.
    fn write(&mut self) {
        let Some(writer) = self.writer.as_mut().filter(|_| self.failed.is_none()) else { return };
        match writer.write_visit(&self.visit) {
            Ok(()) => self.counts.visits += 1,
            Err(error) => self.failed = Some(error),
        }
    }

    fn finish(&mut self) -> Result<Counts, WriteError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if let Some(writer) = self.writer.take() {
            writer.finish()?;
        }
        Ok(self.counts)
    }
}
