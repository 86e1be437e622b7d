//! The house rules that a compiler does not know, checked over the files git would commit.
//!
//! Each rule is one file with a `check(&Tree) -> Vec<Finding>` and tests showing that it can
//! fail. A rule reads text only: no build, no network, no configuration.

pub mod code_map;
pub mod doc_line;
pub mod edges;
pub mod ggml_table;
pub mod paths;
pub mod sizes;
pub mod todo;
pub mod unsafe_rooms;

mod lex;
mod tree;

pub use tree::{SourceFile, Tree};

use std::fmt;

/// One broken rule, at the place where a person would mend it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Path from the workspace root, with `/`.
    pub path: String,
    /// Line from 1, or 0 for the file as a whole.
    pub line: usize,
    /// What is wrong and what to do.
    pub message: String,
}

impl Finding {
    /// A finding about one line (from 1).
    pub fn at(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }

    /// A finding about a file as a whole.
    pub fn file(path: &str, message: impl Into<String>) -> Self {
        Self::at(path, 0, message)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Every rule over one tree, in the order of the module list.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let rules: [fn(&Tree) -> Vec<Finding>; 8] = [
        code_map::check,
        doc_line::check,
        edges::check,
        ggml_table::check,
        paths::check,
        sizes::check,
        todo::check,
        unsafe_rooms::check,
    ];
    rules.iter().flat_map(|rule| rule(tree)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_is_tidy() {
        let tree = Tree::of_git(crate::workspace_root()).expect("git lists the workspace");
        let findings = check(&tree);
        let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "{} findings:\n{}", list.len(), list.join("\n"));
    }

    #[test]
    fn findings_read_like_compiler_messages() {
        assert_eq!(Finding::at("a.rs", 3, "why").to_string(), "a.rs:3: why");
        assert_eq!(Finding::file("a.rs", "why").to_string(), "a.rs: why");
    }
}
