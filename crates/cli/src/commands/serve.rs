//! `motley serve`: from flags to a running server; Ctrl-C drains it.

use crate::api_key;
use crate::args::{Global, Serve};
use crate::known::Known;
use crate::load::execute;
use crate::npu;
use crate::sandbox::Sandbox;
use crate::state;
use anyhow::{Context, Result, ensure};
use motley_engine::batching::PrefixCache;
use motley_engine::{BatchOptions, EnergyWatch, Engine, Runtime, Seam};
use motley_plan::budget::saved_states;
use motley_plan::{Decision, Outputs};
use motley_server::{ServeLimits, ServeOptions, Server, bodies_bytes};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What a disk reads that was not measured: less than most of those that hold models.
const DISK_BYTES_PER_SECOND: f64 = 1e9;

/// Threads that talk to clients; computing has its own.
const TALKING_THREADS: usize = 2;

/// Runs the command.
pub(crate) fn run(global: &Global, serve: &Serve) -> Result<()> {
    // Before minutes are spent on loading.
    let api_key = api_key::read(&serve.safety)?;
    let runtime = Runtime::start(Seam::Registered)?;
    let outputs = Outputs::Streams(serve.streams);
    let mut known = Known::to_run(&runtime, global, &serve.model, serve.load.trust)?;
    known.measure_once(&runtime, global)?;
    let (decision, share) = npu::decide(&known, &serve.loading(), outputs, &serve.npu)?;
    let paced = serve.step_time.is_some();
    ensure!(
        !(decision.exact && paced),
        "--step-time: the plan is exact, so chunks have one length"
    );
    let prefixes = prefix_cache(serve, &known, &decision)?;
    // Meters are looked for before files are given up, and read by a thread started after it.
    let energy = EnergyWatch::of(Path::new("/"), &decision);
    let folder = prefixes.as_ref().map(|cache| cache.folder.clone());
    let written: Vec<_> = serve.npu.written().into_iter().chain(folder).collect();
    let needed = (&written[..], serve.npu.load_library()?);
    let sandbox = Sandbox::restrict_files(serve.sandbox.sandbox, &known.files, &decision, needed)?;
    let mut engine = execute(runtime, global, known, &decision, false)?;
    if !global.json {
        npu::announce(&serve.npu, &share);
    }
    npu::attach(&mut engine, &serve.npu, decision.session.chunk_tokens, Some(share))?;
    let talking = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(TALKING_THREADS)
        .enable_all()
        .build()
        .context("cannot start threads for clients")?;
    let options = serve_options(serve, api_key, engine.memory_bytes(), energy, prefixes);
    let batch = batch_options(serve, &decision);
    talking.block_on(answer(global, &batch, options, Arc::new(engine), &sandbox))
}

async fn answer(
    global: &Global,
    batch: &BatchOptions,
    options: ServeOptions,
    engine: Arc<Engine>,
    sandbox: &Sandbox,
) -> Result<()> {
    let has_key = options.api_key.is_some();
    let server = Server::start(engine, batch, options).await?;
    tell_the_system();
    sandbox.restrict_calls()?;
    announce(global, server.address(), has_key);
    if !server.run(told_to_stop()).await && !global.json {
        eprintln!("motley: some answers were cut off");
    }
    Ok(())
}

/// Tells a service manager that waits for it that clients are listened to; before sockets are given
/// up.
fn tell_the_system() {
    #[cfg(target_os = "linux")]
    if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
        tracing::warn!("the service manager does not hear that the server is ready: {error}");
    }
}

/// The folder for beginnings of prompts, made before files are given up.
fn prefix_cache(serve: &Serve, known: &Known, decision: &Decision) -> Result<Option<PrefixCache>> {
    let Some(most_bytes) = serve.prefix_cache else { return Ok(None) };
    ensure!(
        !decision.exact,
        "--prefix-cache: the plan is exact, so every prompt is computed whole"
    );
    let folder = match &serve.prefix_folder {
        Some(folder) => folder.clone(),
        None => state::cache_folder()?.join("prefixes"),
    };
    PrefixCache::make_folder(&folder)
        .with_context(|| format!("--prefix-cache: cannot make {}", folder.display()))?;
    let measured = known.measured.as_ref().and_then(|measured| measured.disk.as_ref());
    let read_bytes_per_second =
        measured.map_or(DISK_BYTES_PER_SECOND, |disk| disk.alone_gb_per_s * 1e9);
    Ok(Some(PrefixCache { folder, most_bytes, read_bytes_per_second }))
}

fn batch_options(serve: &Serve, decision: &Decision) -> BatchOptions {
    BatchOptions {
        context_tokens: decision.session.context_tokens,
        longest_tokens: decision.longest_tokens.unwrap_or(u32::MAX),
        kv: decision.session.kv,
        sequences: serve.streams,
        step_tokens: decision.session.chunk_tokens,
        prefill_beside_decode: serve.prefill_beside,
        step_time: serve.step_time.map(|ms| Duration::from_millis(ms.into())),
        waiting: serve.queue as usize,
        own_caches: serve.stream_context.is_some(),
        share_prefixes: !serve.safety.no_share_prefix,
        saved_states: saved_states(serve.streams),
        exact: decision.exact,
    }
}

fn serve_options(
    serve: &Serve,
    api_key: Option<String>,
    memory_bytes: Option<u64>,
    energy: EnergyWatch,
    prefix_cache: Option<PrefixCache>,
) -> ServeOptions {
    let safety = &serve.safety;
    let body_bytes = usize::try_from(safety.max_body).unwrap_or(usize::MAX);
    let peer_connections = safety.peer_connections.unwrap_or(safety.connections.div_ceil(4));
    let file_stem = serve.model.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    ServeOptions {
        address: SocketAddr::new(serve.host, serve.port),
        model_name: serve.alias.clone().or(file_stem).unwrap_or_else(|| "model".into()),
        strict_model: serve.strict_model,
        api_key,
        cors_origin: safety.cors.clone(),
        prefix_cache,
        log_text: safety.log_text,
        memory_bytes,
        energy: Arc::new(energy.count()),
        limits: ServeLimits {
            body_bytes,
            bodies_bytes: bodies_bytes(body_bytes),
            header_time: Duration::from_secs(safety.header_timeout),
            write_time: Duration::from_secs(safety.write_timeout),
            connections: safety.connections as usize,
            peer_connections: peer_connections as usize,
            drain_time: Duration::from_secs(safety.drain_timeout),
            ..ServeLimits::default()
        },
    }
}

fn announce(global: &Global, address: SocketAddr, has_key: bool) {
    if global.json {
        println!("{}", serde_json::json!({ "url": format!("http://{address}") }));
        return;
    }
    eprintln!("motley: chat on http://{address}/, OpenAI API on http://{address}/v1");
    if !address.ip().is_loopback() && !has_key {
        eprintln!("motley: anyone who reaches this address may use it; --api-key asks for a key");
    }
}

/// Done at the first Ctrl-C or, on Unix, SIGTERM; a second Ctrl-C ends at once.
async fn told_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => {
                tokio::select! {
                    _ = tokio::signal::ctrl_c() => {}
                    _ = terminate.recv() => {}
                }
            }
            Err(_) => drop(tokio::signal::ctrl_c().await),
        }
    }
    #[cfg(not(unix))]
    drop(tokio::signal::ctrl_c().await);
    tokio::spawn(async {
        let _ = tokio::signal::ctrl_c().await;
        std::process::exit(130);
    });
}
