//! A model larger than the memory of one host: from that host's disk, and divided with a second host.
//! Each host is one core with half of this machine's disk. Beside each run with a worker is what the
//! simulator makes of it (`motley explain`).

use super::party::{Head, Worker, named};
use crate::capped::cage::Cage;
use crate::capped::drop_page_cache;
use anyhow::{Context, Result, ensure};
use motley_cost::statistics::median;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// Memory of each host, and the rate of the cable between them in millions of bits per second.
pub(super) const HOST_BYTES: u64 = 4 << 30;
pub(super) const MBIT: u32 = 2500;
/// What a worker takes of that by itself; in a namespace it does not see its control group.
const WORKER_MEMORY: &str = "3700MiB";
/// Tokens of an answer.
pub(super) const TOKENS: &str = "24";
const PROMPT: &str = "The history of the city begins with the river and the people who";

/// Both ways, over all rounds.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    model: String,
    host_bytes: u64,
    mbit: u32,
    rounds: Vec<Round>,
    /// Medians of decoded tokens per second, and of their ratio within rounds.
    alone_tokens_per_s: f64,
    with_worker_tokens_per_s: f64,
    ratio: f64,
    /// Median of the simulated over the real speed with a worker, less one.
    simulated_error: f64,
    same_tokens: bool,
    load: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Round {
    alone_tokens_per_s: f64,
    with_worker_tokens_per_s: f64,
    alone_disk_bytes: Option<u64>,
    with_worker_disk_bytes: Option<u64>,
    simulated_error: f64,
}

/// `rounds` pairs, in turns.
pub(super) fn run(
    program: &Path,
    model: &Path,
    rounds: usize,
    on_line: &mut dyn FnMut(&str),
) -> Result<Outcome> {
    let pair = Pair::start(program, model)?;
    let (mut all, mut same_tokens) = (Vec::new(), true);
    for number in 0..rounds {
        let simulated;
        let (alone, remote) = if number % 2 == 0 {
            let alone = pair.answer(false)?;
            let remote = pair.answer(true)?;
            simulated = pair.simulated_error()?;
            (alone, remote)
        } else {
            let remote = pair.answer(true)?;
            simulated = pair.simulated_error()?;
            (pair.answer(false)?, remote)
        };
        same_tokens &= alone["tokens"] == remote["tokens"] && alone["tokens"].is_array();
        let rate = |said: &Value| said["decode_tokens_per_s"].as_f64().unwrap_or(0.0);
        let round = Round {
            alone_tokens_per_s: rate(&alone),
            with_worker_tokens_per_s: rate(&remote),
            alone_disk_bytes: alone["disk_bytes"].as_u64(),
            with_worker_disk_bytes: remote["disk_bytes"].as_u64(),
            simulated_error: simulated,
        };
        on_line(&format!(
            "round {number}: from disk {:.2} tokens/s, with a worker {:.2} (simulated {:+.0} %)",
            round.alone_tokens_per_s,
            round.with_worker_tokens_per_s,
            100.0 * round.simulated_error
        ));
        all.push(round);
    }
    let mid =
        |of: fn(&Round) -> f64| median(&all.iter().map(of).collect::<Vec<_>>()).unwrap_or(0.0);
    let outcome = Outcome {
        model: named(model),
        host_bytes: HOST_BYTES,
        mbit: MBIT,
        alone_tokens_per_s: mid(|round| round.alone_tokens_per_s),
        with_worker_tokens_per_s: mid(|round| round.with_worker_tokens_per_s),
        ratio: mid(|round| round.with_worker_tokens_per_s / round.alone_tokens_per_s),
        simulated_error: mid(|round| round.simulated_error),
        same_tokens,
        load: motley_host::load::average(Path::new("/")).map(|load| load.one_min),
        rounds: all,
    };
    on_line(&format!(
        "medians: {:.2} from disk, {:.2} with a worker, ratio {:.2}, simulated {:+.0} %; same tokens: {}",
        outcome.alone_tokens_per_s,
        outcome.with_worker_tokens_per_s,
        outcome.ratio,
        100.0 * outcome.simulated_error,
        if same_tokens { "yes" } else { "no" }
    ));
    Ok(outcome)
}

/// A head and its worker, with a cable between them.
pub(super) struct Pair<'a> {
    head: Head,
    pub(super) worker: Worker,
    model: &'a Path,
}

impl<'a> Pair<'a> {
    /// Starts and pairs them. The worker reads its experts once, as a worker that has run for a while
    /// has.
    pub(super) fn start(program: &Path, model: &'a Path) -> Result<Self> {
        let head = Head::new(program)?;
        let flags = ["--memory", WORKER_MEMORY, "--threads", "1"];
        let worker = Worker::start((program, model), 1, &flags, Some(HOST_BYTES))?;
        head.pair(model, std::slice::from_ref(&worker))?;
        worker.host.set_rate(MBIT)?;
        let pair = Self { head, worker, model };
        pair.answer(true)?;
        Ok(pair)
    }

    /// `motley run --json` on the head, with the worker or from disk alone.
    pub(super) fn answer(&self, with_worker: bool) -> Result<Value> {
        let cage = drop_and_cage()?;
        let mut command = self.head.command_in(&cage);
        command.args(["run", "--json", "--exact", "--raw", "--trust-file", "--threads", "1"]);
        command.args(["--temperature", "0", "-n", TOKENS, "-p", PROMPT]).arg(self.model);
        if with_worker {
            command.args(["--workers", &self.worker.address()]);
        }
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}", said.trim());
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// The head's last run in virtual time, with the costs it measured: its speed over the real one,
    /// less one.
    fn simulated_error(&self) -> Result<f64> {
        let output = self.head.command().args(["explain", "--json"]).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        let said: Value = serde_json::from_slice(&output.stdout)?;
        said["what_if"]["decode_error"].as_f64().context("the run cannot be replayed")
    }
}

/// A host's memory, with nothing of the model in it yet.
pub(super) fn drop_and_cage() -> Result<Cage> {
    drop_page_cache()?;
    Cage::new(Some(HOST_BYTES))
}
