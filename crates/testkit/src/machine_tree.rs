//! A machine as a folder of files: pairs of path and text, or a `.tree` file, written to a
//! temporary directory.
//!
//! A `.tree` file has one entry per line: `path: value`, `path: |` with the lines that follow
//! indented by two blanks, or `path -> target` for a link. `{a-b}` in a path stands for every
//! number from a to b; `{}`, `{+n}` and `{-n}` in the value for that number, n more, n less.

use std::path::{Path, PathBuf};

/// A folder that stands for `/`; gone when dropped.
pub struct Tree(tempfile::TempDir);

impl Tree {
    /// Writes the files.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        files.iter().for_each(|(path, text)| tree.write(path, text));
        tree
    }

    /// Unpacks `<name>.tree` of the fixtures of `host`.
    pub fn fixture(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/tests/fixtures");
        let text = std::fs::read_to_string(folder.join(format!("{name}.tree"))).unwrap();
        let tree = Self::new(&[]);
        let mut lines = text.lines().filter(|line| !line.starts_with('#')).peekable();
        while let Some(line) = lines.next() {
            if let Some((path, target)) = line.split_once(" -> ") {
                tree.link(path, target);
                continue;
            }
            // Paths hold colons too (PCI addresses), never one before a blank or the end.
            let (path, value) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), ""));
            let mut text = value.to_owned();
            if value == "|" {
                text.clear();
                while let Some(line) = lines.next_if(|line| line.starts_with("  ")) {
                    text += &format!("{}\n", &line[2..]);
                }
            }
            tree.write_all(path, &text);
        }
        tree
    }

    /// The root to read from.
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// Writes or replaces one file.
    pub fn write(&self, path: &str, text: &str) {
        std::fs::write(self.place(path), text).unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.place(path)).unwrap();
    }

    /// One file for each number of the range in `path`.
    fn write_all(&self, path: &str, text: &str) {
        let Some((before, rest)) = path.split_once('{') else { return self.write(path, text) };
        let (range, after) = rest.split_once('}').unwrap();
        let (first, last) = range.split_once('-').unwrap();
        let (first, last): (i64, i64) = (first.parse().unwrap(), last.parse().unwrap());
        for number in first..=last {
            self.write(&format!("{before}{number}{after}"), &counted(text, number));
        }
    }

    fn place(&self, path: &str) -> PathBuf {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}

/// `text` with `{}`, `{+n}` and `{-n}` replaced.
fn counted(text: &str, number: i64) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (offset, after) = after.split_once('}').unwrap();
        let offset: i64 = if offset.is_empty() { 0 } else { offset.parse().unwrap() };
        out += &format!("{before}{}", number + offset);
        rest = after;
    }
    out + rest
}
