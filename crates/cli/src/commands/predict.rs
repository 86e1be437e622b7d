//! `motley predict`: the speeds a plan expects beside measured ones, for models and budgets (M1).
//! Each measurement is a run in a process of its own, as in `motley bench`.

use crate::args::{Global, Predict};
use crate::commands::bench::{child, rate};
use crate::commands::measure_job::Job;
use crate::known::Known;
use crate::page::{align_right, file_name, progress_target, table, width_of};
use crate::terminal::print;
use anyhow::{Result, ensure};
use comfy_table::presets;
use indicatif::ProgressBar;
use motley_cost::statistics::median;
use motley_engine::eval::tasks::read_text;
use motley_engine::{Loading, Runtime, Seam};
use motley_model::format_bytes;
use motley_plan::{Asked, CHUNKS, Decision, DevicesAsked};
use serde::Serialize;
use std::path::Path;

/// Runs the command.
pub(crate) fn run(global: &Global, args: &Predict, columns: Option<u16>) -> Result<()> {
    let text = args.text.as_deref().map(read_text).transpose()?;
    let budgets = || std::iter::once(None).chain(args.budgets.iter().copied().map(Some));
    let pairs = args.models.iter().flat_map(|model| budgets().map(move |budget| (model, budget)));
    let runtime = Runtime::start(Seam::Registered)?;
    let mut cases = pairs
        .map(|(model, budget)| {
            let known = Known::to_run(&runtime, global, model, args.trust)?;
            let mut case = Case::new(&known, args, model, budget)?;
            case.job.text.clone_from(&text);
            Ok(case)
        })
        .collect::<Result<Vec<_>>>()?;
    let bar = bar(global.json, u64::from(args.rounds) * cases.len() as u64);
    for _ in 0..args.rounds {
        for case in &mut cases {
            case.measure()?;
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let report = PredictReport::new(cases.iter().flat_map(Case::rows).collect());
    let text = match global.json {
        true => serde_json::to_string_pretty(&report)?,
        false => report.render(width_of(columns)),
    };
    print(global.json, &text)
}

/// One model within one budget.
struct Case {
    job: Job,
    decision: Decision,
    /// Speeds of prompts and of decode, one of each per round.
    measured: [Vec<f64>; 2],
}

impl Case {
    fn new(known: &Known, args: &Predict, model: &Path, budget: Option<u64>) -> Result<Self> {
        ensure!(
            known.measured.is_some(),
            "nothing to predict with; `motley calibrate` measures this machine"
        );
        let decision = known.decide(&Asked {
            memory_bytes: budget,
            loading: budget.is_none().then_some(Loading::Mapped),
            threads: args.threads,
            context_tokens: Some((args.prefill + args.decode + 1).next_multiple_of(256) as u32),
            chunk_tokens: Some(CHUNKS[0]),
            prompt_tokens: args.prefill as u32,
            devices: DevicesAsked::Cpu,
            ..Asked::default()
        })?;
        let job = Job {
            model: model.to_owned(),
            context: decision.session.context_tokens,
            chunk: decision.session.chunk_tokens,
            decision: Some(decision.clone()),
            prefill: args.prefill,
            decode: args.decode,
            repeat: 1,
            ..Job::default()
        };
        Ok(Self { job, decision, measured: Default::default() })
    }

    fn measure(&mut self) -> Result<()> {
        let outcome = child(&self.job)?;
        self.measured[0].push(rate(self.job.prefill, &outcome.prefill_s));
        self.measured[1].push(rate(self.job.decode, &outcome.decode_s));
        Ok(())
    }

    fn rows(&self) -> [Row; 2] {
        let [prefill, decode] = &self.measured;
        let row = |phase, expected: f64, runs: &[f64]| {
            let measured = median(runs).unwrap_or(0.0);
            Row {
                model: file_name(&self.job.model),
                memory_bytes: self.decision.memory_bytes,
                phase,
                expected_tokens_per_s: expected,
                measured_tokens_per_s: measured,
                error: expected / measured.max(f64::MIN_POSITIVE) - 1.0,
                runs: runs.to_vec(),
            }
        };
        [
            row("prefill", self.decision.prefill.tokens_per_s, prefill),
            row("decode", self.decision.decode.tokens_per_s, decode),
        ]
    }
}

fn bar(quiet: bool, runs: u64) -> ProgressBar {
    ProgressBar::with_draw_target(Some(runs), progress_target(quiet))
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
    /// What every round measured.
    runs: Vec<f64>,
}

#[derive(Debug, Serialize)]
struct PredictReport {
    cases: Vec<Row>,
    median_error: f64,
    worst_error: f64,
}

impl PredictReport {
    fn new(cases: Vec<Row>) -> Self {
        let errors: Vec<f64> = cases.iter().map(|row| row.error.abs()).collect();
        let worst_error = errors.iter().copied().fold(0.0, f64::max);
        Self { median_error: median(&errors).unwrap_or(0.0), worst_error, cases }
    }

    fn render(&self, width: u16) -> String {
        let mut rows = table(width, presets::UTF8_FULL_CONDENSED);
        rows.set_header(["Model", "memory", "phase", "expected/s", "measured/s", "error"]);
        for row in &self.cases {
            rows.add_row([
                row.model.clone(),
                row.memory_bytes.map_or("everything".into(), format_bytes),
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
            runs: vec![1.0],
        };
        let report = PredictReport::new(vec![row(-0.3), row(0.1), row(0.2), row(0.0)]);
        assert!((report.median_error - 0.15).abs() < 1e-9, "{report:?}");
        assert_eq!(report.worst_error, 0.3);
        assert!(report.render(80).contains("-30.0 %"));
    }
}
