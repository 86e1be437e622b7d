//! Where results go: a new file, never one over another.

use anyhow::{Context, Result};
use motley_calibrate::library;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

/// A new file: the one asked for, which must not be there yet, or one in the library.
pub(super) fn new_file(
    output: Option<&Path>,
    kind: &str,
    stem: &str,
    extension: &str,
) -> Result<(File, PathBuf)> {
    let Some(path) = output else {
        return Ok(library::create(&library::folder()?.join(kind), stem, extension)?);
    };
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let file = file.with_context(|| format!("cannot write {} as a new file", path.display()))?;
    Ok((file, path.to_path_buf()))
}
