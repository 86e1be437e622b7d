//! Where calibrations and profiles are kept: one new file per run, never one over another. The
//! newest full calibration of a processor of this name counts, whatever its age beside a quick
//! one; to go back, remove newer ones. A quick one counts for models whose experts it measured.
//! Files appear whole or not at all; one that cannot be used is passed over with a warning.
//!
//! ```text
//! <config>/motley/calibrations/2026-01-31T12-00-00Z.toml
//! <config>/motley/profiles/<model>-2026-01-31T12-00-00Z.jsonl
//! ```
//!
//! `<config>` is the system's folder for settings (`XDG_CONFIG_HOME`, `~/.config`, …);
//! `MOTLEY_CONFIG` names another in place of `<config>/motley`.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use motley_cost::calibration::{CalibrationError, CalibrationFile};
use motley_model::ModelSpec;
use motley_trace::whole_file;

use crate::kind::ExpertKind;

/// Most names tried when several runs end in one second.
const MAX_SAME_SECOND: u32 = 100;

/// Why the library cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// The system names no home folder.
    #[error("no folder for settings is known; set MOTLEY_CONFIG")]
    NoFolder,
    /// A file or folder cannot be used.
    #[error("{}: cannot be used", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A file is not what it should be.
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    /// The same of a tuning.
    #[error("{}: {reason}", path.display())]
    Tuning { path: PathBuf, reason: String },
}

/// The folder of this user.
pub fn folder() -> Result<PathBuf, LibraryError> {
    if let Some(folder) = std::env::var_os("MOTLEY_CONFIG").filter(|folder| !folder.is_empty()) {
        return Ok(folder.into());
    }
    let strategy = etcetera::choose_base_strategy().map_err(|_| LibraryError::NoFolder)?;
    Ok(strategy.config_dir().join("motley"))
}

/// Writes a calibration into a new file below `folder`.
pub fn save(folder: &Path, calibration: &CalibrationFile) -> Result<PathBuf, LibraryError> {
    let stem = calibration.provenance.date.replace(':', "-");
    let text = calibration.to_toml();
    create(&folder.join("calibrations"), &stem, "toml", text.as_bytes())
}

/// A new file `<stem>.<extension>` in `folder` that holds `bytes`, numbered where that name is
/// taken.
pub fn create(
    folder: &Path,
    stem: &str,
    extension: &str,
    bytes: &[u8],
) -> Result<PathBuf, LibraryError> {
    let failed = |source| LibraryError::Io { path: folder.into(), source };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let name = |number: u32| {
        let more = if number == 1 { String::new() } else { format!(".{number}") };
        folder.join(format!("{stem}{more}.{extension}"))
    };
    whole_file::create((1..MAX_SAME_SECOND).map(name), bytes).map_err(failed)
}

/// The files in `folder` that end in `extension`, sorted by name; none where there is no folder.
/// One that cannot be listed is warned of.
pub fn kept(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(folder).and_then(|entries| {
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()
    });
    let mut paths = listed.unwrap_or_else(|error| {
        if error.kind() != io::ErrorKind::NotFound {
            tracing::warn!("{}: what is kept there is not used: {error}", folder.display());
        }
        Vec::new()
    });
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths
}

/// Tells the user that a kept file is not used, why, and which `command` makes one that is.
pub fn warn_passed_over(error: &dyn Error, command: &str) {
    let (mut reason, mut next) = (one_line(error), error.source());
    while let Some(cause) = next {
        let words = one_line(cause);
        // Some errors have their cause in their own words already.
        if !reason.contains(&words) {
            reason += &format!(": {words}");
        }
        next = cause.source();
    }
    tracing::warn!("a kept file is passed over: {reason}; remove it, and run `{command}` again");
}

/// An error without the excerpt (`1 | text`) a TOML error draws between its lines.
fn one_line(error: &dyn Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.contains('|')).collect::<Vec<_>>().join(": ")
}

/// The calibration below `folder` that counts on a processor called `cpu` when no model is in
/// question: the newest full one, else the newest. Unreadable files and those of other versions
/// are passed over with a warning.
pub fn newest(folder: &Path, cpu: &str) -> Option<(PathBuf, CalibrationFile)> {
    best(folder, cpu, |_| true)
}

/// The one that counts for a model of these experts ([`ExpertKind::of_model`]): the newest full
/// one, else the newest quick one that measured the first kind.
pub fn for_kinds(
    folder: &Path,
    cpu: &str,
    kinds: &[ExpertKind],
) -> Option<(PathBuf, CalibrationFile)> {
    let kind = kinds.first().copied();
    best(folder, cpu, |found| kind.is_none_or(|kind| kind.is_measured_in(found)))
}

/// [`newest`] of this machine in this user's folder.
pub fn of_this_machine() -> Option<(PathBuf, CalibrationFile)> {
    newest(&known_folder()?, &this_cpu())
}

/// [`for_kinds`] of this machine in this user's folder, for `model`.
pub fn for_model(model: &ModelSpec) -> Option<(PathBuf, CalibrationFile)> {
    for_kinds(&known_folder()?, &this_cpu(), &ExpertKind::of_model(model))
}

/// [`folder`], where the system names one; a warning where it does not.
pub fn known_folder() -> Option<PathBuf> {
    folder().inspect_err(|error| tracing::warn!("nothing kept is used: {error}")).ok()
}

/// The newest full calibration, else the newest quick one that `fits`.
fn best(
    folder: &Path,
    cpu: &str,
    fits: impl Fn(&CalibrationFile) -> bool,
) -> Option<(PathBuf, CalibrationFile)> {
    let mut quick = None;
    for path in kept(&folder.join("calibrations"), "toml").into_iter().rev() {
        match read(&path) {
            Err(error) => warn_passed_over(&error, "motley calibrate"),
            Ok(found) if found.provenance.cpu != cpu => {}
            Ok(found) if !found.provenance.quick => return Some((path, found)),
            Ok(found) if quick.is_none() && fits(&found) => quick = Some((path, found)),
            Ok(_) => {}
        }
    }
    quick
}

fn this_cpu() -> String {
    motley_host::cpu_name::read(Path::new("/")).unwrap_or_default()
}

/// Reads one file.
pub fn read(path: &Path) -> Result<CalibrationFile, LibraryError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| LibraryError::Io { path: path.into(), source })?;
    Ok(CalibrationFile::parse(&text, &path.display().to_string())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_cost::calibration::{FORMAT_VERSION, Provenance};

    fn calibration(date: &str, cpu: &str) -> CalibrationFile {
        let provenance = Provenance {
            date: date.into(),
            program: "motley".into(),
            cpu: cpu.into(),
            cores: 2,
            instructions: vec![],
            load_one_min: None,
            took_s: 1.0,
            quick: false,
        };
        CalibrationFile {
            version: FORMAT_VERSION,
            provenance,
            machine: motley_machine::find("two-core-24gb").unwrap(),
            memory: vec![],
            disk: None,
            links: vec![],
            experts: vec![],
            devices: vec![],
        }
    }

    #[test]
    fn runs_never_overwrite_each_other_and_the_newest_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let old = calibration("2026-01-31T12:00:00Z", "A");
        let first = save(root, &old).unwrap();
        let second = save(root, &old).unwrap();
        assert_ne!(first, second);
        save(root, &calibration("2026-02-01T00:00:00Z", "A")).unwrap();
        save(root, &calibration("2026-03-01T00:00:00Z", "B")).unwrap();
        std::fs::write(root.join("calibrations/2027.toml"), "not one").unwrap();
        let (path, found) = newest(root, "A").unwrap();
        assert_eq!(found.provenance.date, "2026-02-01T00:00:00Z");
        assert!(path.ends_with("calibrations/2026-02-01T00-00-00Z.toml"), "{}", path.display());
        assert!(newest(root, "C").is_none());
        assert_eq!(read(&first).unwrap(), old);
    }
}
