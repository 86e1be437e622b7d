//! Files under construction, and what a writer reports about them.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A model that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenModel {
    /// The file to load: the only one, or the first shard.
    pub path: PathBuf,
    /// Bytes of all files.
    pub bytes: u64,
    /// Tensors in all files.
    pub tensors: usize,
}

/// Messages of a writer to a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Bytes of tensor data in all, said once.
    Total(u64),
    /// Bytes written since the last word.
    More(u64),
}

/// A temporary file beside `path`, which vanishes unless it is persisted: a path that exists is
/// a file that is whole.
pub fn new_file(path: &Path) -> Result<NamedTempFile> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| builder().tempfile_in(folder))
        .with_context(|| format!("cannot create a file in {}", folder.display()))
}

fn builder() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".part-").suffix(".gguf");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    builder
}
