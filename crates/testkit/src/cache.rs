//! Where generated and fetched models live: the user's cache folder, never the repository.

use anyhow::{Context, Result};
use std::env;
use std::path::PathBuf;

/// `$XDG_CACHE_HOME/motley/models`, or the same under `~/.cache`.
pub fn models_folder() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME")
        .or_else(|| Some(set("HOME")?.join(".cache")))
        .map(|cache| cache.join("motley").join("models"))
        .context("neither XDG_CACHE_HOME nor HOME is set; say --out")
}
