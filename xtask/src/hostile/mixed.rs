//! Every kind of attack at once, from several attackers, beside an honest client.

use super::honest::Honest;
use super::report::{Mixed, Tally};
use super::setting::Hostile;
use crate::servers::Running;
use anyhow::{Context, Result};
use motley_testkit::hostile::{Attack, Outcome, Random, Strength, attack, carry_out};
use std::collections::VecDeque;
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Questions of the honest client alone: enough for a 99th percentile.
const ALONE: usize = 300;
/// Readers of one attacker that stall at the same time.
const STALLED: usize = 16;

/// Carries out `requests` attacks.
pub(super) fn run(hostile: &Hostile, requests: usize, say: &mut dyn FnMut(&str)) -> Result<Mixed> {
    let mut server = Running::start(hostile.serve(hostile.model.clone()).start())?;
    let address: SocketAddr = server.address.parse()?;
    let (honest, alone) = Honest::alone(&server.address, ALONE)?;
    say(&format!("alone: p50 {:.0} ms, p99 {:.0} ms", alone.p50_ms, alone.p99_ms));
    let before_kib = server.peak_kib().context("memory is not counted here")?;
    let (begun, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let tally = Mutex::new(Tally::default());
    let beside = std::thread::scope(|scope| {
        for attacker in 0..hostile.attackers {
            let (begun, done, tally) = (&begun, &done, &tally);
            let mut attacker = Attacker::new(hostile, attacker, address);
            scope.spawn(move || {
                elsewhere();
                while begun.fetch_add(1, Relaxed) < requests {
                    attacker.strike(tally);
                }
                done.fetch_add(1, Relaxed);
            });
        }
        honest.while_so(|| done.load(Relaxed) < hostile.attackers)
    })?;
    let tally = tally.into_inner().unwrap_or_default();
    say(&format!(
        "beside {requests} attacks: p50 {:.0} ms, p99 {:.0} ms",
        beside.p50_ms, beside.p99_ms
    ));
    Ok(Mixed {
        alone,
        beside,
        grown_kib: server.peak_kib().context("the server is gone")?.saturating_sub(before_kib),
        alive: server.is_alive(),
        tally,
    })
}

/// Attackers have machines of their own: this thread gets what cores the server and the honest
/// client leave it. Where it may not, the figures are worse than they should be.
fn elsewhere() {
    const LEAST: i32 = 19;
    let _ = rustix::process::nice(LEAST);
}

struct Attacker<'a> {
    hostile: &'a Hostile,
    random: Random,
    address: SocketAddr,
    stalled: VecDeque<TcpStream>,
}

impl<'a> Attacker<'a> {
    fn new(hostile: &'a Hostile, number: usize, address: SocketAddr) -> Self {
        let random = Random::new(hostile.seed.wrapping_mul(1000).wrapping_add(number as u64 + 1));
        Self { hostile, random, address, stalled: VecDeque::new() }
    }

    fn strike(&mut self, tally: &Mutex<Tally>) {
        let wanted = |name: &str| !self.hostile.without.iter().any(|without| without == name);
        let attack: Attack = attack(&mut self.random, Strength::FULL, wanted);
        let outcome = carry_out(self.address, &attack);
        if let Ok(mut tally) = tally.lock() {
            tally.count(&attack, &outcome);
        }
        if let Outcome::Stalled(stream) = outcome {
            self.stalled.push_back(stream);
            self.stalled.drain(..self.stalled.len().saturating_sub(STALLED));
        }
    }
}
