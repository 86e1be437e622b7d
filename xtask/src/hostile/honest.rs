//! The client that only wants its answers: the same small question again and again, timed.

#![allow(clippy::disallowed_methods, reason = "a load generator reads the clock")]

use super::report::Latency;
use crate::load::{Target, ask};
use anyhow::{Result, ensure};
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

/// Tokens of each answer.
const TOKENS: usize = 8;
/// Time between an answer and the next question: a person's, not a load generator's.
const PAUSE: Duration = Duration::from_millis(20);

/// Its address: attackers are others, at the one this machine speaks from by itself.
const FROM: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// A client of one server.
pub(super) struct Honest {
    target: Target,
}

impl Honest {
    /// Asks `count` times alone; how long that took.
    pub(super) fn alone(address: &str, count: usize) -> Result<(Self, Latency)> {
        let target = Target {
            address: address.to_owned(),
            requests: 1,
            tokens: TOKENS,
            model: None,
            from: Some(FROM),
            key: None,
            check: false,
            edition: 0,
        };
        let honest = Self { target };
        let mut asked = 0;
        let waited = honest.while_so(|| {
            asked += 1;
            asked <= count
        })?;
        Ok((honest, waited))
    }

    /// Asks as long as `so`; every answer is whole, or this fails. Beside others its words may
    /// differ from those alone in the last bits of a choice; the chaos run compares them, exactly.
    pub(super) fn while_so(&self, mut so: impl FnMut() -> bool) -> Result<Latency> {
        let mut waited_ms = Vec::new();
        while so() {
            let begun = Instant::now();
            let answer = ask(&self.target, PROMPT)?;
            waited_ms.push(begun.elapsed().as_secs_f64() * 1e3);
            let tokens = answer.tokens;
            ensure!(tokens == TOKENS, "{tokens} tokens of {TOKENS}: {:?}", answer.text);
            std::thread::sleep(PAUSE);
        }
        Ok(Latency::of(&waited_ms))
    }
}

const PROMPT: &str = "The honest client asks a short question and";
