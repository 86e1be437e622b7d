//! The rows as Markdown tables and a picture. Formats what it is given.

use std::fmt::Write as _;

use motley_sched::regime::Regime;

use super::assumed::PROMPTS;
use super::rows::{Row, Speeds};
use crate::bars::Bars;

/// Tokens of the prompt whose speeds are printed; gains are averaged over all lengths.
pub const SHOWN_PROMPT: u32 = 512;

/// Where the experts are, in words.
pub fn regime_name(regime: Regime) -> &'static str {
    match regime {
        Regime::Hybrid => "hybrid",
        Regime::BeyondRam => "beyond RAM",
        Regime::NearData => "near data",
        Regime::OneMemory => "all on the GPU",
    }
}

impl Row {
    /// The prompt whose speeds are printed.
    pub fn shown_prompt(&self) -> Option<&Speeds> {
        self.prefill.iter().find(|speeds| speeds.tokens == SHOWN_PROMPT)
    }
}

/// One phase of all rows.
pub(super) fn phase_table(rows: &[Row], of: impl Fn(&Row) -> Option<&Speeds>) -> String {
    let mut text = String::from(
        "| machine | model | experts | held | split | pinned | ours | ours / pinned | parts / \
         pinned | all near / pinned | hits, pinned | hits, ours | bound by |\n\
         |---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n",
    );
    for row in rows {
        let Some(speeds) = of(row) else { continue };
        let ratio =
            |speed: f64| speeds.over_pinned(speed).map_or("–".into(), |r| format!("{r:.2}"));
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.machine,
            row.model,
            regime_name(row.regime),
            percent(row.held),
            rate(speeds.static_split),
            speeds.pinned.map_or("–".into(), rate),
            rate(speeds.ours),
            ratio(speeds.ours),
            ratio(speeds.parts),
            ratio(speeds.all_near),
            speeds.pinned_hit_rate.map_or("–".into(), percent),
            percent(speeds.hit_rate),
            speeds.bound_by.name()
        );
    }
    text
}

/// Where the time of a decoded token goes, where experts are shared.
pub(super) fn lane_table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| machine | model | system | token, ms | dense | GPU experts | CPU experts | PCIe | idle \
         PCIe | over pinned |\n|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for row in rows {
        let Some(lanes) = &row.lanes else { continue };
        let base = lanes.pinned.token_ms;
        for (name, of) in
            [("pinned", lanes.pinned), ("ours", lanes.ours), ("with parts", lanes.parts)]
        {
            let _ = writeln!(
                text,
                "| {} | {} | {name} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.0} % | {:.2} |",
                row.machine,
                row.model,
                of.token_ms,
                of.dense_ms,
                of.gpu_ms,
                of.cpu_ms,
                of.link_ms,
                100.0 * (1.0 - of.link_ms / of.token_ms),
                base / of.token_ms
            );
        }
        let bound = lanes.bound;
        let _ = writeln!(
            text,
            "| {} | {} | bound ({:.0} % hits) | {:.2} | | | | | | {:.2} |",
            row.machine,
            row.model,
            100.0 * bound.most_hits,
            bound.token_ms,
            lanes.bound_gain()
        );
    }
    text
}

/// Gains over the pinned policy by prompt length, where experts are shared.
pub(super) fn prompt_table(rows: &[Row]) -> String {
    let mut text = String::from("| machine | model |");
    PROMPTS.iter().for_each(|tokens| text.push_str(&format!(" {tokens} tokens |")));
    text.push_str("\n|---|---|---:|---:|---:|---:|\n");
    for row in rows.iter().filter(|row| row.is_shared()) {
        let _ = write!(text, "| {} | {} |", row.machine, row.model);
        for gain in row.prefill.iter().map(|speeds| speeds.gain().unwrap_or(0.0)) {
            let _ = write!(text, " {gain:.2} |");
        }
        text.push('\n');
    }
    text
}

/// Decode relative to the pinned policy, where experts are shared.
pub(super) fn decode_bars(rows: &[Row]) -> Bars<'static> {
    let shared = rows.iter().filter(|row| row.is_shared());
    let group = |row: &Row| {
        let Speeds { static_split, ours, parts, all_near, .. } = row.decode;
        let all = [static_split, row.decode.pinned.unwrap_or(0.0), ours, parts, all_near];
        let over = |speed: f64| row.decode.over_pinned(speed).unwrap_or(0.0);
        let machine = row.machine.split('-').next().unwrap_or_default();
        let model = row.model.split('-').next().unwrap_or_default();
        (format!("{model}, {machine}"), all.map(over).to_vec())
    };
    Bars {
        title: "Decode over pinned experts (predicted)",
        y_label: "relative speed",
        series: &["static split", "pinned", "ours", "ours with parts", "all experts near"],
        groups: shared.map(group).collect(),
    }
}

/// A speed in at most five characters below 100 000.
pub fn rate(tokens_per_s: f64) -> String {
    if tokens_per_s < 100.0 { format!("{tokens_per_s:.1}") } else { format!("{tokens_per_s:.0}") }
}
