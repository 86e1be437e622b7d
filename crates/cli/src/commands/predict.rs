//! `motley predict`: the speeds a plan expects beside measured ones, for models and budgets (M1).
//! Each measurement is a run in a process of its own, as in `motley bench`.

use crate::args::{Global, Predict};
use crate::commands::bench::{child, rate};
use crate::commands::worker::Job;
use crate::page::{align_right, bytes, file_name, table, width_of};
use crate::planned::{Wanted, everything, expected};
use anyhow::{Context, Result};
use comfy_table::presets;
use motley_model::ModelSpec;
use motley_plan::SessionShape;
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// Largest prefill chunk of the runs.
const CHUNK_TOKENS: u32 = 512;

/// Runs the command.
pub(crate) fn run(global: &Global, args: &Predict, columns: Option<u16>) -> Result<()> {
    let mut rows = Vec::new();
    for model in &args.models {
        rows.extend(case(global, args, model, None)?);
        for budget in &args.budgets {
            rows.extend(case(global, args, model, Some(*budget))?);
        }
    }
    let report = Report::new(rows);
    let text = match global.json {
        true => serde_json::to_string_pretty(&report)?,
        false => report.render(width_of(columns)),
    };
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}

/// Both phases of one model within one budget.
fn case(global: &Global, args: &Predict, model: &Path, budget: Option<u64>) -> Result<[Row; 2]> {
    let (spec, _) = ModelSpec::open(model)?;
    let context = (args.prefill + args.decode + 1).next_multiple_of(256) as u32;
    let shape = SessionShape { context_tokens: context, chunk_tokens: CHUNK_TOKENS };
    let wanted = Wanted {
        memory_bytes: budget.unwrap_or_else(|| everything(&spec, shape)),
        context_tokens: context,
        chunk_tokens: Some(CHUNK_TOKENS),
        prompt_tokens: args.prefill as u32,
        threads: global.threads,
    };
    let plan = expected(&spec, &wanted)
        .context("nothing to predict with; `motley calibrate` measures this machine")?;
    let measured = child(&Job {
        model: model.to_owned(),
        on_demand: budget.is_some(),
        memory: budget,
        repack: true,
        threads: global.threads,
        context,
        chunk: CHUNK_TOKENS,
        prefill: args.prefill,
        decode: args.decode,
        repeat: args.repeat,
        ..Job::default()
    })?;
    let row = |phase, expected: f64, measured: f64| Row {
        model: file_name(model),
        memory_bytes: budget,
        phase,
        expected_tokens_per_s: expected,
        measured_tokens_per_s: measured,
        error: expected / measured.max(f64::MIN_POSITIVE) - 1.0,
    };
    Ok([
        row("prefill", plan.prefill.tokens_per_s, rate(args.prefill, &measured.prefill_s)),
        row("decode", plan.decode.tokens_per_s, rate(args.decode, &measured.decode_s)),
    ])
}

#[derive(Debug, Serialize)]
struct Row {
    model: String,
    /// `None` when everything was in memory.
    memory_bytes: Option<u64>,
    phase: &'static str,
    expected_tokens_per_s: f64,
    measured_tokens_per_s: f64,
    /// Expected over measured, less one.
    error: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    cases: Vec<Row>,
    median_error: f64,
    worst_error: f64,
}

impl Report {
    fn new(cases: Vec<Row>) -> Self {
        let mut errors: Vec<f64> = cases.iter().map(|row| row.error.abs()).collect();
        errors.sort_by(f64::total_cmp);
        let middle = errors.len() / 2;
        let median = match errors.len() {
            0 => 0.0,
            length if length % 2 == 1 => errors[middle],
            _ => (errors[middle - 1] + errors[middle]) / 2.0,
        };
        let worst_error = errors.last().copied().unwrap_or(0.0);
        Self { cases, median_error: median, worst_error }
    }

    fn render(&self, width: u16) -> String {
        let mut rows = table(width, presets::UTF8_FULL_CONDENSED);
        rows.set_header(["Model", "memory", "phase", "expected/s", "measured/s", "error"]);
        for row in &self.cases {
            rows.add_row([
                row.model.clone(),
                row.memory_bytes.map_or("everything".into(), bytes),
                row.phase.to_owned(),
                format!("{:.1}", row.expected_tokens_per_s),
                format!("{:.1}", row.measured_tokens_per_s),
                format!("{:+.1} %", 100.0 * row.error),
            ]);
        }
        align_right(&mut rows, &[1, 3, 4, 5]);
        format!(
            "{}\n Error: median {:.1} %, worst {:.1} %",
            rows.trim_fmt(),
            100.0 * self.median_error,
            100.0 * self.worst_error
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_summed_up_by_size() {
        let row = |error| Row {
            model: "m".into(),
            memory_bytes: None,
            phase: "decode",
            expected_tokens_per_s: 1.0,
            measured_tokens_per_s: 1.0,
            error,
        };
        let report = Report::new(vec![row(-0.3), row(0.1), row(0.2), row(0.0)]);
        assert!((report.median_error - 0.15).abs() < 1e-9, "{report:?}");
        assert_eq!(report.worst_error, 0.3);
        assert!(report.render(80).contains("-30.0 %"));
        assert_eq!(Report::new(vec![]).median_error, 0.0);
    }
}
