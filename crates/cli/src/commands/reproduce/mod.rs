//! `motley reproduce`: published figures beside ours, as a table and as documents with
//! pictures. Prints and writes; every number comes from `motley_reproduce`, with `--engine`
//! also from the engine's executor ([`engine`]).
//!
//! - `machines`: the page of three machines and three models.

use crate::args::{Global, Reproduce, SourceArg};
use crate::commands::sim::read_trace;
use crate::npu;
use crate::page::{align_right, progress_target, table, width_of};
use crate::terminal::{print_json, print_page};
use anyhow::{Context, Result};
use comfy_table::presets;
use indicatif::ProgressBar;
use motley_reproduce::machines::{ASSUMED, Pairs, Row, rows};
use motley_reproduce::{Assumed, Document, Figure, Source, machines as compared, tiers};
use motley_trace::Trace;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod engine;
mod machines;

/// Runs the command.
pub(crate) fn run(global: &Global, reproduce: &Reproduce, columns: Option<u16>) -> Result<()> {
    if let Some(runs) = reproduce.engine {
        let known = matches!(reproduce.source, SourceArg::Hybrimoe);
        anyhow::ensure!(
            known,
            "--engine drives one source: write `motley reproduce hybrimoe --engine`"
        );
        return engine::run(runs, global.json, columns);
    }
    let traces: Vec<Trace> =
        reproduce.trace.iter().map(|path| read_trace(path)).collect::<Result<_>>()?;
    let mut reports = Vec::new();
    for source in sources(reproduce.source) {
        let waiting = spinner(global.json, source, reproduce.dry_run);
        let found = find(source, reproduce, &traces)?;
        waiting.finish_and_clear();
        if !global.json {
            print_page(&found.render(source, width_of(columns)))?;
            print_written(&found.written)?;
        }
        let measured = match source {
            Source::Npumoe => npu::ladder(global, &reproduce.ladder)?,
            _ => None,
        };
        if let Some(measured) = measured.as_ref().filter(|_| !global.json) {
            print_page(&measured.page)?;
        }
        let measured = measured.map(|measured| measured.json);
        reports.push(SourceReport { measured, ..SourceReport::new(source, found) });
    }
    if global.json {
        print_json(&serde_json::to_string_pretty(&reports)?)?;
    }
    Ok(())
}

/// What one source gave.
struct Found {
    figures: Vec<Figure>,
    /// The comparison of machines, for that source.
    rows: Vec<Row>,
    /// Decode of recorded traces, for that source.
    recorded: Vec<Row>,
    written: Vec<PathBuf>,
}

fn find(source: Source, reproduce: &Reproduce, traces: &[Trace]) -> Result<Found> {
    let (rows, recorded) = match source {
        Source::Machines => (rows(ASSUMED, Pairs::All)?, compared::recorded(traces, ASSUMED)?),
        _ => (Vec::new(), Vec::new()),
    };
    if reproduce.dry_run {
        let figures = match source {
            Source::Machines => compared::figures_of(&rows),
            source => source.figures()?,
        };
        return Ok(Found { figures, rows, recorded, written: Vec::new() });
    }
    let document = match source {
        Source::Machines => compared::document(&rows, traces)?,
        Source::Tiers => tiers::document(&tiers::rows(ASSUMED)?, traces)?,
        source => source.document()?,
    };
    let written = write(&reproduce.out, &document)?;
    Ok(Found { figures: document.figures, rows, recorded, written })
}

fn sources(wanted: SourceArg) -> Vec<Source> {
    match wanted {
        SourceArg::Hybrimoe => vec![Source::Hybrimoe],
        SourceArg::GpuNdp => vec![Source::GpuNdp],
        SourceArg::Aecs => vec![Source::Aecs],
        SourceArg::Npumoe => vec![Source::Npumoe],
        SourceArg::Machines => vec![Source::Machines],
        SourceArg::Tiers => vec![Source::Tiers],
        SourceArg::Hosts => vec![Source::Hosts],
        SourceArg::All => Source::ALL.to_vec(),
    }
}

fn write(folder: &Path, document: &Document) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let text = (format!("{}.md", document.name), &document.markdown);
    let pictures = document.pictures.iter().map(|picture| (picture.name.clone(), &picture.svg));
    let mut written = Vec::new();
    for (name, content) in std::iter::once(text).chain(pictures) {
        let path = folder.join(name);
        fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path);
    }
    Ok(written)
}

fn print_written(written: &[PathBuf]) -> Result<()> {
    let Some((document, pictures)) = written.split_first() else { return Ok(()) };
    let count = pictures.len();
    print_page(&format!(" Written: {} with {count} pictures beside it\n", document.display()))
}

impl Found {
    fn render(&self, source: Source, width: u16) -> String {
        let page = machines::render(&self.rows, &self.recorded, width);
        let figures = figures(source, &self.figures, width);
        let mut open = table(width, presets::UTF8_FULL_CONDENSED);
        open.set_header(["Open in the source", "Assumed here"]);
        for Assumed { open: what, here, .. } in source.assumed() {
            open.add_row([what.replace('`', ""), here]);
        }
        let (name, title) = (source.name(), source.title());
        format!(" {name}: {title}\n{page}{figures}\n{}", open.trim_fmt())
    }
}

fn figures(source: Source, figures: &[Figure], width: u16) -> String {
    let mut results = table(width, presets::UTF8_FULL_CONDENSED);
    results.set_header(["Figure", source.compared_with(), "Ours", "Difference"]);
    for figure in figures {
        results.add_row([
            figure.what.to_owned(),
            format!("{:.2}", figure.paper),
            format!("{:.2}", figure.ours),
            format!("{:+.0} %", 100.0 * figure.difference()),
        ]);
    }
    align_right(&mut results, &[1, 2, 3]);
    results.trim_fmt()
}

fn spinner(quiet: bool, source: Source, quick: bool) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, progress_target(quiet));
    let what = if quick { "simulating" } else { "sweeping every assumption, a minute or two" };
    bar.set_message(format!("{}: {what}", source.name()));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}

#[derive(Serialize)]
struct SourceReport {
    source: &'static str,
    figures: Vec<FigureReport>,
    assumed: Vec<AssumedReport>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rows: Vec<Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    recorded: Vec<Row>,
    written: Vec<PathBuf>,
    /// What was measured here beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<serde_json::Value>,
}

#[derive(Serialize)]
struct FigureReport {
    figure: &'static str,
    paper: f64,
    ours: f64,
    difference: f64,
}

#[derive(Serialize)]
struct AssumedReport {
    open: &'static str,
    here: String,
    reason: &'static str,
}

impl SourceReport {
    fn new(source: Source, found: Found) -> Self {
        let figures = found.figures.iter().map(|figure| FigureReport {
            figure: figure.what,
            paper: figure.paper,
            ours: figure.ours,
            difference: figure.difference(),
        });
        let assumed = source.assumed().into_iter();
        let assumed =
            assumed.map(|Assumed { open, here, reason }| AssumedReport { open, here, reason });
        Self {
            source: source.name(),
            figures: figures.collect(),
            assumed: assumed.collect(),
            rows: found.rows,
            recorded: found.recorded,
            written: found.written,
            measured: None,
        }
    }
}
