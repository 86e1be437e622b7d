//! What the pages of all commands share: lists of facts, tables, bars.
//! Lays out; knows no model and no simulation.

use crate::terminal::escaped;
use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, TableStyle, Width,
    presets,
};
use indicatif::ProgressDrawTarget;
use std::path::Path;

/// Width of the table when the terminal does not say its own.
const DEFAULT_WIDTH: u16 = 80;
/// Wider lines are harder to read than wrapped ones.
const MAX_WIDTH: u16 = 100;
/// Width of the longest label with its padding, so that both lists of facts line up.
const LABEL_WIDTH: u16 = 17;
/// Longest piece of a file's own text shown, in characters.
const MAX_TEXT_CHARS: usize = 70;

/// Columns a page may take on this terminal.
pub(crate) fn width_of(columns: Option<u16>) -> u16 {
    columns.unwrap_or(DEFAULT_WIDTH).min(MAX_WIDTH)
}

/// Where progress is drawn: on a terminal, unless a program reads the answer.
pub(crate) fn progress_target(quiet: bool) -> ProgressDrawTarget {
    if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() }
}

/// A label and what it says.
pub(crate) type Fact = (&'static str, String);

pub(crate) fn facts(facts: &[Fact], width: u16) -> String {
    let mut table = table(width, presets::NOTHING);
    for (label, text) in facts {
        table.add_row([Cell::new(label).add_attribute(Attribute::Bold), Cell::new(text)]);
    }
    if let Some(labels) = table.column_mut(0) {
        labels.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(LABEL_WIDTH)));
    }
    table.trim_fmt()
}

pub(crate) fn table(width: u16, style: TableStyle) -> Table {
    let mut table = Table::new();
    table.load_style(style).set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    table
}

/// Text of a file on one line, without characters that could steer a terminal, and short.
pub(crate) fn printable(text: &str) -> String {
    let line = text.replace('\n', "\\n").replace('\t', "\\t");
    escaped(&line).chars().take(MAX_TEXT_CHARS).collect()
}

pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| printable(&name.to_string_lossy()))
}

/// Aligns columns of numbers to the right.
pub(crate) fn align_right(table: &mut Table, columns: &[usize]) {
    for &column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// `41.5 %`.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A share (0 to 1) as a bar of `cells` characters, in eighths of a character.
pub(crate) fn bar(share: f64, cells: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * cells as f64 * 8.0).round() as usize;
    let part = EIGHTHS[eighths % 8];
    let rest = cells - eighths / 8 - usize::from(!part.is_empty());
    format!("{}{part}{}", "█".repeat(eighths / 8), "·".repeat(rest))
}

/// Three figures, or whole numbers from a hundred on.
pub(crate) fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_the_length_of_its_share() {
        assert_eq!(bar(0.0, 4), "····");
        assert_eq!(bar(0.5, 4), "██··");
        assert_eq!(bar(0.40625, 4), "█▋··");
        assert_eq!(bar(7.0, 2), "██");
    }

    #[test]
    fn hostile_text_cannot_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\nc\u{7}"), r"a\u{1b}[31mb\nc\u{7}");
        assert_eq!(printable(&"x".repeat(1000)).len(), MAX_TEXT_CHARS);
    }
}
