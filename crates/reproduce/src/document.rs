//! A reproduction as text and pictures. Formats what it is given.

use std::fmt::Write as _;

/// One published figure and ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What is compared.
    pub what: &'static str,
    /// The published value.
    pub paper: f64,
    /// Ours.
    pub ours: f64,
}

impl Figure {
    /// `ours / paper - 1`.
    pub fn difference(&self) -> f64 {
        self.ours / self.paper - 1.0
    }
}

/// Something the source leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assumed {
    /// What is open.
    pub open: &'static str,
    /// What is taken here.
    pub here: String,
    /// Why.
    pub reason: &'static str,
}

impl Assumed {
    pub(crate) fn new(open: &'static str, here: impl Into<String>, reason: &'static str) -> Self {
        Self { open, here: here.into(), reason }
    }
}

/// A picture beside the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// File name.
    pub name: String,
    /// SVG text.
    pub svg: String,
}

/// One reproduction.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// File name without ending.
    pub name: &'static str,
    /// The text.
    pub markdown: String,
    /// Pictures the text refers to.
    pub pictures: Vec<Picture>,
    /// The figures of its first table.
    pub figures: Vec<Figure>,
}

/// The table every document begins with.
pub fn figure_table(figures: &[Figure]) -> String {
    let mut text = String::from("| figure | paper | ours | difference |\n|---|---:|---:|---:|\n");
    for figure in figures {
        let Figure { what, paper, ours } = figure;
        let percent = 100.0 * figure.difference();
        let _ = writeln!(text, "| {what} | {paper:.2} | {ours:.2} | {percent:+.0} % |");
    }
    text
}

/// The table of what is open.
pub fn assumed_table(all: &[Assumed]) -> String {
    let mut text = String::from("| open in the source | here | reason |\n|---|---|---|\n");
    for Assumed { open, here, reason } in all {
        let _ = writeln!(text, "| {open} | {here} | {reason} |");
    }
    text
}

/// A table of one row per setting and one column per figure, the paper's values first.
pub fn sweep_table(figures: &[Figure], rows: &[(String, Vec<f64>)]) -> String {
    let mut text = String::from("| setting |");
    figures.iter().for_each(|figure| text.push_str(&format!(" {} |", figure.what)));
    text.push_str("\n|---|");
    figures.iter().for_each(|_| text.push_str("---:|"));
    let papers = figures.iter().map(|figure| figure.paper).collect();
    let first = [("**paper**".to_string(), papers)];
    for (setting, values) in first.iter().chain(rows) {
        let _ = write!(text, "\n| {setting} |");
        values.iter().for_each(|value| text.push_str(&format!(" {value:.2} |")));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_show_both_values_and_the_difference() {
        let figures = [Figure { what: "speed-up", paper: 2.0, ours: 2.5 }];
        assert!(figure_table(&figures).ends_with("| speed-up | 2.00 | 2.50 | +25 % |\n"));
        let sweep = sweep_table(&figures, &[("slow link".into(), vec![1.5])]);
        assert!(sweep.ends_with("| **paper** | 2.00 |\n| slow link | 1.50 |\n"), "{sweep}");
    }
}
