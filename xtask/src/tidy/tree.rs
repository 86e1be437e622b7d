//! The text files of the workspace as git sees them: tracked, or new and not ignored.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// One text file. Binary files are left out of the tree.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Path from the workspace root, with `/`.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl SourceFile {
    /// Whether this is Rust source.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }
}

/// All text files of a workspace, ordered by path.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    files: Vec<SourceFile>,
}

impl Tree {
    /// The files git tracks or would track under `root`.
    pub fn of_git(root: &Path) -> Result<Self> {
        let out = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("git is needed to list the files")?;
        ensure!(out.status.success(), "git ls-files in {} failed", root.display());
        let mut files: Vec<SourceFile> = String::from_utf8(out.stdout)?
            .split_terminator('\0')
            .filter_map(|path| {
                let text = std::fs::read_to_string(root.join(path)).ok()?;
                Some(SourceFile { path: path.to_owned(), text })
            })
            .collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        Ok(Self { files })
    }

    /// A tree written down in a test: (path, text).
    pub fn of_pairs(pairs: &[(&str, &str)]) -> Self {
        let file =
            |&(path, text): &(&str, &str)| SourceFile { path: path.into(), text: text.into() };
        Self { files: pairs.iter().map(file).collect() }
    }

    /// Every text file.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The Rust files.
    pub fn rust_files(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.is_rust())
    }

    /// One file by its path.
    pub fn file(&self, path: &str) -> Option<&SourceFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Folder names of the crates: `crates/*` with a manifest, in the order of the paths.
    pub fn crate_folders(&self) -> Vec<&str> {
        self.files
            .iter()
            .filter_map(|file| file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"))
            .filter(|folder| !folder.contains('/'))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crate_folders_are_the_flat_ones_with_a_manifest() {
        let tree = Tree::of_pairs(&[
            ("crates/model/Cargo.toml", ""),
            ("crates/model/src/lib.rs", ""),
            ("crates/model/tests/inner/Cargo.toml", ""),
            ("xtask/Cargo.toml", ""),
        ]);
        assert_eq!(tree.crate_folders(), ["model"]);
    }
}
