//! A local hub with a model, and `motley` in an environment of its own that knows it.

use motley_testkit::gguf_source::Tokenizer;
use motley_testkit::hub::{Hub, sha256};
use motley_testkit::synth::{Arch, Preset, Request, Shape, generate};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// The repository of every test, and a model in it.
pub(crate) const REPO: &str = "owner/Small-GGUF";
pub(crate) const NAME: &str = "owner/Small-GGUF:Q4_0";
/// Parts of the model that is split.
pub(crate) const PARTS: u32 = 20;

/// A hub, its models, and a cache.
pub(crate) struct World {
    pub(crate) hub: Hub,
    pub(crate) folder: TempDir,
    /// First part of the model.
    pub(crate) model: PathBuf,
}

impl World {
    /// With a model in twenty parts of about `part_mb` MB each.
    pub(crate) fn split(part_mb: usize) -> Self {
        Self::with(PARTS, part_mb)
    }

    /// With a model of 6 MB in one file.
    pub(crate) fn small() -> Self {
        Self::with(1, 1)
    }

    fn with(parts: u32, part_mb: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let model = model(&folder.path().join("models"), parts, part_mb);
        let hub = Hub::start().expect("a port");
        hub.add_model(REPO, "small-Q4_0", &model).expect("a model");
        Self { hub, folder, model }
    }

    /// `motley` with this hub and cache, and nothing of the user's.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_motley"));
        self.environment(&mut command).args(args);
        command
    }

    /// Sets the variables of a command.
    pub(crate) fn environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let cache = self.folder.path().join("cache");
        for unset in ["HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN", "HF_TOKEN_PATH"] {
            command.env_remove(unset);
        }
        command
            .env("HF_ENDPOINT", self.hub.endpoint())
            .env("HF_HOME", cache.join("hf"))
            .env("MOTLEY_CACHE", cache.join("motley"))
            .env("MOTLEY_STATE", cache.join("state"))
            .env("MOTLEY_CONFIG", cache.join("config"))
            .env("CI", "true")
    }

    pub(crate) fn motley(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("motley starts")
    }

    /// As [`World::motley`]; what it says, if it succeeds.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.motley(&[args, &["--json"]].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    /// As [`World::motley`]; what it says when it fails, as it must.
    pub(crate) fn refused(&self, args: &[&str]) -> String {
        let output = self.motley(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8(output.stderr).expect("text")
    }

    /// The folder of the repository in the cache.
    pub(crate) fn cached(&self) -> PathBuf {
        self.folder.path().join("cache/hf/hub/models--owner--Small-GGUF")
    }

    /// Whole blobs and those that are not, with their names.
    pub(crate) fn blobs(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let entries = std::fs::read_dir(self.cached().join("blobs")).into_iter().flatten();
        let paths = entries.flatten().map(|entry| entry.path());
        paths.partition(|path| path.extension().is_none())
    }

    /// Checks that what has its final name is right.
    pub(crate) fn check_blobs(&self) -> usize {
        let (whole, _) = self.blobs();
        for blob in &whole {
            let name = blob.file_name().expect("a name").to_string_lossy().into_owned();
            assert_eq!(sha256(blob).expect("bytes"), name);
        }
        whole.len()
    }

    /// Bytes in the cache, of blobs whole or not.
    pub(crate) fn bytes_here(&self) -> u64 {
        let (whole, parts) = self.blobs();
        whole.iter().chain(&parts).filter_map(|blob| Some(blob.metadata().ok()?.len())).sum()
    }

    /// Bytes of the model at the hub.
    pub(crate) fn model_bytes(&self) -> u64 {
        let folder = self.model.parent().expect("a folder");
        let files = std::fs::read_dir(folder).expect("a folder").flatten();
        files.map(|file| file.metadata().expect("a file").len()).sum()
    }
}

/// A model of random weights with the smallest tokenizer there is.
fn model(folder: &Path, parts: u32, part_mb: usize) -> PathBuf {
    let mut request = Request::of_preset(Preset::Test(Arch::Qwen3moe));
    request.shards = parts;
    // Some 1.8 MB of experts a layer; from 50 MB a part on, 57 MB.
    request.shape = match (parts, part_mb) {
        (1, _) => request.shape,
        (_, mb) if mb < 50 => Shape { layers: 10 * mb as u64, ..request.shape },
        (_, mb) => {
            Shape { layers: 18 * mb as u64 / 50, hidden: 1024, experts: 128, ..request.shape }
        }
    };
    std::fs::create_dir_all(folder).expect("a folder");
    let out = folder.join("model.gguf");
    let written = generate(&request, &Tokenizer::of_bytes(), &out, &mut |_| {});
    written.expect("a model").path
}
