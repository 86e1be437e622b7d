//! `motley measure-job`: one engine in a process of its own, driven by a JSON
//! job on stdin, answering with JSON on stdout. `bench` runs the bare engine and
//! Motley this way, and the exactness tests compare their logits.

use crate::args::WorkersArgs;
use crate::terminal::print_json;
use crate::workers::Workers;
use anyhow::{Context, Result, ensure};
use motley_engine::process_memory::{self, ProcessMemory};
use motley_engine::streams::{StreamsShape, decode_streams, likeliest, made_up};
use motley_engine::{
    EnergyWatch, Engine, EngineOptions, FaultPlan, Loading, RoutedBlock, RoutingWatcher, Runtime,
    Seam, Session, SessionOptions, Speculate, StreamingOptions, ThreadSet, ThreadSets,
};
use motley_model::KvType;
use motley_plan::{Decision, ExpertKernels};
use motley_trace::RunRecord;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What a worker is to do.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) model: PathBuf,
    /// Without the seam: the bare engine.
    #[serde(default)]
    pub(crate) bare: bool,
    /// Execute this; the settings below are for tests without one.
    #[serde(default)]
    pub(crate) decision: Option<Decision>,
    #[serde(default)]
    pub(crate) on_demand: bool,
    #[serde(default)]
    pub(crate) repack: bool,
    /// How the CPU computes experts; by default as the engine does when `repack` is set, else as
    /// the bare engine does.
    #[serde(default)]
    pub(crate) kernels: Option<ExpertKernels>,
    #[serde(default)]
    pub(crate) threads: Option<u32>,
    #[serde(default)]
    pub(crate) memory: Option<u64>,
    /// Names; the engine's defaults when absent.
    #[serde(default)]
    pub(crate) policy: Option<String>,
    #[serde(default)]
    pub(crate) prefetch: Option<String>,
    /// Ablations: through the page cache; load first, then compute.
    #[serde(default)]
    pub(crate) buffered: bool,
    #[serde(default)]
    pub(crate) serial: bool,
    /// Reads out of 1000 that fail, and that come short.
    #[serde(default)]
    pub(crate) faults: (u16, u16),
    pub(crate) context: u32,
    #[serde(default)]
    pub(crate) kv: KvType,
    #[serde(default)]
    pub(crate) windows: bool,
    pub(crate) chunk: u32,
    /// Prompt: these tokens; when empty, `prefill` made-up ones.
    #[serde(default)]
    pub(crate) tokens: Vec<i32>,
    /// With `prefill`: this text instead, cut to so many tokens.
    #[serde(default)]
    pub(crate) text: Option<String>,
    #[serde(default)]
    pub(crate) prefill: usize,
    /// Tokens to decode greedily after the prompt.
    pub(crate) decode: usize,
    /// How often prompt and decode are run; each is timed.
    pub(crate) repeat: u32,
    /// Streams decoded together after that, a few tokens each; 0 for none.
    #[serde(default)]
    pub(crate) streams: u32,
    /// Go on repeating for so long.
    #[serde(default)]
    pub(crate) seconds: f64,
    /// f32 KV cache and plain attention.
    #[serde(default)]
    pub(crate) precise_attention: bool,
    /// Compute logits for every prompt token, so that the last layer runs for all.
    #[serde(default)]
    pub(crate) score: bool,
    /// Where to write the logits of the last prompt token and of every decoded
    /// one, as little-endian f32; of the last repetition.
    #[serde(default)]
    pub(crate) logits: Option<PathBuf>,
    /// Other machines that compute experts, met before; not for the bare engine.
    #[serde(default)]
    pub(crate) workers: Vec<String>,
    /// Report the experts of every token and layer of the first repetition's prompt.
    #[serde(default)]
    pub(crate) routing: bool,
}

/// What a worker did.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) load_s: f64,
    pub(crate) prefill_s: Vec<f64>,
    pub(crate) decode_s: Vec<f64>,
    /// The same of all streams together.
    #[serde(default)]
    pub(crate) streams_s: Vec<f64>,
    /// Tokens decoded in the last repetition.
    pub(crate) tokens: Vec<i32>,
    pub(crate) blocks: u64,
    pub(crate) delegated: u64,
    /// Resident memory once loaded, where the system tells it.
    pub(crate) resident_bytes: Option<u64>,
    /// (read, skipped) tensor bytes while loading.
    pub(crate) load_reads: Option<(u64, u64)>,
    /// Highest resident memory, where the system tells it.
    #[serde(default)]
    pub(crate) peak_bytes: Option<u64>,
    /// How the number of slots moved.
    #[serde(default)]
    pub(crate) stream: Option<Slots>,
    /// The figures of all repetitions.
    #[serde(default)]
    pub(crate) record: Option<RunRecord>,
    /// `[layer][token]` → experts, when asked for.
    pub(crate) routing: Vec<Vec<Vec<u32>>>,
}

/// Experts that may stay: now, at least, at most.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Slots {
    pub(crate) slots: u32,
    pub(crate) slots_least: u32,
    pub(crate) slots_most: u32,
}

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let job: Job = serde_json::from_reader(std::io::stdin().lock()).context("worker job")?;
    let outcome = work(&job)?;
    print_json(&serde_json::to_string(&outcome)?)?;
    Ok(())
}

/// Divided as a run divides them, where a decision is given; else each computes all it offers.
fn workers(job: &Job, runtime: Runtime) -> Result<Option<Workers>> {
    let asked = WorkersArgs { workers: job.workers.clone(), pair_code: None };
    match &job.decision {
        Some(decision) => Workers::divided(&asked, runtime, &job.model, decision),
        None => Workers::reach(&asked, runtime, &job.model, false),
    }
}

fn work(job: &Job) -> Result<Outcome> {
    let seam = if job.bare { Seam::Absent } else { Seam::Registered };
    let runtime = Runtime::start(seam)?;
    let started = Instant::now();
    let options = engine_options(job, &runtime)?;
    let mut engine = Engine::load(runtime, &job.model, &options, &mut |_| true)?;
    if let Some(workers) = workers(job, runtime)? {
        workers.attach(&mut engine);
    }
    let load_s = started.elapsed().as_secs_f64();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let options = SessionOptions {
        context_tokens: job.context,
        kv: job.kv,
        windows: job.windows,
        chunk_tokens: job.chunk,
        precise_attention: job.precise_attention,
        scores: job.score,
        speculate: Speculate::Off,
    };
    let mut session = if job.routing {
        engine.watched_session(&options, Box::new(Keep(Arc::clone(&seen))))?
    } else {
        engine.session(&options)?
    };
    let gpus_compute = job.decision.as_ref().is_some_and(|decision| !decision.devices.is_empty());
    session.energy = EnergyWatch::by_meters(Path::new("/"), gpus_compute);
    let mut outcome = Outcome {
        load_s,
        prefill_s: Vec::new(),
        decode_s: Vec::new(),
        streams_s: Vec::new(),
        tokens: Vec::new(),
        blocks: 0,
        delegated: 0,
        resident_bytes: memory().map(|memory| memory.resident_bytes()),
        load_reads: engine.load_reads(),
        peak_bytes: None,
        stream: None,
        record: None,
        routing: Vec::new(),
    };
    let prompt = prompt(job, &engine)?;
    let begun = Instant::now();
    let mut first: Option<Vec<i32>> = None;
    let mut done = 0;
    while done < job.repeat || begun.elapsed().as_secs_f64() < job.seconds {
        measure(job, &prompt, &mut session, &mut outcome)?;
        let expected = first.get_or_insert_with(|| outcome.tokens.clone());
        ensure!(*expected == outcome.tokens, "repetition {done} gave other tokens than the first");
        done += 1;
    }
    session.energy.rest();
    for _ in 0..if job.streams > 0 { job.repeat } else { 0 } {
        let shape = streams_shape(job.streams);
        outcome.streams_s.push(decode_streams(&engine, shape)?.as_secs_f64());
    }
    let seam = session.stats().seam;
    (outcome.blocks, outcome.delegated) = (seam.blocks, seam.delegated);
    outcome.record = Some(engine.record(&session));
    outcome.peak_bytes = memory().map(|memory| memory.peak_bytes);
    outcome.stream = session.stats().stream.map(|stream| Slots {
        slots: stream.slots,
        slots_least: stream.slots_least,
        slots_most: stream.slots_most,
    });
    outcome.routing = by_layer(&seen.lock().expect("the watcher does not panic"), prompt.len());
    Ok(outcome)
}

/// What is decoded when there are several streams.
pub(crate) fn streams_shape(streams: u32) -> StreamsShape {
    StreamsShape { streams, prompt_tokens: 16, steps: 16 }
}

fn measure(job: &Job, prompt: &[i32], session: &mut Session, outcome: &mut Outcome) -> Result<()> {
    session.clear();
    outcome.tokens.clear();
    let mut sink = job.logits.as_ref().map(File::create).transpose()?.map(BufWriter::new);
    let started = Instant::now();
    if job.score {
        session.score(prompt, &mut |_, _| {})?;
    } else {
        session.prefill(prompt)?;
    }
    outcome.prefill_s.push(started.elapsed().as_secs_f64());
    let mut decode_s = 0.0;
    write_logits(&mut sink, session)?;
    for _ in 0..job.decode {
        let token = likeliest(session.logits());
        let started = Instant::now();
        session.decode(token)?;
        decode_s += started.elapsed().as_secs_f64();
        outcome.tokens.push(token);
        write_logits(&mut sink, session)?;
    }
    outcome.decode_s.push(decode_s);
    if let Some(mut sink) = sink {
        sink.flush()?;
    }
    Ok(())
}

fn write_logits(sink: &mut Option<BufWriter<File>>, session: &Session) -> Result<()> {
    let Some(sink) = sink else { return Ok(()) };
    for logit in session.logits() {
        sink.write_all(&logit.to_le_bytes())?;
    }
    Ok(())
}

fn engine_options(job: &Job, runtime: &Runtime) -> Result<EngineOptions> {
    // A measurement compares the same threads throughout.
    let same_threads = |options| EngineOptions { yields_cores: false, ..options };
    if let Some(decision) = &job.decision {
        let options = EngineOptions::of(decision, runtime, Vec::new())?;
        // The bare engine has no way to leave experts on disk, and shares none: it maps the file, and
        // computes the model as it is.
        let bare = |options: EngineOptions| EngineOptions {
            loading: Loading::Mapped,
            devices: None,
            memory_bytes: None,
            experts_used: None,
            ..options
        };
        return Ok(same_threads(if job.bare { bare(options) } else { options }));
    }
    let every = EngineOptions::default();
    let default_kernels = if job.repack { every.kernels } else { ExpertKernels::exact() };
    let threads = job.threads.map(|threads| ThreadSets::both(ThreadSet::anywhere(threads)));
    Ok(same_threads(EngineOptions {
        loading: if job.on_demand { Loading::OnDemand } else { Loading::Mapped },
        repack: job.repack,
        kernels: job.kernels.clone().unwrap_or(default_kernels),
        threads: threads.unwrap_or(every.threads),
        memory_bytes: job.memory,
        streaming: streaming_options(job)?,
        ..every
    }))
}

fn streaming_options(job: &Job) -> Result<StreamingOptions> {
    let mut options = StreamingOptions {
        direct_reads: !job.buffered,
        overlap: !job.serial,
        ..StreamingOptions::default()
    };
    if let Some(policy) = &job.policy {
        options.rules.ram.policy = policy.parse()?;
    }
    if let Some(prefetch) = &job.prefetch {
        options.rules.ram.prefetch = prefetch.parse()?;
    }
    options.rules.devices = options.rules.ram;
    let (eio_per_mille, short_per_mille) = job.faults;
    if job.faults != (0, 0) {
        let plan = FaultPlan { seed: 1, eio_per_mille, short_per_mille, ..FaultPlan::default() };
        options.faults = Some(plan);
    }
    Ok(options)
}

/// The job's prompt, or one that visits the vocabulary in large strides.
fn prompt(job: &Job, engine: &Engine) -> Result<Vec<i32>> {
    if !job.tokens.is_empty() {
        return Ok(job.tokens.clone());
    }
    if let Some(text) = &job.text {
        let mut tokens = engine.tokenize(text)?;
        tokens.truncate(job.prefill);
        return Ok(tokens);
    }
    Ok((0..job.prefill).map(|index| made_up(engine, index)).collect())
}

/// This process's memory.
fn memory() -> Option<ProcessMemory> {
    process_memory::of_self(Path::new("/"))
}

/// Keeps what it sees.
struct Keep(Arc<Mutex<Vec<RoutedBlock>>>);

impl RoutingWatcher for Keep {
    fn on_routed(&mut self, routed: &RoutedBlock) {
        self.0.lock().expect("nobody panics with this lock").push(routed.clone());
    }
}

/// The prompt's routing, `[layer][token]`. The last layer computes only the tokens
/// whose logits are wanted, so without `score` its list is shorter.
fn by_layer(seen: &[RoutedBlock], prompt_tokens: usize) -> Vec<Vec<Vec<u32>>> {
    let mut layers: Vec<Vec<Vec<u32>>> = Vec::new();
    for routed in seen {
        let layer = routed.layer as usize;
        if layers.len() <= layer {
            layers.resize(layer + 1, Vec::new());
        }
        let room = prompt_tokens.saturating_sub(layers[layer].len());
        let tokens = (0..routed.tokens().min(room)).map(|token| routed.token(token).to_vec());
        layers[layer].extend(tokens);
    }
    layers
}
