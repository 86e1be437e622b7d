//! `motley sim --run RECORD --trace TRACE`: a recorded run again in virtual time, beside what it
//! was in real time (M1).

use super::draw::{Drawn, draw};
use super::subject::read;
use crate::args::{Global, Sim};
use crate::page::{align_right, printable, table, width_of};
use crate::terminal::{print_json, print_page};
use anyhow::{Context, Result};
use comfy_table::presets;
use motley_sim::Outcome;
use motley_sim::fewer::fewer_experts;
use motley_sim::outcome::PhaseOutcome;
use motley_sim::rerun::{PolicyHits, Rerun, check_pair};
use motley_sim::spans::Spans;
use motley_trace::{PhaseRecord, RunRecord};
use serde::Serialize;
use std::path::Path;

/// Runs the command.
pub(super) fn run(global: &Global, sim: &Sim, record: &Path, columns: Option<u16>) -> Result<()> {
    let name = || format!("cannot use {}", record.display());
    let text = std::fs::read_to_string(record).with_context(name)?;
    let record = RunRecord::parse(&text).with_context(name)?;
    let recorded = read(&sim.trace[0])?;
    check_pair(&record, &recorded)?;
    let trace = match sim.approximate.experts {
        Some(used) => fewer_experts(recorded, used)?,
        None => recorded,
    };
    let rerun = Rerun::of(&record)?;
    let mut spans = sim.output.svg.as_ref().map(|_| Spans::default());
    let outcome = rerun.run(&trace, spans.as_mut())?;
    if let (Some(path), Some(spans)) = (&sim.output.svg, &spans) {
        let layer = sim.output.layer;
        draw(path, spans, &trace, &Drawn { name: &record.model, units: "CPU and disk", layer })?;
    }
    let compared = Compared::new(&record, &outcome, rerun.policies(&trace)?);
    if global.json {
        print_json(&serde_json::to_string_pretty(&compared)?)?;
    } else {
        print_page(&compared.render(width_of(columns)))?;
    }
    Ok(())
}

/// Real beside simulated.
#[derive(Serialize)]
struct Compared {
    model: String,
    prefill: Speed,
    decode: Speed,
    /// (real, simulated) share of routed experts that were in memory when needed.
    hit_rate: (f64, f64),
    /// What policies would have had in memory in decode with these slots, without guesses.
    policies: Vec<PolicyHits>,
}

#[derive(Serialize)]
struct Speed {
    tokens: u64,
    real_tokens_per_s: f64,
    simulated_tokens_per_s: f64,
    /// Simulated over real, less one.
    error: f64,
}

impl Speed {
    fn new(real: &PhaseRecord, simulated: &PhaseOutcome) -> Self {
        let (real_tokens_per_s, simulated_tokens_per_s) =
            (real.tokens_per_s(), simulated.tokens_per_s());
        Self {
            tokens: real.tokens,
            real_tokens_per_s,
            simulated_tokens_per_s,
            error: simulated_tokens_per_s / real_tokens_per_s.max(f64::MIN_POSITIVE) - 1.0,
        }
    }

    fn row(&self, name: &str) -> [String; 5] {
        [
            name.into(),
            self.tokens.to_string(),
            format!("{:.2}", self.real_tokens_per_s),
            format!("{:.2}", self.simulated_tokens_per_s),
            format!("{:+.1} %", 100.0 * self.error),
        ]
    }
}

impl Compared {
    fn new(record: &RunRecord, outcome: &Outcome, policies: Vec<PolicyHits>) -> Self {
        let both = record.prefill.plus(&record.decode);
        Self {
            model: record.model.clone(),
            prefill: Speed::new(&record.prefill, &outcome.prefill),
            decode: Speed::new(&record.decode, &outcome.decode),
            hit_rate: (both.hit_rate(), outcome.hit_rate()),
            policies,
        }
    }

    fn render(&self, width: u16) -> String {
        let mut speeds = table(width, presets::UTF8_FULL_CONDENSED);
        speeds.set_header(["Tokens per second", "tokens", "real", "simulated", "error"]);
        speeds.add_row(self.prefill.row("prefill"));
        speeds.add_row(self.decode.row("decode"));
        align_right(&mut speeds, &[1, 2, 3, 4]);
        let (real, simulated) = self.hit_rate;
        let hits = self.policies.iter();
        let hits: Vec<String> =
            hits.map(|p| format!("{} {:.1} %", p.policy, 100.0 * p.hit_rate)).collect();
        format!(
            " {}, with the costs measured in the run\n{}\n Experts in memory when needed: {:.1} % real, {:.1} % simulated\n \
             In decode, without guesses: {}",
            printable(&self.model),
            speeds.trim_fmt(),
            100.0 * real,
            100.0 * simulated,
            hits.join(", "),
        )
    }
}
