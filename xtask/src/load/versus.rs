//! Several servers under the same load, in turn: every number of streams, then the next round,
//! the order turned round each time. All stay loaded; what the waiting ones burn is written
//! down, and so is how busy the machine was. A server that fails is started again for its next
//! turn, and the comparison goes on.

use super::{Figures, Target, ask, prompt, round};
use crate::servers::{Running, Start};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// Tokens of the question asked before a turn, so that no turn pays for waking up.
const WARM_TOKENS: usize = 8;

/// A server and how it is started.
pub struct Contender {
    /// As it is called in the table.
    pub name: String,
    /// Makes ready to start it.
    pub start: Box<dyn Fn() -> Result<Start>>,
}

/// What to compare.
pub struct Versus {
    /// Ratios are of the first to each other.
    pub contenders: Vec<Contender>,
    /// Streams at once.
    pub streams: Vec<usize>,
    /// Turns of each server at each number of streams.
    pub rounds: usize,
    /// Requests of each stream.
    pub requests: usize,
    /// Tokens of each answer.
    pub tokens: usize,
}

/// One server's turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Turn {
    /// Name of the server.
    pub server: String,
    /// Number of the round.
    pub round: usize,
    /// Streams at once.
    pub streams: usize,
    /// Load average of the last minute when it began.
    pub load: f64,
    /// Processor time the waiting servers took meanwhile.
    pub others_cpu_s: f64,
    /// What it took.
    pub figures: Option<Figures>,
    /// Why there are no figures.
    pub failed: Option<String>,
}

/// Runs everything; each turn is shown to `on_turn`. Also returns what each server said of
/// itself when it started.
pub fn versus(versus: &Versus, on_turn: &mut dyn FnMut(&Turn)) -> (Vec<Turn>, Vec<Value>) {
    let mut running: Vec<Option<Running>> = versus.contenders.iter().map(|_| None).collect();
    let mut said = vec![Value::Null; versus.contenders.len()];
    let mut turns = Vec::new();
    let mut edition = 0;
    for number in 0..versus.rounds {
        for &streams in &versus.streams {
            edition += 1;
            for at in in_turn(versus.contenders.len(), number) {
                let started = start(&versus.contenders[at], &mut running[at]);
                if let Some(server) = &running[at] {
                    said[at] = server.said.clone();
                }
                let before = cpu_seconds(&running, at);
                let load = load_average();
                let figures = started.and_then(|address| {
                    let target = target(versus, address, edition);
                    warm(&target)?;
                    Ok(round(&target, streams)?.figures())
                });
                let turn = Turn {
                    server: versus.contenders[at].name.clone(),
                    round: number,
                    streams,
                    load,
                    others_cpu_s: cpu_seconds(&running, at) - before,
                    failed: figures.as_ref().err().map(|error| format!("{error:#}")),
                    figures: figures.ok(),
                };
                if turn.failed.is_some() {
                    running[at] = None;
                }
                on_turn(&turn);
                turns.push(turn);
            }
        }
    }
    (turns, said)
}

/// Forwards in even rounds, backwards in odd ones.
fn in_turn(servers: usize, round: usize) -> Vec<usize> {
    let order = 0..servers;
    if round.is_multiple_of(2) { order.collect() } else { order.rev().collect() }
}

/// Starts the server unless it runs; its address.
fn start(contender: &Contender, running: &mut Option<Running>) -> Result<String> {
    if !running.as_mut().is_some_and(Running::is_alive) {
        *running = None;
        *running = Some(Running::start((contender.start)()?)?);
    }
    Ok(running.as_ref().map(|server| server.address.clone()).unwrap_or_default())
}

fn target(versus: &Versus, address: String, edition: usize) -> Target {
    let Versus { requests, tokens, .. } = *versus;
    Target { address, requests, tokens, model: None, from: None, key: None, check: false, edition }
}

fn warm(target: &Target) -> Result<()> {
    let target = Target { tokens: WARM_TOKENS, ..target.clone() };
    ask(&target, &format!("Before we begin: {}", prompt(target.edition, 0, 0))).map(drop)
}

/// Processor time of all servers but the one at `but`.
fn cpu_seconds(running: &[Option<Running>], but: usize) -> f64 {
    let others = running.iter().enumerate().filter(|&(at, _)| at != but);
    others.filter_map(|(_, server)| server.as_ref()?.cpu_seconds()).sum()
}

/// Load average of the last minute; 0 where the system has none.
fn load_average() -> f64 {
    motley_host::load::average(Path::new("/")).map_or(0.0, |load| load.one_min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::Listens;
    use std::process::Command;

    #[test]
    fn the_order_turns_round() {
        assert_eq!(in_turn(3, 0), [0, 1, 2]);
        assert_eq!(in_turn(3, 1), [2, 1, 0]);
    }

    #[test]
    fn a_server_that_does_not_start_fails_its_turns_and_no_others() {
        let contender = |name: &str| Contender {
            name: name.into(),
            start: Box::new(|| {
                let command = Command::new("false");
                Ok(Start { command, listens: Listens::Says })
            }),
        };
        let both = Versus {
            contenders: vec![contender("a"), contender("b")],
            streams: vec![1],
            rounds: 2,
            requests: 1,
            tokens: 1,
        };
        let mut seen = Vec::new();
        let (turns, said) = versus(&both, &mut |turn| seen.push(turn.server.clone()));
        assert_eq!(seen, ["a", "b", "b", "a"]);
        assert!(turns.iter().all(|turn| turn.failed.is_some() && turn.figures.is_none()));
        assert_eq!(said, [Value::Null, Value::Null]);
    }
}
