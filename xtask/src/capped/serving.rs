//! A server under load for long inside a control group with a memory limit: every answer must
//! come, whole, and the budget must hold.

use super::cage::Cage;
use crate::load::{Target, ask, prompt};
use crate::servers::{MotleyServe, Running, get};
use anyhow::{Result, ensure};
use motley_host::process_memory::{self, ProcessMemory};
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Time between two looks at the memory.
const LOOK_TIME: Duration = Duration::from_secs(1);
/// Looks between two lines for a person.
const LOOKS_PER_LINE: u32 = 30;

/// What to soak.
#[derive(Debug, Clone)]
pub struct ServeSoak {
    /// The server; its budget is what must hold.
    pub serve: MotleyServe,
    /// Limit of the control group.
    pub limit_bytes: u64,
    /// Streams at once, each asking again and again.
    pub streams: usize,
    /// Tokens of each answer.
    pub tokens: usize,
    /// How long.
    pub minutes: f64,
}

/// What came of it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ServeSoaked {
    /// How long it was.
    pub seconds: f64,
    /// Answers, all whole and as long as asked for.
    pub answers: u64,
    /// Their tokens.
    pub tokens: u64,
    /// Budget given to the server.
    pub budget_bytes: u64,
    /// Highest memory of the group, page cache too.
    pub group_peak_bytes: u64,
    /// Highest memory of the process itself, as the system counts it.
    pub own_peak_bytes: u64,
    /// Memory of the process after the first tenth of the time, and at the end.
    pub own_early_bytes: u64,
    /// See `own_early_bytes`.
    pub own_late_bytes: u64,
    /// Processes of the group the system killed.
    pub killed: u64,
    /// The server's own counts at the end: expert hits, lookups, bytes read.
    pub metrics: Vec<String>,
}

impl ServeSoaked {
    /// What went wrong, if anything did.
    pub fn verdict(&self) -> Result<()> {
        ensure!(self.answers > 0, "no answer came");
        ensure!(self.killed == 0, "{} processes were killed", self.killed);
        let (peak, budget) = (self.own_peak_bytes, self.budget_bytes);
        ensure!(peak <= budget, "{peak} bytes taken of a budget of {budget}");
        Ok(())
    }
}

/// Counts of all streams.
#[derive(Default)]
struct Counts {
    answers: AtomicU64,
    tokens: AtomicU64,
    over: AtomicBool,
}

/// Runs it; `on_progress` gets a line now and then.
#[allow(clippy::disallowed_methods, reason = "a soak owns threads and a clock")]
pub fn serve_soak(soak: &ServeSoak, on_progress: &mut dyn FnMut(&str)) -> Result<ServeSoaked> {
    let cage = Cage::new(Some(soak.limit_bytes))?;
    let server = Running::start(soak.serve.start_by(cage.command(&soak.serve.program)))?;
    let counts = Counts::default();
    let begun = Instant::now();
    let mut soaked = ServeSoaked {
        budget_bytes: soak.serve.memory_bytes.unwrap_or(soak.limit_bytes),
        ..ServeSoaked::default()
    };
    std::thread::scope(|scope| {
        let streams: Vec<_> = (0..soak.streams)
            .map(|stream| {
                let (address, counts) = (server.address.clone(), &counts);
                scope.spawn(move || run_stream(soak, address, stream, counts))
            })
            .collect();
        let watched = watch(soak, &server, &cage, &counts, &mut soaked, on_progress);
        counts.over.store(true, Relaxed);
        let ended = streams.into_iter().map(|one| one.join().expect("asking does not panic"));
        ended.collect::<Result<()>>().and(watched)
    })?;
    soaked.seconds = begun.elapsed().as_secs_f64();
    soaked.answers = counts.answers.load(Relaxed);
    soaked.tokens = counts.tokens.load(Relaxed);
    soaked.metrics = metrics(&server);
    if let Some(memory) = memory_of(&server) {
        soaked.own_late_bytes = memory.resident_bytes();
        soaked.own_peak_bytes = memory.peak_bytes;
    }
    soaked.group_peak_bytes = cage.peak_bytes()?;
    soaked.killed = cage.killed();
    drop(server);
    Ok(soaked)
}

/// Asks until it is over; any answer that is not whole ends it.
fn run_stream(soak: &ServeSoak, address: String, stream: usize, counts: &Counts) -> Result<()> {
    let target = Target {
        address,
        requests: 1,
        tokens: soak.tokens,
        model: None,
        from: None,
        key: None,
        check: false,
        edition: 0,
    };
    for request in 0.. {
        if counts.over.load(Relaxed) {
            break;
        }
        let answer = ask(&target, &prompt(request, stream, request));
        let whole = answer.and_then(|answer| {
            ensure!(answer.tokens == soak.tokens, "an answer has {} tokens", answer.tokens);
            Ok(answer)
        });
        match whole {
            Ok(answer) => {
                counts.answers.fetch_add(1, Relaxed);
                counts.tokens.fetch_add(answer.tokens as u64, Relaxed);
            }
            Err(error) => {
                counts.over.store(true, Relaxed);
                return Err(error.context(format!("stream {stream}, request {request}")));
            }
        }
    }
    Ok(())
}

/// Looks at the memory until the time is up.
#[allow(clippy::disallowed_methods, reason = "a soak reads the clock")]
fn watch(
    soak: &ServeSoak,
    server: &Running,
    cage: &Cage,
    counts: &Counts,
    soaked: &mut ServeSoaked,
    on_progress: &mut dyn FnMut(&str),
) -> Result<()> {
    let time = Duration::from_secs_f64(60.0 * soak.minutes);
    let begun = Instant::now();
    for look in 1_u32.. {
        std::thread::sleep(LOOK_TIME);
        let passed = begun.elapsed();
        if passed >= time || counts.over.load(Relaxed) {
            break;
        }
        let own = memory_of(server).map_or(0, |memory| memory.resident_bytes());
        if passed <= time / 10 || soaked.own_early_bytes == 0 {
            soaked.own_early_bytes = own;
        }
        if look.is_multiple_of(LOOKS_PER_LINE) {
            on_progress(&format!(
                "{:.0} s: {} answers, {} MiB now, group's peak {} MiB",
                passed.as_secs_f64(),
                counts.answers.load(Relaxed),
                own >> 20,
                cage.peak_bytes()? >> 20,
            ));
        }
    }
    Ok(())
}

/// Memory of the server itself; nothing when it has ended.
fn memory_of(server: &Running) -> Option<ProcessMemory> {
    process_memory::of_process(Path::new("/"), server.id())
}

fn metrics(server: &Running) -> Vec<String> {
    let text = get(&server.address, "/metrics").map(|(_, text)| text).unwrap_or_default();
    let wanted = ["motley_expert", "motley_requests_", "motley_kv_cells"];
    let is_wanted = |line: &&str| wanted.iter().any(|name| line.starts_with(name));
    text.lines().filter(is_wanted).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_that_does_not_hold_is_said() {
        let well =
            ServeSoaked { answers: 3, budget_bytes: 100, own_peak_bytes: 90, ..Default::default() };
        assert!(well.verdict().is_ok());
        let over = ServeSoaked { own_peak_bytes: 101, ..well.clone() };
        assert!(over.verdict().unwrap_err().to_string().contains("101 bytes"));
        assert!(ServeSoaked { killed: 1, ..well.clone() }.verdict().is_err());
        assert!(ServeSoaked { answers: 0, ..well }.verdict().is_err());
    }
}
