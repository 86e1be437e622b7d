//! What is run: the targets there are, their limits, and how long.

use crate::workspace_root;
use std::path::PathBuf;

/// What to do.
#[derive(Debug, Clone)]
pub struct Fuzz {
    /// Which targets.
    pub targets: Vec<&'static Target>,
    /// How long each.
    pub seconds: u64,
    /// Targets at a time.
    pub jobs: usize,
    /// The program that `loader` gives files to.
    pub motley: PathBuf,
    /// Where targets are built, apart from everything built with other flags.
    pub build_folder: PathBuf,
}

/// One fuzz target, and what an input of it may be and take.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    /// Its program.
    pub name: &'static str,
    /// Longest input.
    pub(super) input_bytes: usize,
    /// Longest time for one input: an input that takes longer is a crash.
    pub(super) input_seconds: u64,
    /// Most memory of the process, and an input that takes it over is a crash.
    pub(super) memory_mib: u64,
}

/// Every target of `fuzz/Cargo.toml`. Instrumented code is slower and keeps counters, so limits are
/// above those of the product: a template has 10 s and 256 MiB of texts, a schema 5 s.
pub const TARGETS: [Target; 10] = [
    Target { name: "gguf", input_bytes: 1 << 16, input_seconds: 10, memory_mib: 1024 },
    Target { name: "split", input_bytes: 1 << 16, input_seconds: 10, memory_mib: 1024 },
    Target { name: "tool_calls", input_bytes: 1 << 12, input_seconds: 10, memory_mib: 1024 },
    Target { name: "templates", input_bytes: 1 << 13, input_seconds: 25, memory_mib: 2048 },
    Target { name: "schema", input_bytes: 1 << 12, input_seconds: 25, memory_mib: 2048 },
    Target { name: "readers", input_bytes: 1 << 16, input_seconds: 10, memory_mib: 1024 },
    Target { name: "http", input_bytes: 1 << 14, input_seconds: 25, memory_mib: 2048 },
    Target { name: "loader", input_bytes: 1 << 8, input_seconds: 120, memory_mib: 1024 },
    Target { name: "hub", input_bytes: 1 << 13, input_seconds: 10, memory_mib: 1024 },
    Target { name: "wire_frame", input_bytes: 1 << 13, input_seconds: 10, memory_mib: 1024 },
];

/// Those that llama.cpp, the server or a second reader of schemas is built for: feature `engine` of
/// `fuzz/Cargo.toml`.
const WITH_ENGINE: [&str; 4] = ["tool_calls", "templates", "schema", "http"];

impl Fuzz {
    /// Whether any of its targets does.
    pub(super) fn needs_engine(&self) -> bool {
        self.targets.iter().any(|target| target.needs_engine())
    }
}

impl Target {
    /// Whether most of the build is for such as this.
    pub fn needs_engine(&self) -> bool {
        WITH_ENGINE.contains(&self.name)
    }

    /// The target of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// What its inputs grow from.
    pub(super) fn corpus(&self) -> PathBuf {
        fuzz_folder().join("corpus").join(self.name)
    }

    /// Where inputs that failed are kept.
    pub(super) fn artifacts(&self) -> PathBuf {
        fuzz_folder().join("artifacts").join(self.name)
    }

    /// Words its format is made of, where it has any.
    pub(super) fn dictionary(&self) -> Option<PathBuf> {
        let path = fuzz_folder().join("dictionaries").join(format!("{}.dict", self.name));
        path.exists().then_some(path)
    }
}

/// The workspace of the targets.
pub(super) fn fuzz_folder() -> PathBuf {
    workspace_root().join("fuzz")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_of_the_workspace_is_run() {
        let text = std::fs::read_to_string(fuzz_folder().join("Cargo.toml")).expect("a manifest");
        let manifest: toml::Table = text.parse().expect("TOML");
        let bins = manifest["bin"].as_array().expect("programs");
        let name = |bin: &&toml::Value| bin["name"].as_str().expect("a name").to_owned();
        let names: Vec<_> = bins.iter().map(|bin| name(&bin)).collect();
        assert_eq!(names, TARGETS.map(|target| target.name));
        let with_engine = bins.iter().filter(|bin| bin.get("required-features").is_some());
        assert_eq!(with_engine.map(|bin| name(&bin)).collect::<Vec<_>>(), WITH_ENGINE);
    }
}
