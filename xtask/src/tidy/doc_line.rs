//! Rule: the first line of every Rust file is `//!` and says what the file is (STYLE 2).

use super::{Finding, Tree};

/// Files whose first line is not a module comment with words in it.
pub fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust_files()
        .filter(|file| !says_what_it_is(&file.text))
        .map(|file| Finding::at(&file.path, 1, "begin with `//!` and what this file is"))
        .collect()
}

fn says_what_it_is(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("//!").is_some_and(|words| !words.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(text: &str) -> usize {
        check(&Tree::of_pairs(&[("crates/model/src/a.rs", text), ("README.md", "no rust")])).len()
    }

    #[test]
    fn a_module_comment_passes() {
        assert_eq!(findings("//! What it is.\nfn f() {}\n"), 0);
    }

    #[test]
    fn anything_else_is_found() {
        assert_eq!(findings("use std::fmt;\n//! Late.\n"), 1);
        assert_eq!(findings("//!\n"), 1);
        assert_eq!(findings("/// Outer.\n"), 1);
        assert_eq!(findings(""), 1);
    }
}
