//! Prefill on a static-graph device (N): tiers, padding, drops, the cost of groups and the
//! ablation ladder (N9), as our planner makes them, beside the published figures. What happens
//! inside a compiled graph is not simulated.
//!
//! Modules in reading order:
//! - [`routing`]: synthetic routing of prompts, calibrated and unseen.
//! - [`costs`]: our cost model fitted to Table 5.
//! - [`ladder`]: N9, step by step.
//! - [`mod@assumed`]: what the source leaves open, in words.

use std::fmt::Write as _;

use motley_profile::overlap_at;
use motley_trace::Phase;

use crate::bars::Bars;
use crate::document::{Document, Figure, Picture, assumed_table, figure_table, sweep_table};
use crate::error::ReproduceError;

pub mod assumed;
pub mod costs;
pub mod ladder;
pub mod routing;

pub use assumed::{ASSUMED, Assumptions, assumed};
use costs::{ANY_ROWS_MS, DeviceCosts, TABLE5};
use ladder::{Prompt, Rung, Step, Walk};
use routing::{Model, PHI, QWEN, Routing};

/// Name of the document.
pub const NAME: &str = "npumoe";

/// Table 3: part of the tokens dropped on each of the four datasets, percent.
const DROPPED: [f64; 4] = [14.66, 10.63, 21.77, 21.00];
/// Table 3: part of the computed rows that were padding, percent.
const PADDED: [f64; 4] = [31.73, 34.77, 37.49, 37.00];
/// The prompt of Table 4.
const PROMPT: Prompt = Prompt { tokens: 1024, chunk_tokens: 256 };

const TEXT: &str = include_str!("text.md");

/// The published figures with ours for one set of assumptions.
pub fn figures(open: Assumptions) -> Result<Vec<Figure>, ReproduceError> {
    let routing = Routing::new(PHI, open, PROMPT.tokens);
    let costs = DeviceCosts::fit();
    let walk = Walk { routing: &routing, costs: &costs, open, prompt: PROMPT };
    let [base, tiers, groups, all] = Step::ALL.map(|step| walk.step(step));
    let percent = |share: f64| 100.0 * share;
    let figure = |what, paper, ours| Figure { what, paper, ours };
    Ok(vec![
        figure("busiest 4 predicted on unseen prompts, %", 86.0, percent(overlap(&routing, 4))),
        figure("busiest 8 predicted on unseen prompts, %", 94.0, percent(overlap(&routing, 8))),
        figure("dropped, mean of 4 datasets, %", mean(DROPPED), percent(all.used.drop_rate())),
        figure("padded, mean of 4 datasets, %", mean(PADDED), percent(all.used.padding_rate())),
        figure("all over base, time", 2.89, base.us / all.us),
        figure("all over groups, time", 1.09, groups.us / all.us),
        figure("groups over base, energy", 3.74, base.joules / groups.joules),
        figure("groups over tiers, energy", 1.31, tiers.joules / groups.joules),
        figure("experts of one layer, ms", 530.9, 4.0 * all.us / 1e3),
    ])
}

fn mean(values: [f64; 4]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean over layers of Overlap@K with prompts that calibration has not seen.
fn overlap(routing: &Routing, k: u16) -> f64 {
    let unseen = routing.unseen(PROMPT.tokens);
    let found = overlap_at(&routing.profile, &unseen, Phase::Prefill, k);
    found.map_or(0.0, |found| found.mean)
}

/// The reproduction with its sweeps and pictures.
pub fn document() -> Result<Document, ReproduceError> {
    let figures = figures(ASSUMED)?;
    let mut rows = Vec::new();
    for (name, open) in settings() {
        let swept = self::figures(open)?;
        rows.push((name, swept.iter().map(|figure| figure.ours).collect()));
    }
    let costs = DeviceCosts::fit();
    let routing = Routing::new(PHI, ASSUMED, PROMPT.tokens);
    let walk = Walk { routing: &routing, costs: &costs, open: ASSUMED, prompt: PROMPT };
    let rungs = Step::ALL.map(|step| walk.step(step));
    let mut markdown = TEXT.replace("{figures}", &figure_table(&figures));
    markdown = markdown.replace("{table5}", &table5(&costs));
    markdown = markdown.replace("{ladder}", &ladder_table(&rungs));
    markdown = markdown.replace("{shapes}", &shapes(&costs));
    markdown = markdown.replace("{assumed}", &assumed_table(&assumed()));
    markdown = markdown.replace("{sweep}", &sweep_table(&figures, &rows));
    let pictures = vec![
        Picture { name: "npumoe-groups.svg".into(), svg: group_bars(&costs).to_svg()? },
        Picture { name: "npumoe-ladder.svg".into(), svg: ladder_bars(&rungs).to_svg()? },
    ];
    Ok(Document { name: NAME, markdown, pictures, figures })
}

fn table5(costs: &DeviceCosts) -> String {
    let mut text = format!(
        "Fitted: {:.2} ms a launch, {:.2} ms an expert's weights, {:.3} ms a row; mean error {:.1} \
         %, worst {:.1} %.\n\n| graph | paper, ms a token | ours | difference |\n|---|---:|---:|---:|\n",
        costs.launch_us / 1e3,
        costs.weights_us / 1e3,
        costs.row_us / 1e3,
        100.0 * costs.residuals.mean_relative,
        100.0 * costs.residuals.worst_relative,
    );
    let _ = writeln!(text, "| 1 x any of 1 to 512 | {ANY_ROWS_MS:.2} | – | |");
    for (experts, rows, paper) in TABLE5 {
        let ours = costs.per_token_ms(experts, rows);
        let off = 100.0 * (ours / paper - 1.0);
        let _ = writeln!(text, "| {experts} x {rows} | {paper:.2} | {ours:.3} | {off:+.0} % |");
    }
    text
}

fn ladder_table(rungs: &[Rung; 4]) -> String {
    let mut text = String::from(
        "| step | ms a layer and chunk | J | graphs | dropped | padded |\n\
         |---|---:|---:|---:|---:|---:|\n",
    );
    for (name, rung) in NAMES.iter().zip(rungs) {
        let _ = writeln!(
            text,
            "| {name} | {:.1} | {:.2} | {:.1} | {:.1} % | {:.1} % |",
            rung.us / 1e3,
            rung.joules,
            rung.graphs,
            100.0 * rung.used.drop_rate(),
            100.0 * rung.used.padding_rate()
        );
    }
    text
}

/// Drops and padding of both models by chunk and headroom.
fn shapes(costs: &DeviceCosts) -> String {
    let mut text = String::from(
        "| model | chunk | headroom | even load | mean r_l | dropped | padded |\n\
         |---|---:|---:|---:|---:|---:|---:|\n",
    );
    let short = |model: Model| Model { layers: model.layers.min(8), ..model };
    for model in [PHI, short(QWEN)] {
        let routing = Routing::new(model, ASSUMED, PROMPT.tokens);
        for chunk_tokens in [256, 512, 1024] {
            for headroom in [1.0, 1.25, 1.5] {
                let open = Assumptions { headroom, ..ASSUMED };
                let prompt = Prompt { chunk_tokens, ..PROMPT };
                let rung = Walk { routing: &routing, costs, open, prompt }.step(Step::Tiers);
                let even = f64::from(chunk_tokens) * f64::from(model.k) / f64::from(model.experts);
                let _ = writeln!(
                    text,
                    "| {} | {chunk_tokens} | {headroom} | {even:.0} | {:.2} | {:.1} % | {:.1} % |",
                    model.name,
                    routing.profile.mean_imbalance(Phase::Prefill),
                    100.0 * rung.used.drop_rate(),
                    100.0 * rung.used.padding_rate()
                );
            }
        }
    }
    text
}

const NAMES: [&str; 4] = ["base", "+ tiers", "+ groups", "+ residency"];

fn group_bars(costs: &DeviceCosts) -> Bars<'static> {
    let group = |(experts, rows, paper): &(u32, u32, f64)| {
        let ours = costs.per_token_ms(*experts, *rows);
        (format!("{experts} x {rows}"), vec![1e3 * paper, 1e3 * ours])
    };
    Bars {
        title: "Time per token by experts and rows of a graph (Table 5)",
        y_label: "us",
        series: &["paper", "ours"],
        groups: TABLE5.iter().map(group).collect(),
    }
}

fn ladder_bars(rungs: &[Rung; 4]) -> Bars<'static> {
    let base = rungs[0];
    let group = |(name, rung): (&&str, &Rung)| {
        ((*name).to_owned(), vec![base.us / rung.us, base.joules / rung.joules])
    };
    Bars {
        title: "The ladder: gain over one graph per expert",
        y_label: "times",
        series: &["time", "energy"],
        groups: NAMES.iter().zip(rungs).map(group).collect(),
    }
}

/// The settings swept, one assumption at a time.
fn settings() -> Vec<(String, Assumptions)> {
    let mut all = vec![("as assumed".to_string(), ASSUMED)];
    let mut add = |name: &str, value: f64, open| all.push((format!("{name} {value}"), open));
    for value in [0.4, 1.0] {
        add("popularity", value, Assumptions { popularity: value, ..ASSUMED });
    }
    for value in [0.2, 0.6] {
        add("drift", value, Assumptions { drift: value, ..ASSUMED });
    }
    for value in [0.3, 0.8] {
        add("burst", value, Assumptions { burst: value, ..ASSUMED });
    }
    for value in [1.25, 1.5] {
        add("headroom", value, Assumptions { headroom: value, ..ASSUMED });
    }
    for value in [2.0, 8.0] {
        add("fixed shape", value, Assumptions { fixed_shape: value, ..ASSUMED });
    }
    for value in [4.0, 17.0] {
        add("CPU W", value, Assumptions { cpu_w: value, ..ASSUMED });
    }
    all
}
