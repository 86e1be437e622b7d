//! `motley sim --workers N`: decoding with workers, beside the machine alone and beside whole layers on
//! each machine. Experts are placed by what the prompt and the first decoded tokens used; the tokens
//! after them are measured.

use super::subject::Subject;
use crate::args::{Global, HostArgs, Sim};
use crate::known::machine;
use crate::page::{align_right, facts, percent, printable, table, width_of};
use crate::terminal::{print_json, print_page};
use anyhow::{Result, ensure};
use comfy_table::presets;
use motley_cost::HostLink;
use motley_sched::remote::ExpertSet;
use motley_sim::Outcome;
use motley_sim::hosts::{HostChoices, HostSetup};
use motley_sim::outcome::HostOutcome;
use motley_sim::setup::Choices;
use motley_trace::Phase;
use serde::Serialize;

/// Part of the decoded tokens that placing learns from.
const LEARNED: f64 = 1.0 / 3.0;
/// Fewest tokens that are measured.
const LEAST_TOKENS: u64 = 8;
/// What TCP leaves of a line's rate, with frames of 1500 bytes.
const TCP_SHARE: f64 = 0.94;

/// Everything that is reported.
#[derive(Serialize)]
struct HostReport {
    machine: String,
    worker: String,
    model: String,
    routing: String,
    note: Option<String>,
    workers: u16,
    cable_gb_per_s: f64,
    round_trip_us: f64,
    /// Tokens that experts were placed by were decoded before.
    measured_tokens: u64,
    /// Part of the experts that the head's memories hold, and all machines' together.
    held_alone: f64,
    held: f64,
    /// Decoded tokens per second: with workers, the head with its disk, whole layers on each in turn.
    with_workers_tokens_per_s: f64,
    alone_tokens_per_s: f64,
    layer_split_tokens_per_s: f64,
    each: Vec<WorkerRow>,
}

/// What one worker did over the whole trace.
#[derive(Serialize)]
struct WorkerRow {
    experts: u64,
    requests: u64,
    rows: u64,
    /// Parts of the time.
    compute: f64,
    wire: f64,
    waited: f64,
}

/// Runs it.
pub(super) fn run(
    global: &Global,
    (sim, workers): (&Sim, u16),
    (head, subject): (Choices<'_>, &Subject),
    columns: Option<u16>,
) -> Result<()> {
    let other = sim.hosts.worker_machine.as_deref().map(|name| machine(name, None)).transpose()?;
    let trace = &subject.trace;
    let from = trace.pass_after(LEARNED);
    let measured = trace.passes(Phase::Decode) - trace.before(from).passes(Phase::Decode);
    ensure!(
        measured >= LEAST_TOKENS,
        "{} has {measured} decoded tokens after those experts are placed by; --workers needs {LEAST_TOKENS}",
        subject.routing
    );
    let setup = HostSetup::new(&HostChoices {
        head,
        worker: other.as_ref().unwrap_or(head.machine),
        workers,
        link: link(&sim.hosts),
        uses: &trace.uses_before(from),
        replicas: true,
        streams: 1,
    })?;
    let outcome = setup.run(trace)?;
    let all = f64::from(subject.shape.layers) * f64::from(subject.shape.experts);
    let own = f64::from(setup.head_slots());
    let others = f64::from(workers) * f64::from(setup.worker_slots);
    let link = link(&sim.hosts);
    let report = HostReport {
        machine: head.machine.name.clone(),
        worker: other.as_ref().unwrap_or(head.machine).name.clone(),
        model: subject.shape.name.clone(),
        routing: subject.routing.clone(),
        note: subject.note.clone(),
        workers,
        cable_gb_per_s: link.gb_per_s,
        round_trip_us: link.round_trip_us,
        measured_tokens: measured,
        held_alone: (own / all).min(1.0),
        held: ((own + others) / all).min(1.0),
        with_workers_tokens_per_s: outcome.tokens_per_s_from(from),
        alone_tokens_per_s: setup.alone(trace)?.tokens_per_s_from(from),
        layer_split_tokens_per_s: setup.split(trace).tokens_per_s_from(from),
        each: each(&setup, &outcome),
    };
    if global.json {
        print_json(&serde_json::to_string_pretty(&report)?)?;
    } else {
        print_page(&render(&report, width_of(columns)))?;
    }
    Ok(())
}

fn link(asked: &HostArgs) -> HostLink {
    let gb_per_s = asked.cable / 8.0 * TCP_SHARE;
    HostLink { round_trip_us: asked.round_trip, gb_per_s }
}

fn each(setup: &HostSetup, outcome: &Outcome) -> Vec<WorkerRow> {
    let of = |(done, set): (&HostOutcome, &ExpertSet)| WorkerRow {
        experts: u64::from(set.count()),
        requests: done.requests,
        rows: done.rows,
        compute: outcome.share_of_wall(done.compute),
        wire: outcome.share_of_wall(done.wire),
        waited: outcome.share_of_wall(done.waited),
    };
    outcome.hosts.iter().zip(&setup.placed).map(of).collect()
}

/// The page.
fn render(report: &HostReport, width: u16) -> String {
    let mut speeds = table(width, presets::UTF8_FULL_CONDENSED);
    speeds.set_header(["Decode", "tokens/s", "with workers over it"]);
    let ours = report.with_workers_tokens_per_s;
    for (name, speed) in [
        ("with workers", ours),
        ("this machine alone", report.alone_tokens_per_s),
        ("whole layers on each machine", report.layer_split_tokens_per_s),
    ] {
        let over = format!("{:.2} ×", ours / speed.max(f64::MIN_POSITIVE));
        speeds.add_row([name, &format!("{speed:.2}"), &over]);
    }
    align_right(&mut speeds, &[1, 2]);
    let mut rows = table(width, presets::UTF8_FULL_CONDENSED);
    rows.set_header(["Worker", "experts", "requests", "rows", "computes", "wire", "waited for"]);
    for (number, row) in report.each.iter().enumerate() {
        rows.add_row([
            (number + 1).to_string(),
            row.experts.to_string(),
            row.requests.to_string(),
            row.rows.to_string(),
            percent(row.compute),
            percent(row.wire),
            percent(row.waited),
        ]);
    }
    align_right(&mut rows, &[1, 2, 3, 4, 5, 6]);
    format!(
        " {} on {}: {}\n\n{}\n\n{}\n{}",
        printable(&report.model),
        printable(&report.machine),
        report.routing,
        facts(&told(report), width),
        speeds.trim_fmt(),
        rows.trim_fmt()
    )
}

fn told(report: &HostReport) -> Vec<(&'static str, String)> {
    let cable = format!(
        "{:.3} GB/s each way, round trip {:.0} µs",
        report.cable_gb_per_s, report.round_trip_us
    );
    let held = format!(
        "{} of the experts in this machine's memories, {} in all machines'",
        percent(report.held_alone),
        percent(report.held)
    );
    let workers = format!("{} × {}", report.workers, printable(&report.worker));
    let mut told = vec![("Workers", workers), ("Cable", cable), ("Held", held)];
    told.extend(report.note.clone().map(|note| ("Note", note)));
    told.push(("Measured", format!("the last {} decoded tokens", report.measured_tokens)));
    told
}
