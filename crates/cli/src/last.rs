//! The last run, kept so that `motley explain` needs no flag: its record, and its routing when
//! experts were streamed. Replaced by the next run; at most a few megabytes.
//!
//! ```text
//! <state>/motley/last-run.json       where the time went
//! <state>/motley/last-trace.jsonl    which experts were used; absent when none were streamed
//! ```
//!
//! `<state>` is the system's folder for state (`XDG_STATE_HOME`, `~/.local/state`, …);
//! `MOTLEY_STATE` names another in place of `<state>/motley`. `--no-record` leaves both alone.

use crate::recorder::{SharedRecorder, header};
use anyhow::{Context, Result};
use etcetera::BaseStrategy;
use motley_engine::{Engine, Session, SessionOptions};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Lines of a kept trace; about 100 bytes each.
const MAX_VISITS: u64 = 80_000;
/// Unfinished files of runs that were ended from outside are removed after this time.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// Where the last run is kept.
pub(crate) fn folder() -> Result<PathBuf> {
    if let Some(folder) = std::env::var_os("MOTLEY_STATE").filter(|folder| !folder.is_empty()) {
        return Ok(folder.into());
    }
    let strategy = etcetera::choose_base_strategy()
        .context("no folder for state is known; set MOTLEY_STATE")?;
    let state = strategy.state_dir().unwrap_or_else(|| strategy.cache_dir());
    Ok(state.join("motley"))
}

/// The record of the last run.
pub(crate) fn record_path(folder: &Path) -> PathBuf {
    folder.join("last-run.json")
}

/// Its routing.
pub(crate) fn trace_path(folder: &Path) -> PathBuf {
    folder.join("last-trace.jsonl")
}

/// A run being kept. Nothing of it fails the run: what cannot be kept is said with `-v`.
pub(crate) struct LastRun {
    folder: PathBuf,
    recording: Option<(SharedRecorder, PathBuf)>,
}

impl LastRun {
    /// Starts keeping a run of `engine`; `None` when it is not wanted or there is no folder.
    pub(crate) fn start(engine: &Engine, model: &Path, wanted: bool) -> Option<Self> {
        let started = wanted.then(|| Self::try_start(engine, model))?;
        started.inspect_err(|error| tracing::warn!("this run is not kept: {error:#}")).ok()
    }

    fn try_start(engine: &Engine, model: &Path) -> Result<Self> {
        let folder = folder()?;
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        remove_stale(&folder);
        let recording = if engine.streams() {
            let part = folder.join(format!("trace-{}.part", std::process::id()));
            let file = File::create(&part).with_context(|| part.display().to_string())?;
            let recorder = SharedRecorder::new(file, header(engine.spec(), model), MAX_VISITS)?;
            Some((recorder, part))
        } else {
            None
        };
        Ok(Self { folder, recording })
    }

    /// Puts the run in the place of the last.
    pub(crate) fn finish(self, engine: &Engine, session: &Session) {
        if let Err(error) = self.try_finish(engine, session) {
            tracing::warn!("this run is not kept: {error:#}");
        }
    }

    fn try_finish(&self, engine: &Engine, session: &Session) -> Result<()> {
        let trace = trace_path(&self.folder);
        match &self.recording {
            Some((recorder, part)) => {
                recorder.finish()?;
                std::fs::rename(part, &trace)?;
            }
            None => remove(&trace)?,
        }
        write_record(&record_path(&self.folder), engine, session)
    }
}

impl Drop for LastRun {
    fn drop(&mut self) {
        if let Some((_, part)) = &self.recording {
            let _ = remove(part);
        }
    }
}

/// A session of `engine`, watched when its run is kept.
pub(crate) fn session(
    engine: &Engine,
    options: &SessionOptions,
    last: Option<&LastRun>,
) -> Result<Session> {
    let recorder = last.and_then(|last| last.recording.as_ref()).map(|(recorder, _)| recorder);
    Ok(match recorder {
        Some(recorder) => engine.watched_session(options, recorder.watcher())?,
        None => engine.session(options)?,
    })
}

/// Keeps a run whose trace was written elsewhere.
pub(crate) fn keep_copy(engine: &Engine, session: &Session, trace: &Path) {
    let keep = || -> Result<()> {
        let folder = folder()?;
        std::fs::create_dir_all(&folder)?;
        match engine.streams() {
            true => drop(std::fs::copy(trace, trace_path(&folder))?),
            false => remove(&trace_path(&folder))?,
        }
        write_record(&record_path(&folder), engine, session)
    };
    if let Err(error) = keep() {
        tracing::warn!("this run is not kept: {error:#}");
    }
}

/// Writes the figures of a session for `sim`, `explain` and people.
pub(crate) fn write_record(path: &Path, engine: &Engine, session: &Session) -> Result<()> {
    let text = serde_json::to_string_pretty(&engine.record(session))?;
    std::fs::write(path, text + "\n").with_context(|| format!("cannot write {}", path.display()))
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

fn remove_stale(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_part = path.extension().is_some_and(|extension| extension == "part");
        let changed = entry.metadata().and_then(|data| data.modified()).ok();
        let age = changed.and_then(|time| SystemTime::now().duration_since(time).ok());
        if is_part && age.is_some_and(|age| age > STALE) {
            let _ = remove(&path);
        }
    }
}
