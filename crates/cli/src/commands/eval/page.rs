//! An evaluation as a page for people: one table of figures with their 95 % intervals,
//! one of paired differences.

use super::report::{Difference, EvalReport, Run, Subject};
use crate::npu::NpuRow;
use crate::page::{table, width_of};
use comfy_table::presets;
use motley_engine::eval::Interval;

pub(crate) fn render(report: &EvalReport, columns: Option<u16>) -> String {
    let width = width_of(columns);
    let mut figures = table(width, presets::UTF8_HORIZONTAL_ONLY);
    figures.set_header(["setting", "what", "items", "figure", "95 % interval"]);
    for run in &report.runs {
        for (what, items, figure) in run.subjects.iter().flat_map(rows) {
            let interval = show(&figure, what.digits);
            let value = format!("{:.*}", what.digits, figure.value);
            figures.add_row([run.setting.clone(), what.name, items, value, interval]);
        }
        for [what, value] in run_rows(run) {
            let none = String::new();
            figures.add_row([run.setting.clone(), what, none.clone(), value, none]);
        }
    }
    let mut page = figures.trim_fmt() + "\n";
    for run in &report.runs {
        for device in &run.npu {
            let title = format!("{}, {}", run.setting, device.what);
            page += &(npu_rows(&title, &device.layers, width) + "\n");
        }
    }
    if !report.differences.is_empty() {
        let mut paired = table(width, presets::UTF8_HORIZONTAL_ONLY);
        let right = "only 1st / 2nd right";
        paired.set_header(["2nd setting", "paired difference", "figure", "95 % interval", right]);
        for against in &report.differences {
            for row in difference_rows(&against.difference) {
                paired.add_row(std::iter::once(against.setting.clone()).chain(row));
            }
        }
        page += &(paired.trim_fmt() + "\n");
    }
    page
}

/// What a static-graph device did under one setting.
fn npu_rows(setting: &str, rows: &[NpuRow], width: u16) -> String {
    let mut npu = table(width, presets::UTF8_HORIZONTAL_ONLY);
    let layer = format!("{setting}: layer");
    npu.set_header([&layer, "on the device", "spilled", "dropped", "padding", "launches"]);
    for row in rows {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        npu.add_row([
            row.layer.map_or("all".into(), |layer| layer.to_string()),
            row.refused.clone().unwrap_or_else(|| percent(row.device_share)),
            row.spilled.to_string(),
            percent(row.drop_rate),
            percent(row.padding_rate),
            row.launches.to_string(),
        ]);
    }
    npu.trim_fmt()
}

/// Name of a figure and how many digits of it mean something.
struct What {
    name: String,
    digits: usize,
}

fn rows(subject: &Subject) -> Vec<(What, String, Interval)> {
    match subject {
        Subject::Text(text) => {
            let (what, text) = (What { name: "perplexity".into(), digits: 3 }, &text.perplexity);
            vec![(what, format!("{} tokens", text.tokens), text.perplexity)]
        }
        Subject::Questions { task, answers } => {
            let asked = answers.questions.len() - answers.left_out;
            let items = match answers.left_out {
                0 => asked.to_string(),
                left_out => format!("{asked} ({left_out} too long)"),
            };
            let what = |name: &str| What { name: format!("{task} {name}"), digits: 3 };
            vec![
                (what("accuracy"), items.clone(), answers.accuracy),
                (what("accuracy per byte"), items, answers.accuracy_per_byte),
            ]
        }
    }
}

/// What is of a run and of no subject.
fn run_rows(run: &Run) -> Vec<[String; 2]> {
    let speed = run.decode_per_s.map(|speed| ["tokens per second".into(), format!("{speed:.2}")]);
    let left_out = run.left_out.map(|(pairs, weight)| {
        let (pairs, weight) = (100.0 * pairs, 100.0 * weight);
        ["routed pairs left out".into(), format!("{pairs:.1} % (weight {weight:.1} %)")]
    });
    speed.into_iter().chain(left_out).collect()
}

fn difference_rows(difference: &Difference) -> Vec<[String; 4]> {
    match difference {
        Difference::Text { perplexity_ratio: ratio, divergence } => {
            let row = |name: &str, figure: &Interval| {
                let value = format!("{:.5}", figure.value);
                [name.to_owned(), value, show(figure, 5), String::new()]
            };
            let ratio = std::iter::once(row("perplexity, 2nd over 1st", ratio));
            let far = divergence.iter().flat_map(|found| {
                [
                    row("KL divergence, nats", &found.kl),
                    row("same likeliest token", &found.same_top),
                ]
            });
            ratio.chain(far).collect()
        }
        Difference::Questions { task, accuracy, accuracy_per_byte, counts } => {
            let row = |name: &str, figure: &Interval, counts: String| {
                let name = format!("{task} {name}, 2nd minus 1st");
                [name, format!("{:+.3}", figure.value), show(figure, 3), counts]
            };
            let counted = format!("{} / {}", counts.first_only, counts.second_only);
            vec![
                row("accuracy", accuracy, counted),
                row("accuracy per byte", accuracy_per_byte, String::new()),
            ]
        }
    }
}

fn show(interval: &Interval, digits: usize) -> String {
    format!("{:.digits$} to {:.digits$}", interval.low, interval.high)
}
