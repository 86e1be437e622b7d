//! The folder for what is kept between runs and can be lost: the last run, verdicts about files.
//! Settings and measurements are elsewhere (`motley_calibrate::library`).

use anyhow::{Context, Result};
use etcetera::BaseStrategy;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

/// `<state>/motley`, where `<state>` is the system's folder for state (`XDG_STATE_HOME`,
/// `~/.local/state`, …), or what `MOTLEY_STATE` names.
pub(crate) fn folder() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("MOTLEY_STATE").filter(|folder| !folder.is_empty()) {
        return Ok(folder.into());
    }
    let strategy = etcetera::choose_base_strategy()
        .context("no folder for state is known; set MOTLEY_STATE")?;
    let state = strategy.state_dir().unwrap_or_else(|| strategy.cache_dir());
    Ok(state.join("motley"))
}

/// Makes `path` a file that its owner alone reads, where there is none yet: what takes its place keeps
/// its rights. For what people type.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
