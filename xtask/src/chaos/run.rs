//! The chaos run: peace first, to know the answers; then everything at once; then peace again.

#![allow(clippy::disallowed_methods, reason = "a driver owns threads, a clock and dice")]

use super::client::{Known, Outcomes, ask_one};
use super::disk::{DiskCounts, FailingDisk};
use crate::capped::cage::Cage;
use crate::load::{Target, ask, prompt};
use crate::servers::{MotleyServe, Running, get};
use anyhow::{Context, Result, ensure};
use motley_host::process_memory;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Different questions, each with an answer known from peaceful times.
const QUESTIONS: usize = 32;
/// Between two stops of the process, and the longest stop.
const STOP_EVERY: Duration = Duration::from_secs(40);
const STOP_MAX: Duration = Duration::from_secs(4);
/// Time for the server to be ready again in peace.
const RECOVERY: Duration = Duration::from_secs(60);
/// Between two lines for a person.
const LINE_EVERY: Duration = Duration::from_secs(30);

/// What to endure.
#[derive(Debug, Clone)]
pub struct Chaos {
    /// The server; `exact`, so that an answer does not depend on its neighbours.
    pub serve: MotleyServe,
    /// Clients at once.
    pub clients: usize,
    /// Tokens of each answer.
    pub tokens: usize,
    /// How long.
    pub minutes: f64,
    /// Longest silence before a question counts as lost.
    pub deadline: Duration,
    /// Limit of the group that holds the server and its neighbour.
    pub limit_bytes: u64,
    /// Most the neighbour takes.
    pub neighbour_bytes: u64,
    /// A file that the neighbour reads.
    pub neighbour_file: PathBuf,
}

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct Endured {
    /// How long it was.
    pub seconds: f64,
    /// Questions, by what came of them.
    pub outcomes: Outcomes,
    /// The disk's reads while it failed.
    pub disk: DiskCounts,
    /// Times the process was stopped and went on.
    pub stops: u64,
    /// Ceiling given to the server, and the most it took.
    pub ceiling_bytes: u64,
    /// See `ceiling_bytes`.
    pub peak_bytes: u64,
    /// Processes of the group the system killed.
    pub killed: u64,
    /// Questions whose answer in the peace afterwards was right, of all.
    pub right_afterwards: (usize, usize),
    /// Whether the server said it was ready afterwards.
    pub ready_afterwards: bool,
}

impl Endured {
    /// What went wrong, if anything did.
    pub fn verdict(&self) -> Result<()> {
        let Outcomes { wrong, silent, cut, right, .. } = self.outcomes;
        ensure!(wrong == 0, "{wrong} answers were wrong");
        ensure!(silent == 0, "{silent} questions met silence beyond the deadline");
        ensure!(cut == 0, "{cut} answers were cut off without an error");
        ensure!(right > 0, "no answer came through");
        ensure!(self.disk.failed > 0, "the disk never failed");
        ensure!(self.killed == 0, "{} processes were killed", self.killed);
        let (peak, ceiling) = (self.peak_bytes, self.ceiling_bytes);
        ensure!(peak <= ceiling, "{peak} bytes taken of a ceiling of {ceiling}");
        let (right, all) = self.right_afterwards;
        ensure!(right == all, "{right} of {all} answers were right afterwards");
        ensure!(self.ready_afterwards, "the server was not ready afterwards");
        Ok(())
    }
}

/// Runs it; `on_progress` gets a line now and then.
pub fn endure(chaos: &Chaos, on_progress: &mut dyn FnMut(&str)) -> Result<Endured> {
    let disk = FailingDisk::mount(&chaos.serve.model)?;
    let cage = Cage::new(Some(chaos.limit_bytes))?;
    let serve = MotleyServe { model: disk.path(), ..chaos.serve.clone() };
    let server = Running::start(serve.start_by(cage.command(&serve.program)))?;
    let target = target(chaos, &server);
    let known = in_peace(&target)?;
    on_progress(&format!("{} answers known", known.len()));
    let neighbour = Neighbour::start(&cage, chaos)?;
    let storm = Storm { chaos, disk: &disk, server: &server, target: &target, known: &known };
    let before = disk.counts();
    let begun = Instant::now();
    let (outcomes, stops) = storm.run(on_progress)?;
    let seconds = begun.elapsed().as_secs_f64();
    let counts = disk.counts();
    drop(neighbour);
    let ready_afterwards = is_ready_soon(&target);
    let again = |known: &&Known| ask(&target, &known.prompt).is_ok_and(|a| a.text == known.answer);
    let right_afterwards = (known.iter().filter(again).count(), known.len());
    let memory = process_memory::of_process(Path::new("/"), server.id());
    Ok(Endured {
        seconds,
        outcomes,
        disk: DiskCounts { reads: counts.reads - before.reads, ..counts },
        stops,
        ceiling_bytes: chaos.serve.memory_bytes.unwrap_or(chaos.limit_bytes),
        peak_bytes: memory.context("the server has ended")?.peak_bytes,
        killed: cage.killed(),
        right_afterwards,
        ready_afterwards,
    })
}

fn target(chaos: &Chaos, server: &Running) -> Target {
    Target {
        address: server.address.clone(),
        requests: 1,
        tokens: chaos.tokens,
        model: None,
        from: None,
        key: None,
        check: false,
        edition: 0,
    }
}

/// Every question asked alone, on a disk that works.
fn in_peace(target: &Target) -> Result<Vec<Known>> {
    let one = |question| {
        let prompt = prompt(0, question, question);
        let answer = ask(target, &prompt)?.text;
        Ok(Known { prompt, answer })
    };
    (0..QUESTIONS).map(one).collect()
}

fn is_ready_soon(target: &Target) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < RECOVERY {
        if get(&target.address, "/ready").is_ok_and(|(status, _)| status == 200) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    false
}

/// A process of the same group that takes memory and gives it back; ended when dropped.
struct Neighbour(Child);

impl Neighbour {
    fn start(cage: &Cage, chaos: &Chaos) -> Result<Self> {
        let mut command = cage.command(&std::env::current_exe()?);
        command.arg("take-memory").arg(chaos.neighbour_bytes.to_string());
        Ok(Self(command.arg(&chaos.neighbour_file).spawn()?))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        // One that has ended already was killed, which the group counts.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Everything at once.
struct Storm<'a> {
    chaos: &'a Chaos,
    disk: &'a FailingDisk,
    server: &'a Running,
    target: &'a Target,
    known: &'a [Known],
}

impl Storm<'_> {
    fn run(&self, on_progress: &mut dyn FnMut(&str)) -> Result<(Outcomes, u64)> {
        let (outcomes, over) = (Mutex::new(Outcomes::default()), AtomicBool::new(false));
        let stops = AtomicU64::new(0);
        self.disk.set_fails(true);
        std::thread::scope(|scope| {
            for _ in 0..self.chaos.clients {
                scope.spawn(|| {
                    while !over.load(Relaxed) {
                        ask_one(self.target, self.known, self.chaos.deadline, &outcomes);
                    }
                });
            }
            let stopping = scope.spawn(|| self.stop_and_go(&over, &stops));
            self.wait(&outcomes, on_progress);
            over.store(true, Relaxed);
            stopping.join().expect("stopping does not panic")
        })?;
        self.disk.set_fails(false);
        Ok((outcomes.into_inner().expect("no panic holds this lock"), stops.into_inner()))
    }

    fn wait(&self, outcomes: &Mutex<Outcomes>, on_progress: &mut dyn FnMut(&str)) {
        let time = Duration::from_secs_f64(60.0 * self.chaos.minutes);
        let begun = Instant::now();
        while begun.elapsed() < time {
            std::thread::sleep(LINE_EVERY.min(time.saturating_sub(begun.elapsed())));
            let Outcomes { right, errors, left, wrong, silent, cut, longest_silence_s, .. } =
                outcomes.lock().expect("no panic holds this lock").clone();
            on_progress(&format!(
                "{:.0} s: {right} right, {errors} errors, {left} left, {wrong} wrong, {silent} \
                 silent, {cut} cut; longest silence {longest_silence_s:.1} s; disk {:?}",
                begun.elapsed().as_secs_f64(),
                self.disk.counts(),
            ));
        }
    }

    /// SIGSTOP and SIGCONT now and then.
    fn stop_and_go(&self, over: &AtomicBool, stops: &AtomicU64) -> Result<()> {
        let mut next = Instant::now() + STOP_EVERY;
        while !over.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            if Instant::now() < next {
                continue;
            }
            signal("STOP", self.server.id())?;
            std::thread::sleep(STOP_MAX.mul_f64(fastrand::f64()));
            signal("CONT", self.server.id())?;
            stops.fetch_add(1, Relaxed);
            next = Instant::now() + STOP_EVERY.mul_f64(0.5 + fastrand::f64());
        }
        Ok(())
    }
}

fn signal(name: &str, process: u32) -> Result<()> {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(process.to_string()).status()?;
    ensure!(sent.success(), "the server is gone");
    Ok(())
}
