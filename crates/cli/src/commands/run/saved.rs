//! Conversations kept by name, in a folder of Motley's own: the sandbox lets a chat write nowhere
//! else. Readable by their owner alone.
//!
//! ```text
//! <state>/motley/chats/NAME.json    { "version": 1, "model": …, "messages": [ … ] }
//! ```

use crate::files::write_private;
use crate::state::folder;
use anyhow::{Context, Result, ensure};
use motley_model::ModelSpec;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

const FORMAT_VERSION: u32 = 1;
const NAME_CHARS_MAX: usize = 64;
/// Bytes of a conversation that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

#[derive(Serialize, Deserialize)]
struct Saved {
    version: u32,
    /// Which model it was with; any may go on.
    model: String,
    messages: Vec<Value>,
}

/// Keeps `messages`; returns where.
pub(super) fn save(name: &str, model: &ModelSpec, messages: &[Value]) -> Result<PathBuf> {
    let path = path_of(name)?;
    let saved = Saved {
        version: FORMAT_VERSION,
        model: model.name.clone().unwrap_or_else(|| model.architecture.clone()),
        messages: messages.to_vec(),
    };
    let text = serde_json::to_string_pretty(&saved)? + "\n";
    write_private(&path, &text)?;
    Ok(path)
}

/// The turns kept under `name`.
pub(super) fn load(name: &str) -> Result<Vec<Value>> {
    let path = path_of(name)?;
    let shown = || format!("cannot load {} (/load lists what is kept)", path.display());
    let size = std::fs::metadata(&path).with_context(shown)?.len();
    ensure!(size <= FILE_BYTES_MAX, "{} has {size} bytes: no conversation", path.display());
    let text = std::fs::read_to_string(&path).with_context(shown)?;
    let saved: Saved = serde_json::from_str(&text).with_context(shown)?;
    let version = saved.version;
    ensure!(
        version == FORMAT_VERSION,
        "{} has version {version}; this motley reads version {FORMAT_VERSION}",
        path.display()
    );
    Ok(saved.messages)
}

/// What is kept, on one line.
pub(super) fn list() -> Result<String> {
    let entries = std::fs::read_dir(chats()?).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        Some(name.strip_suffix(".json")?.to_owned())
    };
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort_unstable();
    Ok(match names.is_empty() {
        true => "no conversation is kept; /save NAME keeps this one".to_owned(),
        false => format!("kept: {}", names.join(", ")),
    })
}

fn chats() -> Result<PathBuf> {
    Ok(folder()?.join("chats"))
}

fn path_of(name: &str) -> Result<PathBuf> {
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    ensure!(
        !name.is_empty()
            && name.chars().count() <= NAME_CHARS_MAX
            && !name.starts_with('.')
            && name.chars().all(plain),
        "a conversation's name has letters, digits, `-`, `_` and `.`, at most {NAME_CHARS_MAX}: \
         /save trip-to-rome"
    );
    Ok(chats()?.join(format!("{name}.json")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_no_path() {
        for name in ["", "../a", "a/b", ".a", "a b", &"x".repeat(65)] {
            assert!(path_of(name).is_err(), "{name}");
        }
        assert!(path_of("Zürich-2.b").unwrap().ends_with("chats/Zürich-2.b.json"));
    }
}
