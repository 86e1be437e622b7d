//! The outcome of a simulation as a page of at most so many columns, and as JSON.

use super::subject::Subject;
use crate::page::{Fact, align_right, bar, facts, percent, printable, table};
use comfy_table::presets;
use motley_machine::Machine;
use motley_model::format_bytes;
use motley_sched::Named;
use motley_sched::regime::Regime;
use motley_sim::Outcome;
use motley_sim::outcome::PhaseOutcome;
use motley_sim::setup::Setup;
use serde::Serialize;

/// Length of the bars, in characters.
const BAR_CELLS: usize = 25;

/// Everything that is reported.
#[derive(Serialize)]
pub(super) struct SimReport {
    machine: String,
    model: String,
    routing: String,
    note: Option<String>,
    faults_seed: Option<u64>,
    regime: &'static str,
    strategy: &'static str,
    policy: String,
    prefetch: String,
    experts_bytes: u64,
    expert_bytes: u64,
    load_us: f64,
    cached_experts: u64,
    cached_share: f64,
    hit_rate: f64,
    guessed_hit_rate: f64,
    lookups: u64,
    /// Shares of routed pairs and of their weight; absent where nothing may be left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<[f64; 2]>,
    prefill: PhaseReport,
    decode: PhaseReport,
    wall_s: f64,
    demand_loads: u64,
    guessed_loads: u64,
    failed_loads: u64,
    home_computes: u64,
    tier_computes: u64,
    busy: Vec<Busy>,
    link_idle_s: f64,
    link_idle_share: f64,
}

/// One phase.
#[derive(Serialize)]
struct PhaseReport {
    tokens: u64,
    time_s: f64,
    tokens_per_s: f64,
}

impl PhaseReport {
    fn new(phase: &PhaseOutcome) -> Self {
        let (tokens, time_s) = (phase.tokens, phase.time.as_s());
        Self { tokens, time_s, tokens_per_s: phase.tokens_per_s() }
    }
}

/// How long something was busy with one kind of work.
#[derive(Serialize)]
struct Busy {
    unit: String,
    work: &'static str,
    share: f64,
}

impl SimReport {
    pub(super) fn new(
        machine: &Machine,
        subject: &Subject,
        setup: &Setup,
        outcome: &Outcome,
        faults_seed: Option<u64>,
    ) -> Self {
        let (shape, counts) = (&subject.shape, &outcome.counts);
        let all_experts = u32::from(shape.layers) * u32::from(shape.experts);
        let per_lookup = |hits: u64| hits as f64 / counts.lookups.max(1) as f64;
        Self {
            machine: machine.name.clone(),
            model: shape.name.clone(),
            routing: subject.routing.clone(),
            note: subject.note.clone(),
            faults_seed,
            regime: setup.regime.name(),
            strategy: setup.scheduler.rules.decode.name(),
            policy: setup.scheduler.rules.policies(),
            prefetch: setup.scheduler.rules.prefetchers(),
            experts_bytes: shape.routed_bytes(),
            expert_bytes: shape.expert.bytes,
            load_us: setup.load_time().as_us(),
            cached_experts: u64::from(setup.scheduler.first().capacity.total()),
            cached_share: f64::from(setup.scheduler.first().capacity.total())
                / f64::from(all_experts),
            hit_rate: outcome.hit_rate(),
            guessed_hit_rate: per_lookup(counts.guessed_hits),
            lookups: counts.lookups,
            left_out: setup.scheduler.rules.skip_cold.map(|_| left_out(outcome)),
            prefill: PhaseReport::new(&outcome.prefill),
            decode: PhaseReport::new(&outcome.decode),
            wall_s: outcome.wall.as_s(),
            demand_loads: counts.demand_loads,
            guessed_loads: counts.guessed_loads,
            failed_loads: counts.failed_loads,
            home_computes: counts.home_computes,
            tier_computes: counts.tier_computes,
            busy: busy(setup, outcome),
            link_idle_s: outcome.link_idle().as_s(),
            link_idle_share: outcome.share_of_wall(outcome.link_idle()),
        }
    }
}

/// Shares of routed pairs and of their weight.
fn left_out(outcome: &Outcome) -> [f64; 2] {
    let all = outcome.weighed_pairs.max(1) as f64;
    [outcome.left_out.pairs as f64 / all, outcome.left_out.weight / all]
}

fn busy(setup: &Setup, outcome: &Outcome) -> Vec<Busy> {
    let share = |time| outcome.share_of_wall(time);
    let one = |unit: &str, work, share| Busy { unit: unit.to_owned(), work, share };
    let mut all = vec![
        one(&setup.dense, "attention, dense layers", share(outcome.dense_busy)),
        one(&setup.fast, "routed experts", share(outcome.fast_busy)),
    ];
    let home = setup.home.as_deref().unwrap_or_default();
    let lanes = outcome.home_busy.iter().enumerate().map(|(lane, &time)| {
        let unit = if lane == 0 { home.to_owned() } else { format!("{home} {lane}") };
        one(&unit, "routed experts", share(time))
    });
    all.extend(lanes);
    if setup.regime != Regime::OneMemory {
        let link = format!("{} → {}", setup.slow, setup.fast);
        all.push(one(&link, "experts on demand", share(outcome.demand_busy)));
        all.push(one(&link, "experts ahead of need", share(outcome.guess_busy)));
        all.push(one(&link, "idle", share(outcome.link_idle())));
    }
    all
}

/// The page.
pub(super) fn render(report: &SimReport, width: u16) -> String {
    let mut work = table(width, presets::UTF8_FULL_CONDENSED);
    work.set_header(["Unit or link", "Work", "Time", ""]);
    for Busy { unit, work: what, share } in &report.busy {
        work.add_row([unit, *what, &percent(*share), &bar(*share, BAR_CELLS)]);
    }
    align_right(&mut work, &[2]);
    format!("{}\n\n{}\n\n{}", title(report), facts(&run_facts(report), width), work.trim_fmt())
}

/// One line on what was simulated.
fn title(report: &SimReport) -> String {
    format!(" {} on {}: {}", printable(&report.model), printable(&report.machine), report.routing)
}

fn run_facts(report: &SimReport) -> Vec<Fact> {
    let mut facts = vec![
        ("Experts", place(report)),
        (
            "Judgement",
            format!(
                "strategy {}, policy {}, prefetch {}",
                report.strategy, report.policy, report.prefetch
            ),
        ),
    ];
    if let Some(note) = &report.note {
        facts.push(("Note", note.clone()));
    }
    if let Some(seed) = report.faults_seed {
        facts.push(("Faults", format!("seed {seed}; {} loads failed", report.failed_loads)));
    }
    facts.push(("Prefill", speed(&report.prefill)));
    facts.push(("Decode", speed(&report.decode)));
    facts.push(("Hit rate", hits(report)));
    if let Some([pairs, weight]) = report.left_out {
        let (pairs, weight) = (percent(pairs), percent(weight));
        facts.push(("Left out", format!("{pairs} of routed pairs, {weight} of their weight")));
    }
    facts
}

fn place(report: &SimReport) -> String {
    let total = format_bytes(report.experts_bytes);
    if report.regime == "one-memory" {
        return format!("{total}, all in one memory");
    }
    let cached = format_bytes(report.cached_experts * report.expert_bytes);
    let share = percent(report.cached_share);
    let home = match report.regime {
        "beyond-ram" => "on disk",
        "near-data" => "in computing memory modules",
        _ => "in RAM",
    };
    format!("{total} {home}; {share} cached ({cached})")
}

fn hits(report: &SimReport) -> String {
    let all = percent(report.hit_rate);
    if report.guessed_hit_rate == 0.0 {
        return format!("{all} of routed experts in fast memory");
    }
    let guessed = percent(report.guessed_hit_rate);
    format!("{all} of routed experts in fast memory, {guessed} by a guess")
}

fn speed(phase: &PhaseReport) -> String {
    if phase.tokens == 0 {
        return "nothing".to_owned();
    }
    let PhaseReport { tokens, tokens_per_s, .. } = phase;
    format!("{tokens_per_s:.1} tok/s ({tokens} tokens in {})", seconds(phase.time_s))
}

/// `1.23 s`, or milliseconds below one.
fn seconds(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.1} ms", 1e3 * seconds) } else { format!("{seconds:.2} s") }
}
