//! `motley serve`: from flags to a running server; Ctrl-C drains it.
//!
//! * `plan`: each model's place in memory, before anything is loaded.
//! * `load`: loading them, when the server says.

mod load;
mod plan;

use crate::api_key;
use crate::args::{Global, Serve};
use crate::sandbox::{Needs, Sandbox};
use crate::workers::Workers;
use crate::{state, system};
use anyhow::{Context, Result, ensure};
use motley_engine::batching::PrefixCache;
use motley_engine::{EnergyWatch, Runtime, Seam};
use motley_model::Pooling;
use motley_server::{
    ApiKey, OfferedModel, OfferedModels, ServeError, ServeLimits, ServeOptions, Server, Telemetry,
    bodies_bytes,
};
use plan::Planned;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Threads that talk to clients; computing has its own.
const TALKING_THREADS: usize = 2;

/// Runs the command.
pub(crate) fn run(global: &Global, serve: &Serve) -> Result<()> {
    // Before minutes are spent on loading.
    let keys = api_key::read(&serve.safety)?;
    let runtime = Runtime::start(Seam::Registered)?;
    let mut plans = plan::plan(&runtime, global, serve)?;
    let folder = prefix_folder(serve, &plans.models)?;
    for model in &mut plans.models {
        model.keep_prefixes(serve.prefix_cache, folder.as_deref());
    }
    // Meters are looked for before files are given up, and read by a thread started after it.
    let energy = EnergyWatch::of(Path::new("/"), &plans.models[0].decision);
    let written: Vec<_> = serve.npu.written().into_iter().chain(folder).collect();
    let traces = serve.otlp.find()?;
    let one = &plans.models[0];
    let workers = Workers::divided(&serve.workers, runtime, &one.files[0], &one.decision)?;
    let needs = Needs {
        model_files: plans.models.iter().flat_map(|model| model.files.clone()).collect(),
        devices: plans.models.iter().any(|model| !model.decision.devices.is_empty()),
        written: &written,
        library: serve.npu.load_library()?,
        outgoing_ports: traces.port().into_iter().chain(worker_ports(workers.as_ref())).collect(),
    };
    let sandbox = Sandbox::restrict_files(serve.sandbox.sandbox, needs)?;
    let talking = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(TALKING_THREADS)
        .enable_all()
        .build()
        .context("cannot start threads for clients")?;
    let options = ServeOptions { telemetry: traces.start()?, ..serve_options(serve, keys, energy) };
    let offered = load::offered(runtime, global, serve, (plans, workers));
    talking.block_on(answer(global, offered, options, &sandbox))
}

async fn answer(
    global: &Global,
    offered: OfferedModels,
    options: ServeOptions,
    sandbox: &Sandbox,
) -> Result<()> {
    let has_key = !options.keys.is_empty();
    let names: Vec<String> = offered.models.iter().map(|model| model.name.clone()).collect();
    let use_of = use_of(&offered.models);
    // One alone is wanted by everybody; of several nobody knows which.
    let at_once: &[usize] = if names.len() == 1 { &[0] } else { &[] };
    let server = Server::start(offered, at_once, options).await.map_err(unwrapped)?;
    // Before sockets are given up.
    system::say_ready();
    sandbox.restrict_calls()?;
    announce(global, (server.address(), use_of), &names, has_key);
    if !server.run(told_to_stop()).await && !global.json {
        eprintln!("motley: some answers were cut off");
    }
    Ok(())
}

/// An error of loading in its own words, with all its reasons.
fn unwrapped(error: ServeError) -> anyhow::Error {
    match error {
        ServeError::Load(error) => match error.downcast::<load::Failed>() {
            Ok(failed) => failed.0,
            Err(error) => anyhow::Error::from_boxed(error),
        },
        ServeError::Listen { .. } => error.into(),
    }
}

fn worker_ports(workers: Option<&Workers>) -> Vec<u16> {
    workers.map_or_else(Vec::new, |workers| workers.ports().to_vec())
}

/// The folder for beginnings of prompts, made before files are given up.
fn prefix_folder(serve: &Serve, planned: &[Planned]) -> Result<Option<PathBuf>> {
    if serve.prefix_cache.is_none() {
        return Ok(None);
    }
    ensure!(
        !planned[0].decision.exact,
        "--prefix-cache: the plan is exact, so every prompt is computed whole"
    );
    ensure!(
        planned.iter().any(|model| model.batch.embedding.is_none()),
        "--prefix-cache: vectors are made of whole texts, so nothing of one is kept for others"
    );
    let folder = match &serve.prefix_folder {
        Some(folder) => folder.clone(),
        None => state::cache_folder()?.join("prefixes"),
    };
    PrefixCache::make_folder(&folder)
        .with_context(|| format!("--prefix-cache: cannot make {}", folder.display()))?;
    Ok(Some(folder))
}

fn serve_options(serve: &Serve, keys: Vec<ApiKey>, energy: EnergyWatch) -> ServeOptions {
    let safety = &serve.safety;
    let body_bytes = usize::try_from(safety.max_body).unwrap_or(usize::MAX);
    let peer_connections = safety.peer_connections.unwrap_or(safety.connections.div_ceil(4));
    ServeOptions {
        address: SocketAddr::new(serve.host, serve.port),
        strict_model: serve.strict_model,
        keys,
        cors_origin: safety.cors.clone(),
        log_text: safety.log_text,
        telemetry: Telemetry::default(),
        energy: Arc::new(energy.count()),
        limits: ServeLimits {
            waiting: serve.queue as usize,
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

/// What the models are for, when it is not chatting.
fn use_of(models: &[OfferedModel]) -> Option<&'static str> {
    let embedding = models.iter().map(|model| model.spec.embedding).collect::<Option<Vec<_>>>()?;
    let ranks = embedding.iter().all(|embedding| embedding.pooling == Pooling::Rank);
    Some(if ranks { "scores of texts on /v1/rerank" } else { "vectors of texts on /v1/embeddings" })
}

fn announce(
    global: &Global,
    (address, use_of): (SocketAddr, Option<&str>),
    names: &[String],
    has_key: bool,
) {
    if global.json {
        println!("{}", serde_json::json!({ "url": format!("http://{address}"), "models": names }));
        return;
    }
    if names.len() > 1 {
        eprintln!("motley: loaded when asked for: {}", names.join(", "));
    }
    let chat = format!("chat on http://{address}/, OpenAI API on http://{address}/v1");
    let told = use_of.map_or(chat, |what| format!("http://{address} has {what}"));
    eprintln!("motley: {told}");
    if !address.ip().is_loopback() && !has_key {
        eprintln!("motley: anyone who reaches this address may use it; --api-key asks for a key");
    }
}

/// Done at the first Ctrl-C or, on Unix, SIGTERM; a second Ctrl-C ends at once.
async fn told_to_stop() {
    system::told_to_stop().await;
    tokio::spawn(async {
        let _ = tokio::signal::ctrl_c().await;
        motley_engine::exit_now(130);
    });
}
