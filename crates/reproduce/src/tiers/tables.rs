//! The rows as Markdown tables, sentences and a picture. Formats what it is given.

use std::fmt::Write as _;

use motley_sched::Named;
use motley_sched::prefetch::PrefetchChoice;

use super::assumed::GOAL;
use super::rows::{Row, Speeds};
use crate::bars::Bars;
use crate::machines::rate;

/// One phase of all rows.
pub(super) fn phase_table(rows: &[Row], of: impl Fn(&Row) -> Option<&Speeds>) -> String {
    let mut text = String::from(
        "| machine | model | experts | split | pinned | two memories | all at once | / two | / \
         split | / pinned |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let Some(speeds) = of(row) else { continue };
        let over = |speed: f64| format!("{:.2}", speeds.tiers / speed);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.machine,
            row.model,
            if row.beyond_ram { "beyond RAM" } else { "in RAM" },
            speed(speeds.split),
            speeds.pinned.map_or("–".into(), speed),
            speed(speeds.today),
            speed(speeds.tiers),
            over(speeds.today),
            over(speeds.split),
            speeds.pinned.map_or("–".into(), over)
        );
    }
    text
}

/// What memories hold and where a decoded token's time goes.
pub(super) fn lane_table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| machine | model | arrangement | held | hits | token ms | dense | disk | CPU | PCIe | \
         GPUs |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let both = [
            ("two memories", row.held_today, row.hits_today, row.lanes_today),
            ("all at once", row.held, row.hits, row.lanes),
        ];
        for (name, held, hits, lanes) in both {
            let _ = writeln!(
                text,
                "| {} | {} | {name} | {:.0} % | {:.1} % | {:.1} | {:.1} | {:.1} | {:.1} | {:.1} | \
                 {:.1} |",
                row.machine,
                row.model,
                100.0 * held,
                100.0 * hits,
                lanes.token_ms,
                lanes.dense_ms,
                lanes.disk_ms,
                lanes.cpu_ms,
                lanes.pcie_ms,
                lanes.gpus_ms
            );
        }
    }
    text
}

/// Where the goal is missed: what no schedule passes, and what binds.
pub(super) fn missed_table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| machine | model | gain | busiest | no schedule gains more than | bound by | held, two | \
         held, all |\n|---|---|---:|---|---:|---|---:|---:|\n",
    );
    for row in rows.iter().filter(|row| row.beyond_ram && row.decode.gain() < GOAL) {
        let (lane, part) = row.busiest();
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {}, {:.0} % | {:.2} | {} | {:.0} % | {:.0} % |",
            row.machine,
            row.model,
            row.decode.gain(),
            lane.name(),
            100.0 * part,
            row.most_gain(),
            row.bound.binds.name(),
            100.0 * row.held_today,
            100.0 * row.held
        );
    }
    text
}

/// How many reach the goal, and which.
pub(super) fn reached(rows: &[Row]) -> String {
    let beyond: Vec<&Row> = rows.iter().filter(|row| row.beyond_ram).collect();
    let reach: Vec<&&Row> = beyond.iter().filter(|row| row.decode.gain() >= GOAL).collect();
    let name =
        |row: &&&Row| format!("{} on `{}` ({:.2})", row.model, row.machine, row.decode.gain());
    let names: Vec<String> = reach.iter().map(name).collect();
    format!(
        "The goal is reached by {} of the {} pairs beyond RAM: {}.",
        reach.len(),
        beyond.len(),
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    )
}

/// What part of the experts GPUs add where the goal is reached, and where it is not.
pub(super) fn added(rows: &[Row]) -> String {
    let added = |row: &&Row| 100.0 * (row.held - row.held_today);
    let beyond = || rows.iter().filter(|row| row.beyond_ram);
    let reach = beyond().filter(|row| row.decode.gain() >= GOAL);
    let miss = beyond().filter(|row| row.decode.gain() < GOAL);
    let least = reach.map(|row| added(&row)).fold(f64::INFINITY, f64::min);
    let most = miss.map(|row| added(&row)).fold(0.0, f64::max);
    format!(
        "Where the goal is reached they hold at least {least:.0} % of the experts, where it is not at \
         most {most:.0} %."
    )
}

/// Pairs beyond RAM in which nothing is read from disk early, of all.
pub(super) fn unguessed(rows: &[Row]) -> String {
    let beyond = || rows.iter().filter(|row| row.beyond_ram);
    let none = beyond().filter(|row| row.decode.prefetch[0] == PrefetchChoice::None.name());
    format!("{} of {}", none.count(), beyond().count())
}

/// Decode over today's arrangement.
pub(super) fn decode_bars(rows: &[Row]) -> Bars<'static> {
    let group = |row: &Row| {
        let Speeds { today, split, tiers, .. } = row.decode;
        let all = [split / today, 1.0, tiers / today];
        let sizes = row.machine.split('-').filter_map(|part| part.strip_suffix("gb"));
        let machine = sizes.collect::<Vec<_>>().join("+");
        let bits = if row.model.ends_with("Q2_K") { "2b" } else { "4b" };
        let model = row.model.split('-').next().unwrap_or_default();
        (format!("{model} {bits}, {machine}"), all.to_vec())
    };
    Bars {
        title: "Decode beyond RAM, over the best two memories (predicted)",
        y_label: "relative speed",
        series: &["llama.cpp's split", "two memories", "all at once"],
        groups: rows.iter().filter(|row| row.beyond_ram).map(group).collect(),
    }
}

/// With two digits behind the point below ten.
fn speed(tokens_per_s: f64) -> String {
    if tokens_per_s < 10.0 { format!("{tokens_per_s:.2}") } else { rate(tokens_per_s) }
}
