//! Streams while workers fail: every answer must be whole and the one given in peace, and no
//! stream may be silent for longer than a deadline and one recomputation.

#![allow(clippy::disallowed_methods, reason = "a driver waits and starts threads")]

use super::party::{Head, Worker, addresses};
use crate::load::{Target, converse, prompt};
use crate::servers::{Context as Cells, MotleyServe, Running};
use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use motley_testkit::fixtures;
use motley_testkit::synth::Arch;
use rustix::process::Signal;
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const STREAMS: usize = 16;
/// Tokens of an answer.
const TOKENS: usize = 48;
/// Questions there are.
const QUESTIONS: usize = 32;
/// How long a fault lasts, and how long there is peace after it.
const FAULT: Duration = Duration::from_millis(600);
const PEACE: Duration = Duration::from_millis(900);
/// A stream that hears nothing for so long is lost.
const PATIENCE: Duration = Duration::from_secs(60);
/// A cable's rate when it is slow, in millions of bits per second, and otherwise.
const SLOW_MBIT: u32 = 10;
const FAST_MBIT: u32 = 2500;

/// What is done to a worker.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Fault {
    Kill,
    Stop,
    LinkDown,
    SlowLink,
}

/// What came of one kind of fault.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    fault: Fault,
    times: usize,
    answers: u64,
    failed: u64,
    /// Whole, and not what was said in peace.
    wrong: u64,
    /// Time between two pieces of one answer, in milliseconds.
    p50_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
    examples: Vec<String>,
    load: Option<f64>,
}

/// Each fault so many times, under load all the while.
pub(super) fn run(program: &Path, times: usize, on_line: &mut dyn FnMut(&str)) -> Result<Vec<Row>> {
    let model = fixtures::synthetic(Arch::Qwen3moe).context("run `cargo xtask smollm2`")?;
    let head = Head::new(program)?;
    let one = ["--threads", "1"];
    let mut workers = [
        Worker::start((program, &model), 1, &[&one[..], &["--layers", "0-1"]].concat(), None)?,
        Worker::start((program, &model), 2, &[&one[..], &["--layers", "2-3"]].concat(), None)?,
    ];
    head.pair(&model, &workers)?;
    for worker in &workers {
        worker.host.set_rate(FAST_MBIT)?;
    }
    let known = in_peace(&serve(&head, program, &model, &[])?)?;
    let server = serve(&head, program, &model, &addresses(&workers))?;
    let mut rows = Vec::new();
    for fault in [Fault::Kill, Fault::Stop, Fault::LinkDown, Fault::SlowLink] {
        let row = under(fault, times, &mut workers, (&server, &known))?;
        on_line(&format!(
            "{fault:?} × {}: {} answers, {} failed, {} wrong; between pieces p50 {:.0} ms, p99 {:.0}, \
             longest {:.0}",
            row.times, row.answers, row.failed, row.wrong, row.p50_ms, row.p99_ms, row.longest_ms
        ));
        rows.push(row);
    }
    Ok(rows)
}

fn serve(head: &Head, program: &Path, model: &Path, workers: &[String]) -> Result<Running> {
    let mut more = vec!["--trust-file".to_owned()];
    if !workers.is_empty() {
        more.extend(["--workers".to_owned(), workers.join(",")]);
    }
    let serve = MotleyServe {
        program: program.to_owned(),
        model: model.to_owned(),
        threads: 1,
        streams: STREAMS,
        context: Cells::Each(128),
        memory_bytes: None,
        exact: true,
        more,
    };
    Running::start(serve.start_by(head.command()))
}

fn target(server: &Running) -> Target {
    Target {
        address: server.address.clone(),
        requests: 1,
        tokens: TOKENS,
        model: None,
        from: None,
        key: None,
        check: false,
        edition: 0,
    }
}

/// Every question's answer.
fn in_peace(server: &Running) -> Result<Vec<(String, String)>> {
    let one = |number| {
        let question = prompt(0, number, 0);
        let answer = crate::load::ask(&target(server), &question)?;
        Ok((question, answer.text))
    };
    (0..QUESTIONS).map(one).collect()
}

/// What streams saw.
struct Seen {
    answers: u64,
    failed: u64,
    wrong: u64,
    gaps_us: Histogram<u64>,
    examples: Vec<String>,
}

fn under(
    fault: Fault,
    times: usize,
    workers: &mut [Worker],
    (server, known): (&Running, &[(String, String)]),
) -> Result<Row> {
    let gaps_us = Histogram::new(3)?;
    let seen = Seen { answers: 0, failed: 0, wrong: 0, gaps_us, examples: Vec::new() };
    let (seen, over) = (Mutex::new(seen), AtomicBool::new(false));
    let done = std::thread::scope(|scope| {
        for stream in 0..STREAMS {
            let (seen, over, target) = (&seen, &over, target(server));
            scope.spawn(move || {
                for question in stream.. {
                    if over.load(Relaxed) {
                        return;
                    }
                    ask(&target, &known[question % known.len()], seen);
                }
            });
        }
        let done = (0..times).try_for_each(|turn| {
            let at = turn % workers.len();
            happen(fault, &mut workers[at])
        });
        over.store(true, Relaxed);
        done
    });
    done?;
    let seen = seen.into_inner().expect("no stream panics");
    let ms = |us: u64| us as f64 / 1e3;
    Ok(Row {
        fault,
        times,
        answers: seen.answers,
        failed: seen.failed,
        wrong: seen.wrong,
        p50_ms: ms(seen.gaps_us.value_at_quantile(0.5)),
        p99_ms: ms(seen.gaps_us.value_at_quantile(0.99)),
        longest_ms: ms(seen.gaps_us.max()),
        examples: seen.examples,
        load: motley_host::load::average(Path::new("/")).map(|load| load.one_min),
    })
}

/// One fault, and the way back.
fn happen(fault: Fault, worker: &mut Worker) -> Result<()> {
    match fault {
        Fault::Kill => worker.kill()?,
        Fault::Stop => worker.signal(Signal::STOP)?,
        Fault::LinkDown => worker.host.plug(false)?,
        Fault::SlowLink => worker.host.set_rate(SLOW_MBIT)?,
    }
    std::thread::sleep(FAULT);
    match fault {
        Fault::Kill => worker.begin()?,
        Fault::Stop => worker.signal(Signal::CONT)?,
        Fault::LinkDown => worker.host.plug(true)?,
        Fault::SlowLink => worker.host.set_rate(FAST_MBIT)?,
    }
    std::thread::sleep(PEACE);
    Ok(())
}

fn ask(target: &Target, (question, answer): &(String, String), seen: &Mutex<Seen>) {
    let (mut last, mut gaps) = (Instant::now(), Vec::new());
    let heard = converse(target, question, PATIENCE, &mut |_| {
        gaps.push(last.elapsed());
        last = Instant::now();
        ControlFlow::Continue(())
    });
    let mut seen = seen.lock().expect("no stream panics");
    for gap in gaps {
        // A histogram that grows takes every value.
        let _ = seen.gaps_us.record(gap.as_micros() as u64);
    }
    let wrong = match heard {
        Ok(Some(heard)) if heard.text == *answer => {
            seen.answers += 1;
            return;
        }
        Ok(heard) => {
            seen.wrong += 1;
            format!("{question:?}: {:?} is not {answer:?}", heard.map(|heard| heard.text))
        }
        Err(error) => {
            seen.failed += 1;
            format!("{error:#}")
        }
    };
    if seen.examples.len() < 3 {
        seen.examples.push(wrong);
    }
}
