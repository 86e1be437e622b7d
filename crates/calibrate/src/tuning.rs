//! Choices of cores as `motley tune` keeps them: one new file per run, per model and machine. The
//! newest that fits counts; to go back, remove newer ones. Keeps; measures and applies nothing.
//!
//! ```text
//! <config>/motley/tunings/<model>-2026-01-31T12-00-00Z.toml
//! ```

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::library::{LibraryError, create, kept, warn_passed_over};

/// Version of the format.
pub const TUNING_VERSION: u32 = 1;
/// Longest file that is read.
const MAX_FILE_BYTES: u64 = 64 * 1024;
/// Most threads a file may ask for.
const MAX_THREADS: u32 = 512;

/// What was chosen for one model on one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuning {
    /// [`TUNING_VERSION`].
    pub motley_tuning: u32,
    /// When, as `2026-01-31T12:00:00Z`.
    pub date: String,
    pub program: String,
    /// The machine and model it is for.
    pub subject: Subject,
    /// Whether other work was on the cores: then `run` passes it over.
    pub contended: bool,
    /// `speed` or `energy`.
    pub goal: String,
    /// The energy meter; absent when the heuristic (A3) decided alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meter: Option<String>,
    pub took_s: f64,
    /// Speed of the choice.
    pub tokens_per_s: f64,
    /// Speed of the fastest.
    pub fastest_tokens_per_s: f64,
    /// Threads for prompts.
    pub prefill: Threads,
    /// Threads for single tokens.
    pub decode: Threads,
    /// Everything that was measured.
    #[serde(rename = "measured", default)]
    pub candidates: Vec<Candidate>,
}

/// What a tuning is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    pub cpu: String,
    /// CPUs the process could use.
    pub cpus: u32,
    /// Name of the model.
    pub model: String,
    /// Bytes of its tensors.
    pub model_bytes: u64,
}

/// Threads and the CPUs they share; none named leaves the choice to the system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threads {
    pub threads: u32,
    /// CPU numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<usize>,
}

/// One measured choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// Cores per cluster, biggest cluster first.
    pub cores: Vec<u32>,
    pub tokens_per_s: f64,
    /// Its energy, where measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joules_per_token: Option<f64>,
}

impl Subject {
    /// A model on this machine.
    pub fn here(model: &str, model_bytes: u64) -> Self {
        let cpu = motley_host::cpu_name::read(Path::new("/")).unwrap_or_default();
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
        Self { cpu, cpus, model: model.to_owned(), model_bytes }
    }
}

/// Writes a tuning into a new file below `folder`.
pub fn save(folder: &Path, tuning: &Tuning) -> Result<PathBuf, LibraryError> {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = tuning.subject.model.chars().take(80).map(plain).collect();
    let stem = format!("{name}-{}", tuning.date.replace(':', "-"));
    let text = toml::to_string(tuning).expect("numbers, words and lists are TOML");
    create(&folder.join("tunings"), &stem, "toml", text.as_bytes())
}

/// The newest tuning below `folder` for `subject` that was measured without other work on the
/// cores; files that cannot be used are passed over with a warning.
pub fn newest(folder: &Path, subject: &Subject) -> Option<Tuning> {
    let usable = |path: PathBuf| {
        read(&path).inspect_err(|error| warn_passed_over(error, "motley tune MODEL")).ok()
    };
    let found = kept(&folder.join("tunings"), "toml").into_iter().filter_map(usable);
    let fits = found.filter(|tuning| tuning.subject == *subject && !tuning.contended);
    fits.max_by(|a, b| a.date.cmp(&b.date))
}

fn read(path: &Path) -> Result<Tuning, LibraryError> {
    let unreadable = |source| LibraryError::Io { path: path.into(), source };
    let unusable = |reason| LibraryError::Tuning { path: path.into(), reason };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MAX_FILE_BYTES {
        return Err(unusable(format!("{size} bytes, the limit is {MAX_FILE_BYTES}")));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let tuning: Tuning =
        toml::from_str(&text).map_err(|error| unusable(error.message().to_owned()))?;
    if tuning.motley_tuning != TUNING_VERSION {
        let found = tuning.motley_tuning;
        return Err(unusable(format!("version {found}, but this program reads {TUNING_VERSION}")));
    }
    let threads = [tuning.prefill.threads, tuning.decode.threads];
    match threads.into_iter().find(|threads| !(1..=MAX_THREADS).contains(threads)) {
        Some(found) => Err(unusable(format!("{found} threads, but it must be 1 to {MAX_THREADS}"))),
        None => Ok(tuning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuning(date: &str, threads: u32) -> Tuning {
        Tuning {
            motley_tuning: TUNING_VERSION,
            date: date.into(),
            program: "motley".into(),
            subject: Subject::here("a/model name", 7),
            contended: false,
            goal: "energy".into(),
            meter: None,
            took_s: 1.0,
            tokens_per_s: 9.5,
            fastest_tokens_per_s: 10.0,
            prefill: Threads { threads: 2, cpus: vec![] },
            decode: Threads { threads, cpus: vec![4] },
            candidates: vec![Candidate {
                cores: vec![1],
                tokens_per_s: 9.5,
                joules_per_token: None,
            }],
        }
    }

    #[test]
    fn the_newest_that_fits_counts_and_nothing_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let first = save(root, &tuning("2026-01-31T12:00:00Z", 2)).unwrap();
        assert_ne!(first, save(root, &tuning("2026-01-31T12:00:00Z", 2)).unwrap());
        assert!(first.ends_with("tunings/a-model-name-2026-01-31T12-00-00Z.toml"));
        save(root, &tuning("2026-02-01T00:00:00Z", 1)).unwrap();
        let busy = Tuning { contended: true, ..tuning("2026-03-01T00:00:00Z", 2) };
        save(root, &busy).unwrap();
        save(root, &tuning("2026-04-01T00:00:00Z", 9999)).unwrap();
        let found = newest(root, &Subject::here("a/model name", 7)).unwrap();
        assert_eq!(found, tuning("2026-02-01T00:00:00Z", 1));
        assert_eq!(newest(root, &Subject::here("a/model name", 8)), None);
    }
}
