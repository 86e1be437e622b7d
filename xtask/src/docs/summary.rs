//! The book's table of contents: written by hand down to the decisions, whose list is made from
//! their headings; and the rule that it has every page.

use super::markdown::{FOLDER, Page};
use crate::tidy::{Finding, Tree};
use anyhow::{Context, Result};
use std::fmt::Write as _;

/// The table of contents.
pub(super) const PATH: &str = "docs/SUMMARY.md";
/// Below this line everything is made.
const LAST: &str = "- [Decisions](decisions/README.md)\n";
const DECISIONS: &str = "docs/decisions/";

/// The table with today's decisions.
pub(super) fn page(tree: &Tree) -> Result<String> {
    let text = &tree.file(PATH).with_context(|| format!("no {PATH}"))?.text;
    let (by_hand, _) =
        text.split_once(LAST).with_context(|| format!("{PATH} has no line `{}`", LAST.trim()))?;
    let mut page = by_hand.to_owned() + LAST;
    for file in tree.files() {
        let Some(name) = file.path.strip_prefix(DECISIONS) else { continue };
        let title = file.text.lines().next().and_then(|line| line.strip_prefix("# "));
        if let Some(title) = title.filter(|_| name.starts_with(|c: char| c.is_ascii_digit())) {
            let _ = writeln!(page, "  - [{title}](decisions/{name})");
        }
    }
    Ok(page)
}

/// Pages of the folder that the table does not have: the book would not hold them.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let table = tree.file(PATH).map(|file| Page::parse(&file.text)).unwrap_or_default();
    let listed = |name: &str| table.links.iter().any(|(_, to)| to == name);
    tree.files()
        .iter()
        .filter_map(|file| {
            let name = file.path.strip_prefix(FOLDER).filter(|name| name.ends_with(".md"))?;
            let missing = file.path != PATH && !listed(name);
            missing.then(|| Finding::file(PATH, format!("has no line for `{name}`")))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_listed_below_what_is_written_by_hand() {
        let by_hand = "# Summary\n\n- [A](a.md)\n- [Decisions](decisions/README.md)\n";
        let tree = Tree::of_pairs(&[
            (PATH, &format!("{by_hand}  - [gone](decisions/0001-gone.md)\n")),
            ("docs/decisions/0001-a.md", "# 0001: why a\n"),
            ("docs/decisions/README.md", "# Decisions\n"),
        ]);
        let page = page(&tree).unwrap();
        assert_eq!(page, format!("{by_hand}  - [0001: why a](decisions/0001-a.md)\n"));
    }

    #[test]
    fn a_page_nobody_lists_is_found() {
        let tree = Tree::of_pairs(&[(PATH, "- [A](a.md)\n"), ("docs/a.md", ""), ("docs/b.md", "")]);
        let found = check(&tree);
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("b.md"), "{found:?}");
    }
}
