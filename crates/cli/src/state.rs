//! The folder for what is kept between runs and can be lost: the last run, verdicts about files.
//! Settings and measurements are elsewhere (`motley_calibrate::library`).

use anyhow::{Context, Result};
use etcetera::BaseStrategy;
use std::path::PathBuf;

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

/// `<cache>/motley`, for what is large and can be made again, where `<cache>` is the system's folder
/// for that (`XDG_CACHE_HOME`, `~/.cache`, …).
pub(crate) fn cache_folder() -> Result<PathBuf> {
    let strategy = etcetera::choose_base_strategy()
        .context("no folder for caches is known; --prefix-folder names one")?;
    Ok(strategy.cache_dir().join("motley"))
}
