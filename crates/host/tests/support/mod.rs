//! A machine as a folder of files: pairs of path and text, or a `.tree` file, written to a
//! temporary directory. Shared by every crate whose tests read a machine.

use std::path::{Path, PathBuf};

/// A folder that stands for `/`; gone when dropped.
pub(crate) struct Tree(tempfile::TempDir);

impl Tree {
    /// Writes the files.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(path, text)| tree.write(path, text));
        tree
    }

    /// The root to read from.
    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    /// Writes or replaces one file.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path: PathBuf = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}
