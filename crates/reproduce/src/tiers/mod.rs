//! Disk, RAM and GPUs at once beside the best arrangement of two memories, llama.cpp's static split
//! and the kTransformers policy: four machines, three models. Predictions from descriptions.
//!
//! Modules in reading order:
//! - [`models`]: the true shapes at four and at two bits.
//! - [`rooms`]: what each memory holds.
//! - `fixed`: residents that never change; `divided`: whole layers on each GPU.
//! - [`systems`]: how each arrangement is put together.
//! - [`bound`]: what no schedule passes, and what binds.
//! - [`rows`](mod@rows): all of them on all machines.
//! - `tables`: the rows as text and picture.
//! - [`mod@assumed`]: the machines, the goal, and in words what is taken for granted.

use motley_trace::Trace;

use crate::compared::routing::Stream;
use crate::document::{Document, Figure, Picture, assumed_table, figure_table, sweep_table};
use crate::error::ReproduceError;
use crate::machines::{ASSUMED, Assumptions};

pub mod assumed;
pub mod bound;
mod divided;
mod fixed;
pub mod models;
pub mod rooms;
pub mod rows;
pub mod systems;
mod tables;

pub use assumed::{GOAL, MACHINES, assumed};
pub use rows::{Lanes, Row, Speeds, recorded, rows};
use systems::Pair;

/// Name of the document.
pub const NAME: &str = "tiers";
const TEXT: &str = include_str!("text.md");

/// The goals beside what the rows say.
pub fn figures(open: Assumptions) -> Result<Vec<Figure>, ReproduceError> {
    Ok(figures_of(&rows(open)?))
}

/// Gains over two memories where experts are beyond RAM, beside the goal.
pub fn figures_of(rows: &[Row]) -> Vec<Figure> {
    let beyond = || rows.iter().filter(|row| row.beyond_ram);
    let mean = |gains: Vec<f64>| gains.iter().sum::<f64>() / gains.len().max(1) as f64;
    let figure = |what, gains: Vec<f64>| Figure { what, paper: GOAL, ours: mean(gains) };
    let prefill = |row: &Row| row.prefill.as_ref().map(Speeds::gain);
    let over_split = |row: &Row| row.decode.tiers / row.decode.split;
    vec![
        figure("decode over two memories", beyond().map(|row| row.decode.gain()).collect()),
        figure("prefill over two memories", beyond().filter_map(prefill).collect()),
        figure("decode over llama.cpp's split", beyond().map(over_split).collect()),
        figure("decode, what no schedule passes", beyond().map(Row::most_gain).collect()),
    ]
}

/// The comparison with its sweep, and decode of `traces` beside it.
pub fn document(rows: &[Row], traces: &[Trace]) -> Result<Document, ReproduceError> {
    let figures = figures_of(rows);
    let goals =
        |table: String| table.replace("| paper |", "| goal |").replace("**paper**", "**goal**");
    let (swept_figures, swept) = sweep()?;
    let parts = [
        ("{figures}", goals(figure_table(&figures))),
        ("{reached}", tables::reached(rows)),
        ("{added}", tables::added(rows)),
        ("{unguessed}", tables::unguessed(rows)),
        ("{decode}", tables::phase_table(rows, |row| Some(&row.decode))),
        ("{missed}", tables::missed_table(rows)),
        ("{lanes}", tables::lane_table(rows)),
        ("{prefill}", tables::phase_table(rows, |row| row.prefill.as_ref())),
        ("{recorded}", recorded_part(traces)?),
        ("{assumed}", assumed_table(&assumed())),
        ("{sweep}", goals(sweep_table(&swept_figures, &swept))),
        ("{accuracy}", format!("{:.0}", 10.0 * ASSUMED.prediction_accuracy)),
    ];
    let fill = |text: String, (name, part): &(&str, String)| text.replace(name, part);
    let markdown = parts.iter().fold(TEXT.to_owned(), fill);
    let bars = tables::decode_bars(rows).to_svg()?;
    let pictures = vec![Picture { name: "tiers-decode.svg".into(), svg: bars }];
    Ok(Document { name: NAME, markdown, pictures, figures })
}

fn recorded_part(traces: &[Trace]) -> Result<String, ReproduceError> {
    let rows = recorded(traces, ASSUMED)?;
    if rows.is_empty() {
        return Ok(
            "No recorded traces of these models' layers were given (`--trace FILE`).\n".into()
        );
    }
    let mut text = String::from(
        "Decode of recorded traces with their own experts per token, counted in their first half and \
         decoded in the second: few tokens, and for gpt-oss-120b two experts per token instead of \
         four.\n\n",
    );
    text += &tables::phase_table(&rows, |row| Some(&row.decode));
    Ok(text)
}

/// One figure and its values under other assumptions.
type Sweep = (Vec<Figure>, Vec<(String, Vec<f64>)>);

/// The first model's gain beyond RAM, one assumption at a time.
fn sweep() -> Result<Sweep, ReproduceError> {
    let mut settings = vec![("as assumed".to_owned(), ASSUMED)];
    let mut add = |name: &str, value: f64, open| settings.push((format!("{name} {value}"), open));
    for value in [0.4, 0.9] {
        add("CPU's part of its bandwidth", value, Assumptions { cpu_share: value, ..ASSUMED });
    }
    for value in [0.5, 2.0] {
        add("disk and PCIe, times", value, Assumptions { link_share: value, ..ASSUMED });
    }
    for value in [0.6, 0.95] {
        add("prediction accuracy", value, Assumptions { prediction_accuracy: value, ..ASSUMED });
    }
    for value in [0.5, 1.5] {
        add("skew, times", value, Assumptions { skew_factor: value, ..ASSUMED });
    }
    let mut swept = Vec::new();
    for (name, open) in settings {
        swept.push((name, vec![first_model_gain(open)?]));
    }
    let ours = swept.first().map_or(0.0, |(_, values)| values[0]);
    Ok((vec![Figure { what: "decode over two memories", paper: GOAL, ours }], swept))
}

fn first_model_gain(open: Assumptions) -> Result<f64, ReproduceError> {
    let model = &models::MODELS[0];
    let stream = Stream::synthetic(model, open.skew_factor)?;
    let mut gains = Vec::new();
    for name in MACHINES {
        let machine = motley_machine::find(name)?;
        let pair = Pair { machine: &machine, model, stream: &stream, open };
        if pair.is_beyond_ram() {
            gains.push(rows::row(&pair, None)?.decode.gain());
        }
    }
    Ok(gains.iter().sum::<f64>() / gains.len().max(1) as f64)
}
