//! `motley bench --neighbours N`: decode beside N niced busy programs, as ggml alone does it and
//! as Motley escapes it. One engine, one session per way, the ways in turn.

use crate::args::{Bench, Global};
use crate::load::{Loaded, load};
use crate::page::{align_right, table, width_of};
use crate::terminal::{print_json, print_page};
use anyhow::{Context, Result};
use comfy_table::presets;
use motley_engine::{Runtime, Seam, SessionOptions, ThreadSet, ThreadSets};
use motley_plan::Outputs;
use serde::Serialize;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A way that hardly advances is left after this time.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is continued.
const PROMPT: &str = "The river rises in the hills to the north and runs past three towns";

/// Runs the command.
pub(crate) fn run(global: &Global, bench: &Bench, neighbours: u32) -> Result<()> {
    let runtime = Runtime::start(Seam::Registered)?;
    let loaded = load(runtime, global, &bench.model, &bench.load, Outputs::One)?;
    let mut rows = vec![measure(&loaded, bench, Way { name: "alone", yields: true, one: false })?];
    let busy = Neighbours::start(neighbours)?;
    let beside = [
        Way { name: "beside them, threads kept", yields: false, one: false },
        Way { name: "beside them, one thread", yields: false, one: true },
        Way { name: "beside them, Motley", yields: true, one: false },
    ];
    for way in beside {
        rows.push(measure(&loaded, bench, way)?);
    }
    drop(busy);
    if global.json {
        print_json(&serde_json::to_string_pretty(&rows)?)?;
        return Ok(());
    }
    let mut table = table(width_of(None), presets::UTF8_FULL_CONDENSED);
    table.set_header(["Way", "tokens", "decode/s", "last half/s", "thread changes"]);
    for row in &rows {
        table.add_row([
            row.way.to_owned(),
            row.tokens.to_string(),
            format!("{:.2}", row.tokens_per_s),
            format!("{:.2}", row.last_half_tokens_per_s),
            row.thread_changes.to_string(),
        ]);
    }
    align_right(&mut table, &[1, 2, 3, 4]);
    let threads = loaded.engine.threads();
    print_page(&format!(
        "{}\n {neighbours} niced busy programs, {threads} threads",
        table.trim_fmt()
    ))?;
    Ok(())
}

/// How a session decodes.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    yields: bool,
    one: bool,
}

#[derive(Serialize)]
struct Row {
    way: &'static str,
    tokens: usize,
    tokens_per_s: f64,
    last_half_tokens_per_s: f64,
    thread_changes: u64,
}

fn measure(loaded: &Loaded, bench: &Bench, way: Way) -> Result<Row> {
    let Loaded { engine, decision } = loaded;
    let mut session = engine.session(&SessionOptions::of(decision))?;
    if !way.yields {
        session.keep_threads();
    }
    if way.one {
        session.set_threads(&ThreadSets::both(ThreadSet::anywhere(1)))?;
    }
    let prompt = engine.tokenize(PROMPT)?;
    session.prefill(&prompt)?;
    let begun = Instant::now();
    let mut times = Vec::new();
    // The prompt's own tokens again and again: every way decodes the same.
    for &token in prompt.iter().cycle().take(bench.decode) {
        let start = Instant::now();
        session.decode(token)?;
        times.push(start.elapsed().as_secs_f64());
        if begun.elapsed() > PATIENCE {
            break;
        }
    }
    let speed = |times: &[f64]| times.len() as f64 / times.iter().sum::<f64>().max(1e-9);
    Ok(Row {
        way: way.name,
        tokens: times.len(),
        tokens_per_s: speed(&times),
        last_half_tokens_per_s: speed(&times[times.len() / 2..]),
        thread_changes: session.stats().thread_changes,
    })
}

/// Busy programs, ended when dropped.
struct Neighbours(Vec<Child>);

impl Neighbours {
    fn start(neighbours: u32) -> Result<Self> {
        let mut busy = Self(Vec::new());
        for _ in 0..neighbours {
            // A session of its own, as other programs have: Linux divides the cores among
            // sessions first, and niceness counts only within one.
            let child = Command::new("setsid")
                .args(["nice", "-n", "10", "sh", "-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .context("cannot start a busy neighbour (`setsid`, `nice`, `sh` are needed)")?;
            busy.0.push(child);
        }
        Ok(busy)
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
