//! Small files that commands write: whole or not at all, their folder made first. What is in them is
//! the command's.

use anyhow::{Context, Result};
use motley_trace::rights::make_private_file;
use motley_trace::whole_file::WholeFile;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Puts `text` in the place of what is at `path`.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<()> {
    let shown = || format!("cannot write {}", path.display());
    make_folder_of(path).with_context(shown)?;
    let mut file = WholeFile::replace(path).with_context(shown)?;
    file.write_all(text.as_bytes()).with_context(shown)?;
    file.finish().with_context(shown)
}

/// As [`write_whole`], for what people type: a new file is readable by its owner alone, and what
/// takes its place keeps its rights.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let made = make_folder_of(path).and_then(|()| make_private_file(path));
    made.with_context(|| format!("cannot write {}", path.display()))?;
    write_whole(path, text)
}

fn make_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}
