//! The house rules that a compiler does not know, checked over the files git would commit.
//!
//! Each rule is one file with a `check(&Tree) -> Vec<Finding>` and tests showing that it can
//! fail. A rule reads text only: no build, no network, no configuration.

pub mod circles;
pub mod code_map;
pub mod decisions;
pub mod doc_line;
pub mod edges;
pub mod ggml_table;
pub mod paths;
pub mod platforms;
pub mod public_docs;
pub mod sizes;
pub mod techniques;
pub mod todo;
pub mod unsafe_rooms;

mod finding;
mod lex;
mod tree;

pub use finding::Finding;
pub use tree::{SourceFile, Tree};

/// Every rule over one tree, in the order of the module list.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let rules: &[fn(&Tree) -> Vec<Finding>] = &[
        circles::check,
        code_map::check,
        decisions::check,
        doc_line::check,
        edges::check,
        ggml_table::check,
        paths::check,
        platforms::check,
        public_docs::check,
        sizes::check,
        techniques::check,
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
}
