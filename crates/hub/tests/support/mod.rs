//! What the tests of this crate share: a hub with a small model in parts, and settings for it.

#![allow(dead_code, reason = "each test binary uses its part")]

use motley_hub::{Client, FetchError, HubName, ModelName, Offer, Progress, Pull, Retry, Settings};
use motley_testkit::gguf_source::Tokenizer;
use motley_testkit::hub::Hub;
use motley_testkit::synth::{Arch, Preset, Request, generate};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tempfile::TempDir;

/// The repository of every test.
pub(crate) const REPO: &str = "owner/Small-GGUF";
/// Parts of its model.
pub(crate) const PARTS: u32 = 20;

/// A hub, a folder for its models and for the cache.
pub(crate) struct World {
    pub(crate) hub: Hub,
    pub(crate) folder: TempDir,
    /// First part of the model.
    pub(crate) model: PathBuf,
}

impl World {
    /// With a model in twenty parts.
    pub(crate) fn new() -> Self {
        Self::with_parts(PARTS)
    }

    pub(crate) fn with_parts(parts: u32) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let model = model(folder.path(), parts);
        let hub = Hub::start().expect("a port");
        hub.add_model(REPO, "small-Q4_0", &model).expect("a model");
        Self { hub, folder, model }
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings_with(&[])
    }

    pub(crate) fn settings_with(&self, more: &[(&str, &str)]) -> Settings {
        let cache = self.folder.path().join("cache");
        let own = [
            ("HF_ENDPOINT", self.hub.endpoint()),
            ("HF_HOME", cache.join("hf").display().to_string()),
            ("MOTLEY_CACHE", cache.join("motley").display().to_string()),
        ];
        let more = more.iter().map(|(key, value)| (*key, (*value).to_owned()));
        let all: Vec<(&str, String)> = own.into_iter().chain(more).collect();
        let variable = |name: &str| {
            all.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        Settings::read(&variable).expect("settings")
    }
}

/// A model of random weights, about 6 MB.
pub(crate) fn model(folder: &Path, parts: u32) -> PathBuf {
    let mut request = Request::of_preset(Preset::Test(Arch::Qwen3moe));
    request.shards = parts;
    let tokenizer = Tokenizer::of_bytes();
    let written = generate(&request, &tokenizer, &folder.join("model.gguf"), &mut |_| {});
    written.expect("a model").path
}

pub(crate) fn name(text: &str) -> HubName {
    HubName::parse(text).expect("a name")
}

pub(crate) fn model_name(text: &str) -> ModelName {
    ModelName::parse(Path::new(text)).expect("a name")
}

/// Tries often, and waits little.
pub(crate) fn impatient() -> Retry {
    let first_wait = Duration::from_millis(1);
    Retry { attempts: 30, first_wait, longest_wait: first_wait }
}

pub(crate) fn client(settings: &Settings) -> Client {
    Client::new(settings, impatient())
}

/// Fetches the repository's only model.
pub(crate) fn fetch(settings: &Settings, progress: &dyn Progress) -> anyhow::Result<PathBuf> {
    let client = client(settings);
    let offer = Offer::of_hub(&client, &name(REPO))?;
    let pull = Pull::new(&client, settings, &offer, offer.candidates[0])?;
    Ok(pull.fetch(progress)?)
}

/// Counts what it is told.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) here: AtomicU64,
    pub(crate) came: AtomicU64,
    pub(crate) lost: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) again: AtomicU64,
}

impl Counted {
    pub(crate) fn here(&self) -> u64 {
        self.here.load(Relaxed)
    }

    pub(crate) fn came(&self) -> u64 {
        self.came.load(Relaxed)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }
}

impl Progress for Counted {
    fn here(&self, bytes: u64) {
        self.here.fetch_add(bytes, Relaxed);
    }

    fn came(&self, bytes: u64) {
        self.came.fetch_add(bytes, Relaxed);
    }

    fn lost(&self, bytes: u64) {
        self.lost.fetch_add(bytes, Relaxed);
    }

    fn waits(&self, _: &str) {
        self.waits.fetch_add(1, Relaxed);
    }

    fn again(&self, _: &str, _: &FetchError, _: Duration) {
        self.again.fetch_add(1, Relaxed);
    }
}

/// Every file of the model below `path`, the same as at the hub.
pub(crate) fn same_bytes(fetched: &Path, original: &Path) -> bool {
    let parts = |first: &Path| motley_model::ModelSpec::open(first).expect("a model").1.paths;
    let pairs = parts(fetched).into_iter().zip(parts(original));
    pairs
        .into_iter()
        .all(|(a, b)| std::fs::read(a).expect("bytes") == std::fs::read(b).expect("bytes"))
}

/// Files below a folder whose name ends so.
pub(crate) fn ending(folder: &Path, end: &str) -> Vec<PathBuf> {
    let (mut found, mut rest) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = rest.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type().expect("a kind").is_dir() {
                true => rest.push(entry.path()),
                false if entry.path().to_string_lossy().ends_with(end) => found.push(entry.path()),
                false => {}
            }
        }
    }
    found
}
