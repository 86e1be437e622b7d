//! The file with defaults of flags, in the folder for settings.
//!
//! ```toml
//! memory = "12G"      # for every command with --memory
//!
//! [serve]             # for one command
//! port = 9000
//!
//! [trace.record]      # for a command of a command
//! tokens = 64
//! ```
//!
//! Reads; which keys there are is `flags`' to know.

use anyhow::{Context, Result, bail, ensure};
use motley_calibrate::library;
use std::path::PathBuf;
use toml::{Table, Value};

/// Bytes of the file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What the file says.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) path: PathBuf,
    pub(crate) table: Table,
}

impl Settings {
    /// This user's; empty where there is no file.
    pub(crate) fn read() -> Result<Self> {
        let Ok(path) = path() else { return Ok(Self::default()) };
        let size = match std::fs::metadata(&path) {
            Ok(found) => found.len(),
            Err(_) => return Ok(Self { path, table: Table::new() }),
        };
        ensure!(size <= FILE_BYTES_MAX, "{} has {size} bytes: too many", path.display());
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(path, &text)
    }

    pub(crate) fn parse(path: PathBuf, text: &str) -> Result<Self> {
        let table = text
            .parse()
            .with_context(|| format!("{} is no TOML; mend or remove it", path.display()))?;
        Ok(Self { path, table })
    }
}

/// Where the file is, or would be.
pub(crate) fn path() -> Result<PathBuf> {
    Ok(library::folder()?.join("config.toml"))
}

/// A value as it would be typed; several for a list.
pub(super) fn as_typed(key: &str, value: &Value) -> Result<Vec<String>> {
    Ok(match value {
        Value::String(text) => vec![text.clone()],
        Value::Integer(number) => vec![number.to_string()],
        Value::Float(number) => vec![number.to_string()],
        Value::Boolean(yes) => vec![yes.to_string()],
        Value::Array(values) if values.iter().all(|value| !value.is_array()) => {
            let each = values.iter().map(|value| as_typed(key, value));
            each.collect::<Result<Vec<_>>>()?.concat()
        }
        _ => bail!("`{key}` is no text, number, true, false or list of those"),
    })
}
