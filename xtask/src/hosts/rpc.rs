//! A worker beside llama.cpp's RPC, which splits a model by layers and sends the weights over the cable
//! at every load. Both with the same memory, cores and cable; llama.cpp's own programs, built with
//! `GGML_RPC=ON` (decision 0102).

use super::beyond::{HOST_BYTES, MBIT, Pair, TOKENS, drop_and_cage};
use super::net::Host;
use super::party::named;
use crate::capped::cage::Cage;
use anyhow::{Context, Result, bail, ensure};
use motley_cost::statistics::median;
use motley_model::ModelSpec;
use serde::Serialize;
use serde_json::Value;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Its default.
const PORT: u16 = 50052;
/// What its server needs beside the weights: buffers, code and a message in flight.
const SERVER_SPARE: u64 = 600 << 20;
/// How often it is tried until it listens, and the pause between.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// Both ways, over all rounds.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    model: String,
    host_bytes: u64,
    mbit: u32,
    /// Layers that llama.cpp's server has; the head maps the others.
    layers_there: u32,
    rounds: Vec<Round>,
    /// Medians of decoded tokens per second, and of their ratio within rounds.
    with_worker_tokens_per_s: f64,
    rpc_tokens_per_s: f64,
    ratio: f64,
    load: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Round {
    with_worker_tokens_per_s: f64,
    rpc_tokens_per_s: f64,
    /// Bytes over the cable, load and answer together.
    with_worker_cable_bytes: u64,
    rpc_cable_bytes: u64,
}

/// `rounds` pairs, in turns; llama.cpp's programs are in `folder`.
pub(super) fn run(
    (program, folder): (&Path, &Path),
    model: &Path,
    rounds: usize,
    on_line: &mut dyn FnMut(&str),
) -> Result<Outcome> {
    let pair = Pair::start(program, model)?;
    let server = Server::start(folder)?;
    let layers_there = layers_there(model)?;
    let mut all = Vec::new();
    for number in 0..rounds {
        let ours = || over(&pair.worker.host, || pair.answer(true));
        let theirs = || over(&server.host, || bench(folder, &server, model, layers_there));
        let (ours, theirs) = if number % 2 == 0 {
            let ours = ours()?;
            (ours, theirs()?)
        } else {
            let theirs = theirs()?;
            (ours()?, theirs)
        };
        let said = ours.0["decode_tokens_per_s"].as_f64();
        let round = Round {
            with_worker_tokens_per_s: said.context("decoded tokens")?,
            rpc_tokens_per_s: theirs.0,
            with_worker_cable_bytes: ours.1,
            rpc_cable_bytes: theirs.1,
        };
        on_line(&format!(
            "round {number}: with a worker {:.2} tokens/s, {:.2} GB over the cable; llama.cpp's RPC {:.2}, {:.2} GB",
            round.with_worker_tokens_per_s,
            round.with_worker_cable_bytes as f64 / 1e9,
            round.rpc_tokens_per_s,
            round.rpc_cable_bytes as f64 / 1e9,
        ));
        all.push(round);
    }
    let mid =
        |of: fn(&Round) -> f64| median(&all.iter().map(of).collect::<Vec<_>>()).unwrap_or(0.0);
    let outcome = Outcome {
        model: named(model),
        host_bytes: HOST_BYTES,
        mbit: MBIT,
        layers_there,
        with_worker_tokens_per_s: mid(|round| round.with_worker_tokens_per_s),
        rpc_tokens_per_s: mid(|round| round.rpc_tokens_per_s),
        ratio: mid(|round| round.with_worker_tokens_per_s / round.rpc_tokens_per_s),
        load: motley_host::load::average(Path::new("/")).map(|load| load.one_min),
        rounds: all,
    };
    on_line(&format!(
        "medians: {:.2} with a worker, {:.2} with {layers_there} layers over llama.cpp's RPC, ratio {:.2}",
        outcome.with_worker_tokens_per_s, outcome.rpc_tokens_per_s, outcome.ratio
    ));
    Ok(outcome)
}

/// What `run` gives, and the bytes that crossed that host's cable meanwhile.
fn over<T>(host: &Host, run: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
    let before = host.bytes()?;
    let said = run()?;
    let after = host.bytes()?;
    Ok((said, after.0 - before.0 + after.1 - before.1))
}

/// Layers that fit the memory of llama.cpp's server, which cannot read any from disk.
fn layers_there(model: &Path) -> Result<u32> {
    let (spec, _) = ModelSpec::open(model)?;
    let bytes = std::fs::metadata(model)?.len();
    let each = bytes / (spec.layers.len() as u64).max(1);
    Ok(((HOST_BYTES - SERVER_SPARE) / each) as u32)
}

/// llama.cpp's server on a host of its own.
struct Server {
    host: Host,
    process: Child,
    /// After the process: a group is removed when nobody is in it.
    _cage: Cage,
}

impl Server {
    fn start(folder: &Path) -> Result<Self> {
        let host = Host::new(2)?;
        let cage = Cage::new(Some(HOST_BYTES))?;
        let program = found(folder, &["ggml-rpc-server", "rpc-server"])?;
        let mut command = cage.command(Path::new("ip"));
        command.args(host.command(&program).get_args());
        command.args(["-H", &host.address(), "-p", &PORT.to_string(), "-t", "1"]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let mut server = Self { host, process, _cage: cage };
        server.wait()?;
        server.host.set_rate(MBIT)?;
        Ok(server)
    }

    fn address(&self) -> String {
        format!("{}:{PORT}", self.host.address())
    }

    fn wait(&mut self) -> Result<()> {
        for _ in 0..TRIES {
            if TcpStream::connect(self.address()).is_ok() {
                return Ok(());
            }
            if let Some(status) = self.process.try_wait()? {
                bail!("llama.cpp's RPC server ended with {status}");
            }
            std::thread::sleep(PAUSE);
        }
        bail!("llama.cpp's RPC server does not listen on {}", self.address())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Decoded tokens per second of llama.cpp's own benchmark, with the last `layers` on the server.
fn bench(folder: &Path, server: &Server, model: &Path, layers: u32) -> Result<f64> {
    let cage = drop_and_cage()?;
    let mut command = cage.command(&found(folder, &["llama-bench"])?);
    command.args(["-o", "json", "-p", "0", "-n", TOKENS, "-r", "1", "-t", "1"]);
    command.args(["--rpc", &server.address(), "-ngl", &layers.to_string(), "-m"]).arg(model);
    let output = command.stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "llama-bench: {}, {}", output.status, said.trim());
    let runs: Value = serde_json::from_slice(&output.stdout)?;
    runs[0]["avg_ts"].as_f64().context("llama-bench gave no speed")
}

/// The first of these programs that is there.
fn found(folder: &Path, names: &[&str]) -> Result<PathBuf> {
    let there = names.iter().map(|name| folder.join(name)).find(|path| path.is_file());
    there.with_context(|| format!("no {} in {}", names[0], folder.display()))
}
