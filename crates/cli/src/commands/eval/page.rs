//! An evaluation as a page for people: one table of figures with their 95 % intervals,
//! one of paired differences.

use super::report::{Difference, EvalReport, Subject};
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
            let what = What { name: "perplexity".into(), digits: 3 };
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

fn difference_rows(difference: &Difference) -> Vec<[String; 4]> {
    match difference {
        Difference::Text { perplexity_ratio: ratio } => vec![[
            "perplexity, 2nd over 1st".into(),
            format!("{:.5}", ratio.value),
            show(ratio, 5),
            String::new(),
        ]],
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
