//! Rule: a message that the page on troubleshooting explains is one the program still says: its
//! fixed words are in the source of a crate.

use crate::tidy::{Finding, Tree};

const PAGE: &str = "docs/troubleshooting.md";
/// Shorter pieces of a message are in the source by chance.
const LEAST_CHARS: usize = 8;

/// Messages nobody says.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(page) = tree.file(PAGE) else { return Vec::new() };
    let source: String = tree
        .rust_files()
        .filter(|file| file.path.starts_with("crates/"))
        .map(|f| plain(&f.text))
        .collect();
    let mut findings = Vec::new();
    for (at, line) in page.text.lines().enumerate() {
        let pieces = message(line).into_iter().flat_map(|message| message.split('…'));
        for piece in pieces.map(str::trim) {
            let worth = piece.chars().count() >= LEAST_CHARS;
            if worth && !source.contains(piece) {
                findings.push(Finding::at(PAGE, at + 1, format!("no message says `{piece}`")));
            }
        }
    }
    findings
}

/// What a row of a table begins with, where that is code.
fn message(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split_once('`').map(|(message, _)| message)
}

/// Text as it is printed: lines of a string joined, quotes as they look.
fn plain(source: &str) -> String {
    let mut text = String::with_capacity(source.len());
    let mut lines = source.split("\\\n");
    text.extend(lines.next());
    for line in lines {
        text.push_str(line.trim_start());
    }
    text.replace("\\\"", "\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_looked_for_by_their_fixed_words() {
        let page = "| `…: no such file, …; try again` | why |\n| `something else …` | why |\n| no code | |\n";
        let source = "#[error(\"{}: no such file, {name:?}; try \\\n         again\")]";
        let found = check(&Tree::of_pairs(&[(PAGE, page), ("crates/a/src/lib.rs", source)]));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            found[0].to_string(),
            "docs/troubleshooting.md:2: no message says `something else`"
        );
    }
}
