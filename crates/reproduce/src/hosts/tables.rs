//! The rows as Markdown tables, sentences and a picture. Formats what it is given.

use std::fmt::Write as _;

use super::assumed::{DISK_GOAL, GOAL_LINK, LINKS, SPLIT_GOAL};
use super::rows::{Head, Row};
use crate::bars::Bars;
use crate::machines::rate;

/// One stream at the goals' cable: two hosts that hold what one does not.
pub(super) fn fits_two(rows: &[Row]) -> Vec<&Row> {
    at_goal(rows).filter(|row| row.fits_two()).collect()
}

/// The same of a head with a GPU and two workers.
pub(super) fn with_gpu(rows: &[Row]) -> Vec<&Row> {
    at_goal(rows).filter(|row| row.head == Head::Gpu && row.workers == 2).collect()
}

fn at_goal(rows: &[Row]) -> impl Iterator<Item = &Row> {
    rows.iter().filter(|row| row.streams == 1 && row.link == GOAL_LINK.name)
}

/// Which goals are reached, row by row.
pub(super) fn reached(rows: &[Row]) -> String {
    let list = |rows: Vec<&Row>, goal: f64, gain: fn(&Row) -> f64| {
        let name = |row: &&Row| {
            let verdict = if gain(row) >= goal { "reached" } else { "not reached" };
            let held = 100.0 * row.held_alone;
            format!("{}, {}, {:.2} ({held:.1} %): {verdict}", row.model, row.head.name(), gain(row))
        };
        rows.iter().map(|row| format!("* {}\n", name(row))).collect::<String>()
    };
    format!(
        "Two hosts over one with its disk, goal {DISK_GOAL}, where two hold what one does not:\n\n{}\n\
         GPU head and two workers over whole layers, goal {SPLIT_GOAL}:\n\n{}",
        list(fits_two(rows), DISK_GOAL, Row::over_alone),
        list(with_gpu(rows), SPLIT_GOAL, Row::over_split)
    )
}

/// Speeds of so many streams over every cable, with gains at the goals' one.
pub(super) fn speed_table(rows: &[Row], streams: u32) -> String {
    let names: Vec<&str> = LINKS.iter().map(|link| link.name).collect();
    let mut text = format!(
        "| model | head | workers | held | alone | split | pipelined | {} | / alone | / split |\n\
         |---|---|---:|---:|---:|---:|---:|{}---:|---:|\n",
        names.join(" | "),
        "---:|".repeat(names.len())
    );
    let shown = rows.iter().filter(|row| row.streams == streams);
    for row in shown.filter(|row| row.link == GOAL_LINK.name) {
        let same = |other: &&Row| {
            (other.model, other.head, other.workers, other.streams)
                == (row.model, row.head, row.workers, row.streams)
        };
        let over = |name: &&str| {
            let found = rows.iter().filter(same).find(|other| other.link == *name);
            found.map_or("–".to_owned(), |other| speed(other.ours))
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.0} % | {} | {} | {} | {} | {:.2} | {:.2} |",
            row.model,
            row.head.name(),
            row.workers,
            100.0 * row.held,
            speed(row.alone),
            speed(row.split),
            speed(row.pipelined),
            names.iter().map(over).collect::<Vec<_>>().join(" | "),
            row.over_alone(),
            row.over_split()
        );
    }
    text
}

/// What copies of the most used experts add, where there is room for them.
pub(super) fn copies_table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| model | head | workers | streams | without | with copies | gain |\n\
         |---|---|---:|---:|---:|---:|---:|\n",
    );
    for row in rows.iter().filter(|row| row.held >= 1.0 && row.workers > 1) {
        let Some(plain) = row.plain else { continue };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {:.2} |",
            row.model,
            row.head.name(),
            row.workers,
            row.streams,
            speed(plain),
            speed(row.ours),
            row.ours / plain
        );
    }
    text
}

/// Where the time of one stream goes at the goals' cable.
pub(super) fn parts_table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| model | head | workers | pass ms | dense | waited | worker computes | worker's wire |\n\
         |---|---|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in at_goal(rows) {
        let percent = |part: f64| format!("{:.0} %", 100.0 * part);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.0} | {} | {} | {} | {} |",
            row.model,
            row.head.name(),
            row.workers,
            1e3 / row.ours,
            percent(row.parts.dense),
            percent(row.parts.waited),
            percent(row.parts.compute),
            percent(row.parts.wire)
        );
    }
    text
}

/// One stream at the goals' cable, over the head alone.
pub(super) fn bars(rows: &[Row]) -> Bars<'static> {
    let group = |row: &Row| {
        let model = row.model.split('-').next().unwrap_or_default();
        let bits = if row.model.ends_with("Q2_K") { "2b" } else { "4b" };
        let head = if row.head == Head::Gpu { "GPU" } else { "CPU" };
        let values = vec![1.0, row.split / row.alone, row.over_alone()];
        (format!("{model} {bits}, {head} + {}", row.workers), values)
    };
    Bars {
        title: "Decode of one stream at 2.5 GbE, over the head alone (predicted)",
        y_label: "relative speed",
        series: &["head and disk", "split by layers", "head and workers"],
        groups: at_goal(rows).filter(|row| row.workers <= 4).map(group).collect(),
    }
}

/// With two digits behind the point below ten.
fn speed(tokens_per_s: f64) -> String {
    if tokens_per_s < 10.0 { format!("{tokens_per_s:.2}") } else { rate(tokens_per_s) }
}
