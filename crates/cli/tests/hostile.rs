//! Malformed and hostile requests by raw socket: the server answers each as it should,
//! goes on serving the others, and does not grow. The attacks are those of
//! `motley_testkit::hostile`; `cargo xtask hostile` carries out thousands of them.

#![allow(clippy::disallowed_methods, reason = "a test owns threads and may wait")]

mod support;

use motley_testkit::hostile::{Outcome, Random, Strength, attack, carry_out};
use motley_testkit::synth::Arch;
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use support::server::{Server, continuation, count};

/// Largest growth of the least resident memory from the second quarter of a run to its last: one
/// reading swings by what single requests hold for a moment and threads leave behind.
const GROWTH: f64 = 1.05;
const SWING_KIB: u64 = 8 << 10;
/// Readers that stall at the same time.
const STALLED: usize = 8;

#[test]
fn hostile_requests_do_no_harm() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let args = ["--header-timeout", "1", "--write-timeout", "1", "--max-body", "1M"];
    // A longer cache is touched as it is used, which is growth that is planned for.
    let cache = ["--connections", "64", "--context", "4096"];
    let server = Server::start(&model, &[&args[..], &cache].concat());
    let total = count("MOTLEY_HOSTILE", 400);
    let good = || {
        server.post("/v1/completions", &continuation("Good", 8, false)).1["choices"][0]["text"]
            .clone()
    };
    let expected = good();
    let mut random = Random::new(7);
    let mut stalled = std::collections::VecDeque::new();
    let (mut early_kib, mut late_kib) = (u64::MAX, u64::MAX);
    for round in 0..total {
        let attack = attack(&mut random, Strength::SHORT, |_| true);
        let outcome = carry_out(server.address, &attack);
        assert!(attack.allows(&outcome), "{}: {outcome:?}", attack.name);
        if let Outcome::Stalled(stream) = outcome {
            stalled.push_back(stream);
            stalled.drain(..stalled.len().saturating_sub(STALLED));
        }
        match 4 * round / total {
            1 => early_kib = early_kib.min(server.resident_kib()),
            3 => late_kib = late_kib.min(server.resident_kib()),
            _ => {}
        }
        if round % 100 == 99 {
            assert_eq!(good(), expected, "after {round}");
        }
    }
    assert_eq!(good(), expected);
    println!("{total} hostile requests; memory {early_kib} KiB early, {late_kib} late, at least");
    let most = early_kib as f64 * GROWTH + SWING_KIB as f64;
    assert!(late_kib as f64 <= most, "{early_kib} → {late_kib} KiB");
}

#[test]
fn slow_headers_and_slow_bodies_are_ended() {
    let Some(model) = support::synth(Arch::Qwen3moe) else { return };
    let server = Server::start(&model, &["--header-timeout", "1"]);
    let begun = Instant::now();
    let mut slow: Vec<_> = (0..20).map(|_| server.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"POST /v1/completions HTTP/1.1\r\nHost: lo").unwrap();
    }
    assert_eq!(server.get("/health").0, 200, "others are served meanwhile");
    for stream in &mut slow {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "slow headers are cut off");
}
