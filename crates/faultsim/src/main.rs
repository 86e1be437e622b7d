//! Seeds by the thousand: `cargo xtask seeds`. Prints what was survived, and how to replay what
//! was not.

#![forbid(unsafe_code)]

use anyhow::{Context, Result};
use clap::Parser;
use motley_faultsim::model::Injected;
use motley_faultsim::{Outcome, Plan, Report, run};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Failing seeds that are printed.
const SHOWN_MAX: usize = 10;

/// Run the engine's own parts in virtual time, under seeds, with faults.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask seeds", bin_name = "cargo xtask seeds")]
struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 100_000)]
    count: u64,
    /// The first one.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Run this one only.
    #[arg(long)]
    seed: Option<u64>,
    /// Print what happened in it.
    #[arg(long, requires = "seed")]
    verbose: bool,
    /// Write the figures here.
    #[arg(long)]
    json: Option<PathBuf>,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    hush_injected_panics();
    match arguments.seed {
        Some(seed) => Ok(one(seed, arguments.verbose)),
        None => many(&arguments),
    }
}

fn one(seed: u64, verbose: bool) -> ExitCode {
    let Outcome { verdict, counts, trace, .. } = run(seed, verbose);
    if verbose {
        println!("{:#?}", Plan::of(seed));
        trace.iter().for_each(|line| println!("{line}"));
    }
    println!("{counts:#?}");
    match verdict {
        Ok(()) => {
            println!("seed {seed}: right");
            ExitCode::SUCCESS
        }
        Err(broken) => {
            println!("seed {seed}: {broken}");
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a driver owns threads and reads the clock")]
fn many(arguments: &Arguments) -> Result<ExitCode> {
    let begun = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(arguments.from);
    let end = arguments.from.saturating_add(arguments.count);
    let work = || {
        let mut report = Report::default();
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= end {
                return report;
            }
            report.add(&run(seed, false));
        }
    };
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for thread in started {
            report.merge(thread.join().expect("a run ends with a verdict"));
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    let per_second = report.seeds as f64 / seconds;
    let figures = json!({
        "from": arguments.from,
        "seconds": seconds,
        "seeds_per_s": per_second,
        "threads": threads,
        "report": report,
    });
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&figures)? + "\n";
        std::fs::write(path, text).with_context(|| format!("{}: not written", path.display()))?;
    }
    println!("{}", serde_json::to_string_pretty(&figures["report"]["counts"])?);
    for (seed, broken) in report.failures.iter().take(SHOWN_MAX) {
        println!("seed {seed}: {broken}\n  cargo xtask seeds --seed {seed} --verbose");
    }
    if let Some((seed, _)) = report.failures.first() {
        run(*seed, true).trace.iter().for_each(|line| println!("{line}"));
    }
    println!(
        "{} seeds in {seconds:.1} s ({per_second:.0}/s), {} with faults, {} broke a rule; longest wait {:.1} virtual s",
        report.seeds,
        report.seeds_with_faults,
        report.failures.len(),
        report.longest_wait_s,
    );
    Ok(if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A panic that was injected is no news.
fn hush_injected_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.payload().is::<Injected>() {
            usual(panic);
        }
    }));
}
