//! Rule: every technique that a comment in the code names is in the table of `docs/techniques.md`,
//! once, and every path that table or `CONTRIBUTING.md` names is there.

use super::{Finding, Tree};
use std::collections::BTreeSet;

const TABLE: &str = "docs/techniques.md";
const GUIDES: [&str; 2] = [TABLE, "CONTRIBUTING.md"];

/// The families of ids; a number follows.
const FAMILIES: [char; 6] = ['N', 'G', 'A', 'H', 'W', 'M'];

/// Highest number an id may have; above, words such as A55 and H100 are names of hardware.
const NUMBER_MAX: u32 = 19;

/// Folders at the root that a guide may name something of.
const FOLDERS: [&str; 4] = ["crates/", "docs/", "xtask/", "fuzz/"];

/// Ids without a row, rows twice, and paths that are not there. Without the table only paths.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = GUIDES.iter().flat_map(|guide| paths(tree, guide)).collect();
    let Some(table) = tree.file(TABLE) else { return findings };
    let mut listed = BTreeSet::new();
    for (at, id) in rows(&table.text) {
        if !listed.insert(id) {
            findings.push(Finding::at(TABLE, at, format!("{id} has a row already")));
        }
    }
    for file in tree.rust_files() {
        for (at, line) in file.text.lines().enumerate().filter(|(_, line)| is_comment(line)) {
            let unknown = words(line).filter(|word| is_id(word) && !listed.contains(word));
            let message = |id| format!("technique {id} has no row in {TABLE}");
            findings.extend(unknown.map(|id| Finding::at(&file.path, at + 1, message(id))));
        }
    }
    findings
}

/// Rows of the table: their line and id.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter_map(|(at, line)| {
        let id = line.strip_prefix("| ")?.split(' ').next()?;
        is_id(id).then_some((at + 1, id))
    })
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_'))
}

fn is_id(word: &str) -> bool {
    let number = word.strip_prefix(FAMILIES).and_then(|number| number.parse::<u32>().ok());
    number.is_some_and(|number| (1..=NUMBER_MAX).contains(&number))
}

/// Paths in code quotes of one guide that are neither a file nor a folder.
fn paths(tree: &Tree, guide: &str) -> Vec<Finding> {
    let Some(file) = tree.file(guide) else { return Vec::new() };
    let exists = |path: &str| {
        let folder = format!("{}/", path.trim_end_matches('/'));
        tree.files().iter().any(|file| file.path == path || file.path.starts_with(&folder))
    };
    let mut findings = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let quoted = line.split('`').skip(1).step_by(2);
        let named = quoted.filter(|path| FOLDERS.iter().any(|folder| path.starts_with(folder)));
        for missing in named.filter(|path| !path.contains(['<', ' ']) && !exists(path)) {
            findings.push(Finding::at(guide, at + 1, format!("`{missing}` is not there")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(table: &str, code: &str) -> Vec<String> {
        let tree = Tree::of_pairs(&[(TABLE, table), ("crates/x/src/a.rs", code)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn ids_in_comments_need_a_row() {
        let table = "| id | what |\n|---|---|\n| H1 | timelines | `crates/x/src/a.rs` |\n";
        assert!(findings(table, "//! H1 here.\nfn f() {} // H100, A6000, x.H2\n").is_empty());
        let unknown = concat!("/", "// As in H", "1 and H", "9.\n");
        let found = findings(table, unknown);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/x/src/a.rs:1: technique H"), "{}", found[0]);
    }

    #[test]
    fn a_row_stands_once() {
        assert_eq!(findings("| M1 | a |\n| M1 | b |\n", "//! A.\n").len(), 1);
    }

    #[test]
    fn paths_in_guides_exist() {
        let table = "`crates/x/src/a.rs`, `crates/x`, `crates/<name>/src`, `a/b`, `crates/y`\n";
        assert_eq!(findings(table, ""), ["docs/techniques.md:1: `crates/y` is not there"]);
    }
}
