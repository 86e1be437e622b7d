//! Where results go: a new file, never one over another.

use anyhow::{Context, Result};
use motley_calibrate::library;
use motley_trace::whole_file;
use std::path::{Path, PathBuf};

/// What a result is kept as when no file is named: `<stem>.<extension>` in this folder of the
/// library.
pub(super) struct Kind<'a> {
    pub(super) folder: &'a str,
    pub(super) stem: &'a str,
    pub(super) extension: &'a str,
}

/// Writes a new file: the one asked for, which must not be there yet, or one in the library.
pub(super) fn write_new(output: Option<&Path>, kind: &Kind<'_>, bytes: &[u8]) -> Result<PathBuf> {
    match output {
        None => {
            let folder = library::folder()?.join(kind.folder);
            Ok(library::create(&folder, kind.stem, kind.extension, bytes)?)
        }
        Some(path) => whole_file::create([path.to_path_buf()], bytes)
            .with_context(|| format!("cannot write {} as a new file", path.display())),
    }
}
