//! The last run, kept so that `motley explain` needs no flag: its record, and its routing when
//! experts were streamed. Replaced by the next run; at most a few megabytes.
//!
//! ```text
//! <state>/motley/last-run.json       where the time went
//! <state>/motley/last-trace.jsonl    which experts were used; absent when none were streamed, or
//!                                    tokens guessed ahead
//! ```
//!
//! `state` says where that is. `--no-record` leaves both alone.

use crate::recorder::{SharedRecorder, header};
pub(crate) use crate::state::folder;
use anyhow::{Context, Result};
use motley_engine::{Engine, Session, SessionOptions};
use motley_trace::whole_file::{UNFINISHED, WholeFile};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Lines of a kept trace; about 100 bytes each.
const MAX_VISITS: u64 = 80_000;
/// Unfinished files of runs that were ended from outside are removed after this time.
const STALE: Duration = Duration::from_secs(24 * 3600);

/// That folder, made if it can be; what is in the way is said when the run is kept.
pub(crate) fn make_folder() -> Option<PathBuf> {
    let folder = folder().ok()?;
    std::fs::create_dir_all(&folder).ok().map(|()| folder)
}

/// The record of the last run.
pub(crate) fn record_path(folder: &Path) -> PathBuf {
    folder.join("last-run.json")
}

/// Its routing.
pub(crate) fn trace_path(folder: &Path) -> PathBuf {
    folder.join("last-trace.jsonl")
}

/// What of a run is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Nothing,
    /// Not its routing: a trace does not tell guesses that were taken back from other tokens.
    Figures,
    Everything,
}

/// A run being kept. Nothing of it fails the run: what cannot be kept is a warning.
pub(crate) struct LastRun {
    folder: PathBuf,
    recording: Option<SharedRecorder>,
}

impl LastRun {
    /// Starts keeping a run of `engine`; `None` when it is not wanted or there is no folder.
    pub(crate) fn start(engine: &Engine, model: &Path, keep: Keep) -> Option<Self> {
        let started = (keep != Keep::Nothing).then(|| Self::try_start(engine, model, keep))?;
        started.inspect_err(warn_not_kept).ok()
    }

    fn try_start(engine: &Engine, model: &Path, keep: Keep) -> Result<Self> {
        let folder = folder()?;
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        remove_stale(&folder);
        let recording = if engine.streams() && keep == Keep::Everything {
            let trace = trace_path(&folder);
            let recorder = SharedRecorder::new(&trace, header(engine.spec(), model), MAX_VISITS);
            Some(recorder.with_context(|| trace.display().to_string())?)
        } else {
            None
        };
        Ok(Self { folder, recording })
    }

    /// Puts the run in the place of the last.
    pub(crate) fn finish(self, engine: &Engine, session: &Session) {
        let kept = self.try_finish(engine, session);
        kept.unwrap_or_else(|error| warn_not_kept(&error));
    }

    /// The record is on the disk before the trace changes: both are of one run, or of the last.
    fn try_finish(&self, engine: &Engine, session: &Session) -> Result<()> {
        let record = Record::begin(&record_path(&self.folder), engine, session)?;
        let trace = trace_path(&self.folder);
        match &self.recording {
            Some(recorder) => drop(recorder.finish().with_context(|| trace.display().to_string())?),
            None => remove(&trace)?,
        }
        record.finish()
    }
}

fn warn_not_kept(error: &anyhow::Error) {
    tracing::warn!(
        "this run is not kept for `motley explain`: {error:#}; MOTLEY_STATE names another folder, \
         --no-record keeps nothing"
    );
}

/// A session of `engine`, watched when its run is kept.
pub(crate) fn session(
    engine: &Engine,
    options: &SessionOptions,
    last: Option<&LastRun>,
) -> Result<Session> {
    Ok(match last.and_then(|last| last.recording.as_ref()) {
        Some(recorder) => engine.watched_session(options, recorder.watcher())?,
        None => engine.session(options)?,
    })
}

/// Keeps a run whose trace was written elsewhere.
pub(crate) fn keep_copy(engine: &Engine, session: &Session, trace: &Path) {
    let keep = || -> Result<()> {
        let folder = folder()?;
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let record = Record::begin(&record_path(&folder), engine, session)?;
        let place = trace_path(&folder);
        match engine.streams() {
            true => copy(trace, &place).with_context(|| place.display().to_string())?,
            false => remove(&place)?,
        }
        record.finish()
    };
    keep().unwrap_or_else(|error| warn_not_kept(&error));
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut file = WholeFile::replace(to)?;
    io::copy(&mut File::open(from)?, &mut file)?;
    file.finish()
}

/// Writes the figures of a session for `sim`, `explain` and people.
pub(crate) fn write_record(path: &Path, engine: &Engine, session: &Session) -> Result<()> {
    Record::begin(path, engine, session)?.finish()
}

/// Figures of a session that are on the disk but not yet in their place.
struct Record {
    file: WholeFile,
    path: PathBuf,
}

impl Record {
    fn begin(path: &Path, engine: &Engine, session: &Session) -> Result<Self> {
        let text = serde_json::to_string_pretty(&engine.record(session))? + "\n";
        let written = WholeFile::replace(path).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync().map(|()| file)
        });
        let file = written.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { file, path: path.into() })
    }

    fn finish(self) -> Result<()> {
        self.file.finish().with_context(|| format!("cannot write {}", self.path.display()))
    }
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// What a failure leaves behind here is removed by a later run.
fn remove_stale(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_part = path.extension().is_some_and(|extension| extension == UNFINISHED);
        let changed = entry.metadata().and_then(|data| data.modified()).ok();
        let age = changed.and_then(|time| SystemTime::now().duration_since(time).ok());
        if is_part && age.is_some_and(|age| age > STALE) {
            remove(&path).unwrap_or_else(|error| tracing::debug!("{error:#}"));
        }
    }
}
