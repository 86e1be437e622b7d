//! Several machines, one model: a head and its workers beside the head alone and beside whole layers
//! on each host. Four models, two heads, four cables. Predictions from descriptions.
//!
//! Modules in reading order:
//! - [`mod@assumed`]: machines, cables, goals, and in words what is taken for granted.
//! - [`routing`]: streams that decode together.
//! - [`rows`](mod@rows): every arrangement.
//! - `tables`: the rows as text and picture.

use crate::document::{Document, Figure, Picture, assumed_table, figure_table, sweep_table};
use crate::error::ReproduceError;

pub mod assumed;
pub mod routing;
pub mod rows;
mod tables;

pub use assumed::{ASSUMED, Assumptions, DISK_GOAL, GOAL_LINK, SPLIT_GOAL, assumed};
pub use rows::{Head, Row, Wanted, rows};

/// Name of the document.
pub const NAME: &str = "hosts";
const TEXT: &str = include_str!("text.md");

/// The goals beside what the rows say.
pub fn figures(open: Assumptions) -> Result<Vec<Figure>, ReproduceError> {
    Ok(figures_of(&rows(open, &Wanted::GOALS)?))
}

/// Mean gains of one stream at the goals' cable.
pub fn figures_of(rows: &[Row]) -> Vec<Figure> {
    let mean = |gains: Vec<f64>| gains.iter().sum::<f64>() / gains.len().max(1) as f64;
    let over = |what, paper, rows: &[&Row], gain: fn(&Row) -> f64| {
        let ours = mean(rows.iter().map(|row| gain(row)).collect());
        Figure { what, paper, ours }
    };
    let (two, with_gpu) = (tables::fits_two(rows), tables::with_gpu(rows));
    vec![
        over("two hosts over one with its disk", DISK_GOAL, &two, Row::over_alone),
        over("GPU head and two workers over whole layers", SPLIT_GOAL, &with_gpu, Row::over_split),
    ]
}

/// The comparison with its sweep.
pub fn document(rows: &[Row]) -> Result<Document, ReproduceError> {
    let figures = figures_of(rows);
    let goals =
        |table: String| table.replace("| paper |", "| goal |").replace("**paper**", "**goal**");
    let parts = [
        ("{figures}", goals(figure_table(&figures))),
        ("{reached}", tables::reached(rows)),
        ("{cable}", GOAL_LINK.name.to_owned()),
        ("{one}", tables::speed_table(rows, 1)),
        ("{sixteen}", tables::speed_table(rows, 16)),
        ("{sixtyfour}", tables::speed_table(rows, 64)),
        ("{copies}", tables::copies_table(rows)),
        ("{parts}", tables::parts_table(rows)),
        ("{assumed}", assumed_table(&assumed())),
        ("{sweep}", goals(sweep_table(&figures, &sweep()?))),
    ];
    let fill = |text: String, (name, part): &(&str, String)| text.replace(name, part);
    let markdown = parts.iter().fold(TEXT.to_owned(), fill);
    let svg = tables::bars(rows).to_svg()?;
    let pictures = vec![Picture { name: "hosts-decode.svg".into(), svg }];
    Ok(Document { name: NAME, markdown, pictures, figures })
}

/// The figures under other assumptions, one at a time.
fn sweep() -> Result<Vec<(String, Vec<f64>)>, ReproduceError> {
    let mut settings = vec![("as assumed".to_owned(), ASSUMED)];
    let mut add = |name: &str, value: f64, open| settings.push((format!("{name} {value}"), open));
    for value in [0.25, 0.5] {
        add("disks, times", value, Assumptions { disk_share: value, ..ASSUMED });
    }
    for value in [0.5, 2.0] {
        add("round trip, times", value, Assumptions { trip_share: value, ..ASSUMED });
    }
    for value in [0.4, 4.0] {
        add("rate of the cable, times", value, Assumptions { rate_share: value, ..ASSUMED });
    }
    for value in [0.5, 1.5] {
        add("skew, times", value, Assumptions { skew_factor: value, ..ASSUMED });
    }
    let of = |(name, open)| -> Result<_, ReproduceError> {
        Ok((name, figures(open)?.iter().map(|figure| figure.ours).collect()))
    };
    settings.into_iter().map(of).collect()
}
