//! A model larger than the memory of one host: from that host's disk, and divided with a second host.
//! Both hosts share this machine's cores and disk.

use super::party::{Head, Worker, addresses, named};
use crate::capped::cage::Cage;
use crate::capped::drop_page_cache;
use anyhow::{Result, ensure};
use motley_cost::statistics::median;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// Memory of each host, and the rate of the cable between them in millions of bits per second.
const HOST_BYTES: u64 = 4 << 30;
const MBIT: u32 = 2500;
/// Tokens of an answer.
const TOKENS: &str = "24";
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
    same_tokens: bool,
    load: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Round {
    alone_tokens_per_s: f64,
    with_worker_tokens_per_s: f64,
    alone_disk_bytes: Option<u64>,
    with_worker_disk_bytes: Option<u64>,
}

/// `rounds` pairs, in turns.
pub(super) fn run(
    program: &Path,
    model: &Path,
    rounds: usize,
    on_line: &mut dyn FnMut(&str),
) -> Result<Outcome> {
    let head = Head::new(program)?;
    let workers = [Worker::start((program, model), 1, &[], Some(HOST_BYTES))?];
    head.pair(model, &workers)?;
    workers[0].host.set_rate(MBIT)?;
    let with = addresses(&workers);
    // The worker reads its experts once, as a worker that has run for a while has.
    answer(&head, model, &with)?;
    let (mut all, mut same_tokens) = (Vec::new(), true);
    for number in 0..rounds {
        let (alone, remote) = if number % 2 == 0 {
            let alone = answer(&head, model, &[])?;
            (alone, answer(&head, model, &with)?)
        } else {
            let remote = answer(&head, model, &with)?;
            (answer(&head, model, &[])?, remote)
        };
        same_tokens &= alone["tokens"] == remote["tokens"] && alone["tokens"].is_array();
        let rate = |said: &Value| said["decode_tokens_per_s"].as_f64().unwrap_or(0.0);
        let round = Round {
            alone_tokens_per_s: rate(&alone),
            with_worker_tokens_per_s: rate(&remote),
            alone_disk_bytes: alone["disk_bytes"].as_u64(),
            with_worker_disk_bytes: remote["disk_bytes"].as_u64(),
        };
        on_line(&format!(
            "round {number}: from disk {:.2} tokens/s, with a worker {:.2}",
            round.alone_tokens_per_s, round.with_worker_tokens_per_s
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
        same_tokens,
        load: motley_host::load::average(Path::new("/")).map(|load| load.one_min),
        rounds: all,
    };
    on_line(&format!(
        "medians: {:.2} from disk, {:.2} with a worker, ratio {:.2}; same tokens: {}",
        outcome.alone_tokens_per_s,
        outcome.with_worker_tokens_per_s,
        outcome.ratio,
        if same_tokens { "yes" } else { "no" }
    ));
    Ok(outcome)
}

/// `motley run --json` in a group of its own, with a cold page cache.
fn answer(head: &Head, model: &Path, workers: &[String]) -> Result<Value> {
    drop_page_cache()?;
    let cage = Cage::new(Some(HOST_BYTES))?;
    let mut command = head.command_in(&cage);
    command.args(["run", "--json", "--exact", "--raw", "--trust-file", "--no-record"]);
    command.args(["--temperature", "0", "-n", TOKENS, "-p", PROMPT]).arg(model);
    if !workers.is_empty() {
        command.args(["--workers", &workers.join(",")]);
    }
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", said.trim());
    Ok(serde_json::from_slice(&output.stdout)?)
}
