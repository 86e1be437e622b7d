//! `motley sim --curves`: every cache policy at every size on one or more traces.

use super::subject::{made, read, shape};
use crate::args::{Global, Sim};
use crate::page::{align_right, printable, table, width_of};
use crate::terminal::{note, print_json, print_page};
use anyhow::{Context, Result};
use comfy_table::presets;
use motley_sim::curves::{Curve, policy_curves};
use motley_sim::holdout::Layout;
use motley_sim::report::{ReportInput, cache_policy_report};
use motley_sim::shape::ModelShape;
use motley_trace::Trace;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Decode tokens of the traces the report makes itself.
const SYNTHETIC_TOKENS: u32 = 2000;
/// Cache sizes of the printed table.
const SHARES: [f64; 4] = [0.1, 0.25, 0.5, 0.7];

/// Runs the command.
pub(super) fn run(global: &Global, sim: &Sim, folder: &Path, columns: Option<u16>) -> Result<()> {
    let seed = u64::from(sim.seed);
    let traces = traces(sim, seed)?;
    let mut compared = Vec::new();
    for trace in &traces {
        let curves = policy_curves(trace, Layout::PerLayer)?;
        if !global.json {
            print_page(&(render(trace, &curves, width_of(columns)) + "\n"))?;
        }
        compared.push(Compared { model: trace.header.model.clone(), curves });
    }
    if !global.json {
        note("writing the report; fitting made routing takes a while");
    }
    let input = ReportInput { traces: &traces, synthetic_tokens: SYNTHETIC_TOKENS, seed };
    let report = cache_policy_report(&input)?;
    let mut files = vec![("cache-policies.md".to_owned(), report.markdown)];
    files.extend(report.charts);
    let written = write(folder, &files)?;
    if global.json {
        print_json(&serde_json::to_string_pretty(&Answer { compared, written })?)?;
    } else {
        let charts = written.len() - 1;
        print_page(&format!(" Written: {} with {charts} charts beside it", written[0].display()))?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Answer {
    compared: Vec<Compared>,
    written: Vec<PathBuf>,
}

#[derive(Serialize)]
struct Compared {
    model: String,
    curves: Vec<Curve>,
}

fn traces(sim: &Sim, seed: u64) -> Result<Vec<Trace>> {
    if sim.trace.is_empty() {
        let shape = match shape(sim)? {
            Some(shape) => shape,
            None => ModelShape::find(super::subject::DEFAULT_SHAPE, sim.bits)?,
        };
        return Ok(vec![made(&shape, &sim.synthetic, seed)?]);
    }
    sim.trace.iter().map(|path| read(path)).collect()
}

fn render(trace: &Trace, curves: &[Curve], width: u16) -> String {
    let mut rates = table(width, presets::UTF8_FULL_CONDENSED);
    let sizes = SHARES.iter().map(|share| format!("{:.0} % cached", 100.0 * share));
    rates.set_header(std::iter::once("Decode hits, %".to_owned()).chain(sizes));
    for curve in curves {
        let rate = |share: &f64| {
            let point = curve.points.iter().find(|point| (point.0 - share).abs() < 1e-9);
            point.map_or(String::new(), |point| format!("{:.1}", 100.0 * point.1))
        };
        let policy = match curve.policy.as_str() {
            "belady" => "belady (bound)".to_owned(),
            other => other.to_owned(),
        };
        rates.add_row(std::iter::once(policy).chain(SHARES.iter().map(rate)));
    }
    align_right(&mut rates, &[1, 2, 3, 4]);
    format!(
        " {}, second half, slots per layer\n{}",
        printable(&trace.header.model),
        rates.trim_fmt()
    )
}

fn write(folder: &Path, files: &[(String, String)]) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut written = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path);
    }
    Ok(written)
}
