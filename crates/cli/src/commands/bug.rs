//! `motley bug`: what somebody who mends a defect asks first, ready to be pasted: version, machine,
//! settings, the last run. Nothing of what was asked or answered, and no names of folders.

use crate::args::Global;
use crate::commands::doctor;
use crate::config::Settings;
use crate::last;
use crate::terminal::{print_json, print_page};
use anyhow::Result;
use motley_calibrate::doctor::{Line, examine};
use motley_engine::{Runtime, Seam};
use motley_trace::RunRecord;
use serde::Serialize;
use std::path::Path;

/// Columns of the page inside the report.
const WIDTH: u16 = 78;

/// Runs the command.
pub(crate) fn run(global: &Global) -> Result<()> {
    let report = Report::gather()?;
    match global.json {
        true => print_json(&without_home(&serde_json::to_string_pretty(&report)?)),
        false => print_page(&without_home(&report.render())),
    }
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    machine: Vec<Line>,
    /// Names of what the file for settings sets, without values.
    settings: Vec<String>,
    /// Figures of the last run that was kept; texts are not part of them.
    last_run: Option<RunRecord>,
}

impl Report {
    fn gather() -> Result<Self> {
        let runtime = Runtime::start(Seam::Registered)?;
        let (_, machine) = examine(&runtime, Path::new("."));
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            machine,
            settings: Settings::read().map(|found| keys(&found.table, "")).unwrap_or_default(),
            last_run: last_run(),
        })
    }

    fn render(&self) -> String {
        let settings = match self.settings.is_empty() {
            true => "none".to_owned(),
            false => self.settings.join(", "),
        };
        let last = match &self.last_run {
            Some(record) => serde_json::to_string_pretty(record).unwrap_or_default(),
            None => "none is kept".to_owned(),
        };
        format!(
            "What I did:\n\nWhat I expected:\n\nWhat happened instead:\n\n\
             ### motley {}\n\n```\n{}```\n\nSettings: {settings}\n\n### Last run\n\n```json\n{last}\n```",
            self.version,
            doctor::render(&self.machine, WIDTH),
        )
    }
}

fn last_run() -> Option<RunRecord> {
    let path = last::record_path(&last::folder().ok()?);
    RunRecord::parse(&std::fs::read_to_string(path).ok()?).ok()
}

fn keys(table: &toml::Table, before: &str) -> Vec<String> {
    let each = table.iter().flat_map(|(key, value)| match value {
        toml::Value::Table(inner) => keys(inner, &format!("{before}{key}.")),
        _ => vec![format!("{before}{key}")],
    });
    each.collect()
}

/// The user's own folder as `~`: its name is often theirs.
fn without_home(text: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    if home.len() > 1 { text.replace(&home, "~") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_and_not_shown() {
        let table = "memory = \"1G\"\n[serve]\napi_key = \"secret\"".parse().unwrap();
        assert_eq!(keys(&table, ""), ["memory", "serve.api_key"]);
    }
}
