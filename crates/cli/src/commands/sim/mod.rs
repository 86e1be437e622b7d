//! `motley sim`: a model on a machine in virtual time. Gathers what was asked for, runs it,
//! prints and writes; every number comes from `motley-sim`.
//!
//! - `subject`: which model and which routing.
//! - `page`: the outcome as a page, and as JSON.
//! - `rerun`: `--run`, a recorded run again.
//! - `choose`: `--choose`, rules by replay.
//! - `hosts`: `--workers`, beside the machine alone.
//! - `curves`: `--curves`, all cache policies compared.

use crate::args::{Global, OutputArgs, Sim};
use crate::known::machine;
use crate::page::width_of;
use crate::terminal::{print_json, print_page};
use anyhow::{Result, bail};
use motley_sim::Outcome;
use motley_sim::faults::Faults;
use motley_sim::setup::{CacheSize, Choices, Setup};
use motley_sim::spans::{RowNames, Spans};

mod choose;
mod curves;
mod draw;
mod hosts;
mod page;
mod rerun;
mod subject;

pub(crate) use choose::{told_choice, with_bar};
pub(crate) use subject::{read as read_trace, shape_of_file};

use draw::{Drawn, draw, write};
use subject::Subject;

/// What `--faults` lets go wrong.
const FAULTS: Faults = Faults {
    load_fails: 0.01,
    link_slows: 0.005,
    slow_loads: 50,
    link_factor: 4.0,
    unit_stalls: 0.01,
    unit_factor: 4.0,
};

/// Runs the command.
pub(crate) fn run(global: &Global, sim: &Sim, columns: Option<u16>) -> Result<()> {
    if let Some(folder) = &sim.output.curves {
        return curves::run(global, sim, folder, columns);
    }
    if sim.trace.len() > 1 {
        bail!("one --trace at a time can be simulated; several can be compared with --curves");
    }
    if let Some(record) = &sim.run {
        return rerun::run(global, sim, record, columns);
    }
    let machine = machine(&sim.machine, None)?;
    let subject = Subject::gather(sim, u64::from(sim.seed))?;
    let choices = Choices {
        machine: &machine,
        model: &subject.shape,
        strategy: sim.choice.strategy,
        policy: sim.choice.policy,
        prefetch: sim.choice.prefetch,
        cache: sim.choice.cache.unwrap_or(CacheSize::Fitting),
        prediction_accuracy: sim.choice.prediction,
        faults: sim.choice.faults.map(|seed| (FAULTS, seed)),
        seed: u64::from(sim.seed),
    };
    if let Some(workers) = sim.hosts.workers {
        return hosts::run(global, (sim, workers), (choices, &subject), columns);
    }
    let setup = Setup::new(&choices)?.skipping(sim.approximate.skip_cold)?;
    if sim.choice.choose {
        return choose::run(global, &machine, &subject, &setup, columns);
    }
    let wants_spans = sim.output.timeline.is_some() || sim.output.svg.is_some();
    let mut spans = wants_spans.then(Spans::default);
    let outcome = setup.run(&subject.trace, spans.as_mut())?;
    if let Some(spans) = &spans {
        write_files(&sim.output, spans, &subject, &setup)?;
    }
    let report = page::SimReport::new(&machine, &subject, &setup, &outcome, sim.choice.faults);
    if global.json {
        print_json(&serde_json::to_string_pretty(&report)?)?;
    } else {
        let page = page::render(&report, width_of(columns));
        print_page(&(page + &told_files(&sim.output, spans.as_ref(), &outcome)))?;
    }
    Ok(())
}

fn write_files(output: &OutputArgs, spans: &Spans, subject: &Subject, setup: &Setup) -> Result<()> {
    if let Some(path) = &output.timeline {
        write(path, &serde_json::to_string(&spans.to_chrome_trace(&RowNames::default()))?)?;
    }
    let Some(path) = &output.svg else { return Ok(()) };
    let units = match &setup.home {
        Some(home) => format!("fast unit {}, home unit {home}", setup.fast),
        None => format!("fast unit {}", setup.fast),
    };
    let drawn = Drawn { name: &subject.shape.name, units: &units, layer: output.layer };
    draw(path, spans, &subject.trace, &drawn)
}

/// Lines below the page that say which files were written.
fn told_files(output: &OutputArgs, spans: Option<&Spans>, outcome: &Outcome) -> String {
    let mut told = String::new();
    if let Some(path) = &output.timeline {
        told += &format!("\n Timeline: {} (open it in ui.perfetto.dev)", path.display());
    }
    if let Some(path) = &output.svg {
        told += &format!("\n Picture: {}", path.display());
    }
    if let Some(left_out) = spans.map(|spans| spans.left_out).filter(|&count| count > 0) {
        let tokens = outcome.prefill.tokens + outcome.decode.tokens;
        told += &format!("\n The timeline ends before the last of {tokens} tokens: ");
        told += &format!("{left_out} spans more");
    }
    told
}
