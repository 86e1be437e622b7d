//! Good verdicts, one small file each; bad ones are not kept, because trying again is cheap and a
//! newer engine may know better.
//!
//! ```text
//! <state>/motley/checked/<key>.json
//! ```
//!
//! A verdict that cannot be kept or read costs another try, and is said.

use super::key::Key;
use crate::state;
use crate::terminal::note;
use anyhow::{Context, Result};
use motley_trace::whole_file;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Whether these files passed before.
pub(super) fn is_kept(key: &Key) -> bool {
    let Ok(path) = place(key) else { return false };
    let kept =
        std::fs::read(path).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    kept.is_some_and(|kept| kept["key"] == key.to_string())
}

/// Remembers that they passed.
pub(super) fn keep(key: &Key, model: &Path) {
    if let Err(error) = try_keep(key, model) {
        note(&format!("the next run will try this file again: {error:#}"));
    }
}

fn try_keep(key: &Key, model: &Path) -> Result<()> {
    let path = place(key)?;
    let folder = path.parent().context("a folder")?;
    let shown = || format!("cannot write {}", path.display());
    std::fs::create_dir_all(folder).with_context(shown)?;
    let name = model.file_name().unwrap_or_default().to_string_lossy();
    let verdict = json!({ "key": key.to_string(), "file": name });
    whole_file::replace(&path, format!("{verdict}\n").as_bytes()).with_context(shown)
}

fn place(key: &Key) -> Result<PathBuf> {
    Ok(state::folder()?.join("checked").join(format!("{key}.json")))
}
