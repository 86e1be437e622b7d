//! `motley list`: what is downloaded. Renders; finds nothing itself.

use crate::args::Global;
use crate::page::{align_right, printable, table, width_of};
use crate::terminal::{print_json, print_page};
use anyhow::Result;
use comfy_table::presets;
use humantime::format_rfc3339_seconds;
use motley_hub::{Kept, Settings, list};
use motley_model::format_bytes;
use serde::Serialize;
use std::path::Path;
use std::time::SystemTime;

/// Runs the command.
pub(crate) fn run(global: &Global, columns: Option<u16>) -> Result<()> {
    let settings = Settings::of_environment()?;
    let all = list(&settings)?;
    if global.json {
        let rows: Vec<Row<'_>> = all.iter().map(Row::of).collect();
        return print_json(&serde_json::to_string_pretty(&rows)?);
    }
    if all.is_empty() {
        let folder = settings.hub_cache.display();
        return print_page(&format!("Nothing is downloaded ({folder}); `motley pull NAME` does."));
    }
    print_page(&render(&all, width_of(columns)))
}

/// A model, as it is printed with `--json`.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    quantisation: &'a str,
    bytes: u64,
    parts: u64,
    parts_here: usize,
    complete: bool,
    unfinished_bytes: u64,
    /// When the last part came.
    modified: Option<String>,
    path: &'a Path,
}

impl<'a> Row<'a> {
    fn of(kept: &'a Kept) -> Self {
        Self {
            name: &kept.name,
            quantisation: &kept.label,
            bytes: kept.bytes,
            parts: kept.count,
            parts_here: kept.paths.len(),
            complete: kept.is_whole(),
            unfinished_bytes: kept.unfinished_bytes,
            modified: kept.modified.map(|time| format_rfc3339_seconds(time).to_string()),
            path: &kept.path,
        }
    }
}

fn render(all: &[Kept], width: u16) -> String {
    let mut rows = table(width, presets::UTF8_FULL_CONDENSED);
    rows.set_header(["Model", "Size", "Parts", "Since", ""]);
    for kept in all {
        rows.add_row([
            printable(&kept.name),
            format_bytes(kept.bytes + kept.unfinished_bytes),
            format!("{}/{}", kept.paths.len(), kept.count),
            kept.modified.map(day).unwrap_or_default(),
            if kept.is_whole() { "complete" } else { "not complete" }.to_owned(),
        ]);
    }
    align_right(&mut rows, &[1, 2]);
    rows.trim_fmt()
}

/// `2026-01-31`.
fn day(time: SystemTime) -> String {
    format_rfc3339_seconds(time).to_string().chars().take(10).collect()
}
