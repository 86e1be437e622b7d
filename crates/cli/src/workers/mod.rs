//! Workers of a head: met once by a code, reached before files are given up, given to the engine.
//!
//! * `divide`: which experts each of them keeps.

mod divide;

use crate::args::WorkersArgs;
use crate::state;
use crate::terminal::note;
use anyhow::{Context, Result, anyhow, bail, ensure};
use motley_engine::blocks::remote::{
    Deadlines, MeasuredWorker, RemoteUnit, RemoteWorker, WorkerAddress,
};
use motley_engine::worker::{ExpertWorker, WorkerOptions};
use motley_engine::{Engine, EngineOptions, Runtime, identity};
use motley_model::{ModelFiles, ModelSpec};
use motley_plan::budget::MIN_SLOTS;
use motley_sched::remote::ExpertSet;
use motley_wire::{Fingerprint, Identity, Peers, pair_with};
use std::io::{BufRead, IsTerminal, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time for a worker to answer while it is met.
const PAIR_TIME: Duration = Duration::from_secs(10);

/// Workers that were reached.
pub(crate) struct Workers {
    reached: Vec<RemoteWorker>,
    ports: Vec<u16>,
}

impl Workers {
    /// Reaches those that were named, if any, for the model at `path`; asks for the code of one not
    /// met before. With `exact`, they must compute as this machine does.
    pub(crate) fn reach(
        asked: &WorkersArgs,
        runtime: Runtime,
        path: &Path,
        exact: bool,
    ) -> Result<Option<Self>> {
        if asked.workers.is_empty() {
            return Ok(None);
        }
        let (spec, files) = ModelSpec::open(path)?;
        ensure!(spec.is_moe(), "--workers: this model has no experts to send away");
        let model = identity::identity(&spec, &files).context("the model's files")?;
        let mut home = home(runtime, (spec, files))?;
        let folder = folder()?;
        let identity = Arc::new(Identity::load_or_make(&folder)?);
        let mut peers = Peers::load(&folder)?;
        let (mut reached, mut ports) = (Vec::new(), Vec::new());
        for name in &asked.workers {
            let address = resolve(name)?;
            let mut reach = |peer| {
                let at = WorkerAddress { name: address.to_string(), peer };
                RemoteUnit::reach(&at, &identity, model, &mut home)
            };
            let known = peers.of(name).map(&mut reach);
            let found = match known {
                Some(Ok(worker)) => Ok(worker),
                // It has new keys, and whoever typed its code knows that.
                Some(Err(reason)) if asked.pair_code.is_none() => Err(reason),
                _ => reach(meet(name, address, &identity, asked, &mut peers)?),
            };
            let worker = found.map_err(|reason| anyhow!("worker {name}: {reason}"))?;
            check_rows(name, &worker, exact)?;
            ports.push(address.port());
            reached.push(RemoteWorker { name: name.clone(), ..worker });
        }
        Ok(Some(Self { reached, ports }))
    }

    /// Cables and cores of all, with the model at `path` here as well.
    pub(crate) fn measure(&self, runtime: Runtime, path: &Path) -> Result<Vec<MeasuredWorker>> {
        let mut home = home(runtime, ModelSpec::open(path)?)?;
        let measure = |worker: &RemoteWorker| {
            worker.measure(&mut home).map_err(|reason| anyhow!("worker {}: {reason}", worker.name))
        };
        self.reached.iter().map(measure).collect()
    }

    /// Those that were reached.
    pub(crate) fn reached(&self) -> &[RemoteWorker] {
        &self.reached
    }

    /// Ports that connections are made to.
    pub(crate) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Every session of `engine` sends rows to them.
    pub(crate) fn attach(&self, engine: &mut Engine) {
        engine.use_workers(self.reached.clone(), Deadlines::default());
    }

    /// One line: who computes what.
    pub(crate) fn chosen(&self) -> String {
        let one = |worker: &RemoteWorker| {
            let (first, end) = worker.welcomed.experts;
            let layers = worker.welcomed.layers.len();
            let what = match worker.keeps.as_ref().map(ExpertSet::count) {
                Some(0) => "only if another fails".to_owned(),
                Some(kept) => format!("{kept} of {} experts", layers * usize::from(end)),
                None => format!("experts {first}–{} of {layers} layers", end - 1),
            };
            format!("{} ({what})", worker.name)
        };
        let all: Vec<String> = self.reached.iter().map(one).collect();
        format!("workers: {}", all.join(", "))
    }
}

/// The experts of this machine's own copy, with room for hardly any.
fn home(runtime: Runtime, opened: (ModelSpec, ModelFiles)) -> Result<ExpertWorker> {
    let options = WorkerOptions::new(MIN_SLOTS, EngineOptions::default().threads);
    Ok(ExpertWorker::load(runtime, opened, &options)?)
}

/// Where keys and known peers are kept.
pub(crate) fn folder() -> Result<PathBuf> {
    Ok(state::folder()?.join("workers"))
}

/// This build's kernels, in words.
pub(crate) fn build() -> String {
    let features = motley_engine::cpu_features().join(" ");
    format!("motley {} {features}", env!("CARGO_PKG_VERSION"))
}

/// A worker whose rows differ computes with other kernels, or reads another file.
fn check_rows(name: &str, worker: &RemoteWorker, exact: bool) -> Result<()> {
    if worker.computes_alike {
        return Ok(());
    }
    let (its, own) = (&worker.welcomed.build, build());
    if exact {
        bail!(
            "worker {name} computes other rows, which --exact rules out; it is {its}, this {own}"
        );
    }
    note(&format!(
        "worker {name} computes rows that differ in their last bits: answers may differ from this \
         machine's alone; it is {its}"
    ));
    Ok(())
}

/// Where that is.
pub(crate) fn resolve(name: &str) -> Result<SocketAddr> {
    let wrong = || format!("--workers {name}: write host:port");
    let mut found = name.to_socket_addrs().with_context(wrong)?;
    found.next().with_context(|| format!("--workers {name}: no such host"))
}

/// By its code, once.
fn meet(
    name: &str,
    address: SocketAddr,
    identity: &Identity,
    asked: &WorkersArgs,
    peers: &mut Peers,
) -> Result<Fingerprint> {
    let code = match &asked.pair_code {
        Some(code) => code.clone(),
        None => ask_for_code(name)?,
    };
    let peer = pair_with(&address.to_string(), identity, code.trim(), PAIR_TIME)
        .with_context(|| format!("cannot pair with worker {name}"))?;
    peers.add(name, peer)?;
    note(&format!("paired with worker {name}: {peer}"));
    Ok(peer)
}

fn ask_for_code(name: &str) -> Result<String> {
    let stdin = std::io::stdin();
    ensure!(
        stdin.is_terminal(),
        "worker {name} is not known here: start it with `motley worker MODEL --pair` and give its \
         code with --pair-code"
    );
    eprint!("code that worker {name} shows (motley worker MODEL --pair): ");
    std::io::stderr().flush()?;
    let mut code = String::new();
    stdin.lock().read_line(&mut code)?;
    Ok(code)
}
