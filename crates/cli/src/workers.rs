//! Workers of a head: met once by a code, reached before files are given up, given to the engine.

use crate::args::WorkersArgs;
use crate::known::Known;
use crate::state;
use crate::terminal::note;
use anyhow::{Context, Result, anyhow, bail, ensure};
use motley_engine::blocks::remote::{
    Deadlines, RemoteFigures, RemoteUnit, RemoteWorker, SharedRemoteFigures, WorkerAddress,
};
use motley_engine::{Engine, identity};
use motley_wire::{Fingerprint, Identity, Peers, pair_with};
use std::io::{BufRead, IsTerminal, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Time for a worker to answer while it is met.
const PAIR_TIME: Duration = Duration::from_secs(10);

/// Workers that were reached.
pub(crate) struct Workers {
    reached: Vec<RemoteWorker>,
    ports: Vec<u16>,
    figures: SharedRemoteFigures,
}

impl Workers {
    /// Reaches those that were named, if any; asks for the code of one not met before.
    pub(crate) fn reach(asked: &WorkersArgs, known: &Known, exact: bool) -> Result<Option<Self>> {
        if asked.workers.is_empty() {
            return Ok(None);
        }
        ensure!(known.spec.is_moe(), "--workers: this model has no experts to send away");
        let folder = folder()?;
        let identity = Arc::new(Identity::load_or_make(&folder)?);
        let model = identity::identity(&known.spec, &known.files).context("the model's files")?;
        let mut peers = Peers::load(&folder)?;
        let (mut reached, mut ports) = (Vec::new(), Vec::new());
        for name in &asked.workers {
            let address = resolve(name)?;
            let peer = match peers.of(name) {
                Some(peer) => peer,
                None => meet(name, address, &identity, asked, &mut peers)?,
            };
            let address = WorkerAddress { name: address.to_string(), peer };
            let worker = RemoteUnit::reach(&address, &identity, model)
                .map_err(|reason| anyhow!("worker {name}: {reason}"))?;
            check_build(name, &worker.welcomed.build, exact)?;
            ports.push(port_of(&address.name));
            reached.push(RemoteWorker { name: name.clone(), ..worker });
        }
        Ok(Some(Self { reached, ports, figures: SharedRemoteFigures::default() }))
    }

    /// Ports that connections are made to.
    pub(crate) fn ports(&self) -> &[u16] {
        &self.ports
    }

    /// Every session of `engine` sends rows to them.
    pub(crate) fn attach(&self, engine: &mut Engine) {
        let (workers, figures) = (self.reached.clone(), Arc::clone(&self.figures));
        let layers = engine.spec().layers.len();
        engine.set_first_unit(Arc::new(move |_| {
            let figures = Arc::clone(&figures);
            Box::new(RemoteUnit::new(layers, &workers, Deadlines::default(), figures))
        }));
    }

    /// One line: who computes what.
    pub(crate) fn chosen(&self) -> String {
        let one = |worker: &RemoteWorker| {
            let (first, end) = worker.welcomed.experts;
            let layers = worker.welcomed.layers.len();
            format!("{} (experts {first}–{} of {layers} layers)", worker.name, end - 1)
        };
        let all: Vec<String> = self.reached.iter().map(one).collect();
        format!("workers: {}", all.join(", "))
    }

    /// What they did so far.
    pub(crate) fn figures(&self) -> Vec<RemoteFigures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Where keys and known peers are kept.
pub(crate) fn folder() -> Result<PathBuf> {
    Ok(state::folder()?.join("workers"))
}

/// This build's kernels, in words: heads that want exactness compare them.
pub(crate) fn build() -> String {
    let features = motley_engine::cpu_features().join(" ");
    format!("motley {} {features}", env!("CARGO_PKG_VERSION"))
}

fn check_build(name: &str, build: &str, exact: bool) -> Result<()> {
    let own = self::build();
    if exact && build != own {
        bail!("worker {name} computes with other kernels, which --exact rules out: {build}; {own}");
    }
    Ok(())
}

fn resolve(name: &str) -> Result<SocketAddr> {
    let mut found = name.to_socket_addrs().with_context(|| format!("--workers {name}"))?;
    found.next().with_context(|| format!("--workers {name}: no such host"))
}

fn port_of(address: &str) -> u16 {
    address.parse::<SocketAddr>().map_or(0, |address| address.port())
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
