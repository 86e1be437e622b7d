//! `motley doctor`: what this machine has, what Motley uses of it, and what could be had.

use crate::args::{Doctor, Global};
use crate::page::{table, width_of};
use crate::terminal::{print_json, print_page};
use anyhow::{Context, Result};
use comfy_table::{Attribute, Cell, presets};
use motley_calibrate::doctor::{Facts, Line, State, examine};
use motley_engine::{Runtime, Seam};
use serde::Serialize;

/// Runs the command.
pub(crate) fn run(global: &Global, doctor: &Doctor, columns: Option<u16>) -> Result<()> {
    let path = match &doctor.path {
        Some(path) => path.clone(),
        None => std::env::current_dir().context("the current folder cannot be read")?,
    };
    anyhow::ensure!(path.exists(), "{}: no such file or folder", path.display());
    let runtime = Runtime::start(Seam::Registered)?;
    let (facts, lines) = examine(&runtime, &path);
    match global.json {
        true => print_json(&serde_json::to_string_pretty(&DoctorReport { facts, lines })?),
        false => print_page(render(&lines, width_of(columns)).trim_end()),
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct DoctorReport {
    #[serde(flatten)]
    facts: Facts,
    lines: Vec<Line>,
}

pub(crate) fn render(lines: &[Line], width: u16) -> String {
    let mut page = table(width, presets::NOTHING);
    for line in lines {
        let advice = line.advice.as_ref().map_or(String::new(), |advice| format!("\n→ {advice}"));
        page.add_row([
            Cell::new(line.topic).add_attribute(Attribute::Bold),
            Cell::new(mark(line.state)),
            Cell::new(format!("{}{advice}", line.found)),
        ]);
    }
    format!("{}\n", page.trim_fmt())
}

/// One word each, so that a pipe without colours reads the same.
fn mark(state: State) -> &'static str {
    match state {
        State::Good => "ok",
        State::Limited => "limited",
        State::Missing => "missing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_wrap_within_eighty_columns_and_advice_has_its_own() {
        let line = |topic, state, advice: Option<&str>| Line {
            topic,
            state,
            found: "something long enough to need a second line in eighty columns, surely".into(),
            advice: advice.map(str::to_owned),
        };
        let page = render(
            &[
                line("Processor", State::Good, None),
                line("Energy meter", State::Missing, Some("sudo chmod a+r the file")),
            ],
            80,
        );
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
        assert!(page.contains("→ sudo chmod a+r the file"), "{page}");
        assert!(page.lines().next().is_some_and(|line| line.contains("ok")), "{page}");
    }
}
