//! Three machines and three public models: the speed to expect of a static split (llama.cpp), of
//! pinned experts (kTransformers) and of ours. Predictions from descriptions, not measurements.
//!
//! Modules in reading order:
//! - [`models`]: the true shapes and how the models route.
//! - [`systems`]: how each compared system is put together.
//! - [`lanes`]: where a token's time goes, and what no schedule passes.
//! - [`rows`](mod@rows): all of them on all machines.
//! - [`tables`]: the rows as text and picture.
//! - [`mod@assumed`]: what is taken for granted, in words.

use motley_trace::Trace;

use crate::document::{Document, Figure, Picture, assumed_table, figure_table, sweep_table};
use crate::error::ReproduceError;
use crate::hybrimoe;

pub mod assumed;
pub mod lanes;
pub mod models;
pub mod rows;
pub mod systems;
pub mod tables;

pub use assumed::{ASSUMED, Assumptions, GPU_SPARE, MACHINES, PROMPTS, RAM_SPARE, assumed};
pub use lanes::{DecodeLanes, Lanes, TokenBound};
pub use rows::{Busiest, Pairs, Row, Speeds, recorded, rows};
pub use tables::{SHOWN_PROMPT, rate, regime_name};

/// Name of the document.
pub const NAME: &str = "machines";
const TEXT: &str = include_str!("text.md");

/// The goals beside what the rows say on average.
pub fn figures(open: Assumptions) -> Result<Vec<Figure>, ReproduceError> {
    Ok(figures_of(&rows(open, Pairs::Shared)?))
}

/// Mean gains over pinned experts beside the goals, where experts are shared.
pub fn figures_of(rows: &[Row]) -> Vec<Figure> {
    rows::figures_of(rows)
}

/// The comparison with its sweeps, and decode of `traces` beside it.
pub fn document(rows: &[Row], traces: &[Trace]) -> Result<Document, ReproduceError> {
    let figures = figures_of(rows);
    let mut swept = Vec::new();
    for (name, open) in settings() {
        let values = self::figures(open)?;
        swept.push((name, values.iter().map(|figure| figure.ours).collect()));
    }
    let goals =
        |table: String| table.replace("| paper |", "| goal |").replace("**paper**", "**goal**");
    let mut shown = figures.clone();
    shown.push(in_the_sources_setting()?);
    let mut markdown = TEXT.replace("{figures}", &goals(figure_table(&shown)));
    markdown = markdown.replace("{decode}", &tables::phase_table(rows, |row| Some(&row.decode)));
    markdown = markdown.replace("{lanes}", &tables::lane_table(rows));
    markdown = markdown.replace("{prefill}", &tables::phase_table(rows, Row::shown_prompt));
    markdown = markdown.replace("{prompts}", &tables::prompt_table(rows));
    markdown = markdown.replace("{recorded}", &recorded_part(traces)?);
    markdown = markdown.replace("{assumed}", &assumed_table(&assumed()));
    markdown = markdown.replace("{sweep}", &goals(sweep_table(&figures, &swept)));
    let bars = tables::decode_bars(rows).to_svg()?;
    let pictures = vec![Picture { name: "machines-decode.svg".into(), svg: bars }];
    Ok(Document { name: NAME, markdown, pictures, figures })
}

/// What the goal was taken from: HybriMoE's machine, models and cache sizes.
fn in_the_sources_setting() -> Result<Figure, ReproduceError> {
    let found = hybrimoe::figures(hybrimoe::ASSUMED)?;
    let ours = found.iter().find(|figure| figure.what == "decode, average");
    let ours = ours.map_or(0.0, |figure| figure.ours);
    Ok(Figure { what: "decode, HybriMoE's machine and models", paper: 1.7, ours })
}

fn recorded_part(traces: &[Trace]) -> Result<String, ReproduceError> {
    let rows = recorded(traces, ASSUMED)?;
    let shared: Vec<Row> = rows.into_iter().filter(Row::is_shared).collect();
    if shared.is_empty() {
        return Ok("No recorded traces were given (`--trace FILE`).\n".to_owned());
    }
    Ok(tables::phase_table(&shared, |row| Some(&row.decode)))
}

/// The settings swept, one assumption at a time.
fn settings() -> Vec<(String, Assumptions)> {
    let mut all = vec![("as assumed".to_string(), ASSUMED)];
    let mut add = |name: &str, value: f64, open| all.push((format!("{name} {value}"), open));
    for value in [0.2, 0.4, 0.9] {
        add("CPU's part of its bandwidth", value, Assumptions { cpu_share: value, ..ASSUMED });
    }
    let arithmetic = Assumptions { cpu_arithmetic: 0.2, ..ASSUMED };
    add("CPU's part of its arithmetic", arithmetic.cpu_arithmetic, arithmetic);
    for value in [0.5, 2.0] {
        add("PCIe, times", value, Assumptions { link_share: value, ..ASSUMED });
    }
    for value in [1.0, 10.0] {
        add("start on the GPU, us", value, Assumptions { gpu_start_us: value, ..ASSUMED });
    }
    for value in [0.6, 0.95] {
        add("prediction accuracy", value, Assumptions { prediction_accuracy: value, ..ASSUMED });
    }
    for value in [0.0, 0.5] {
        add("skew, times", value, Assumptions { skew_factor: value, ..ASSUMED });
    }
    all
}
