//! The checkers, and the commands each consists of. Runs nothing.

use crate::workspace_root;
use std::path::PathBuf;
use std::process::Command;

/// The one target whose sanitizers are used.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// Seeds of Miri's own scheduler: as many orders of threads.
const MIRI_SEEDS: u32 = 4;

/// Times every property is tried, each time with other values.
const PROPERTY_ROUNDS: usize = 20;
/// Crates of judgement and of files: their tests of properties need no model, and no llama.cpp.
const PROPERTIES: &[&str] = &[
    "-p",
    "motley-cost",
    "-p",
    "motley-model",
    "-p",
    "motley-plan",
    "-p",
    "motley-profile",
    "-p",
    "motley-sched",
    "-p",
    "motley-sim",
    "-p",
    "motley-store",
    "-p",
    "motley-trace",
];

/// What runs under a sanitizer: everything of the store and the seam, and of the engine what shares
/// memory between threads or with files that change.
const SANITIZED: &[&str] = &[
    "-p",
    "motley-store",
    "-p",
    "motley-ggml",
    "-p",
    "motley-engine",
    "--lib",
    "--test",
    "store",
    "--test",
    "board",
    "--test",
    "two_sessions",
    "--test",
    "changed_files",
    "--test",
    "batching",
];

/// A checker of threads, of memory, or of properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Checker {
    /// Every order of threads of small scenarios: the read queue, the arena, the board.
    Loom,
    /// Tests of properties with new random values; CI tries the same ones every time.
    Properties,
    /// Undefined behaviour and data races of the store, interpreted (nightly).
    Miri,
    /// Memory errors of the seam, ggml and llama.cpp (nightly, clang).
    Asan,
    /// Data races of the seam, ggml and llama.cpp (nightly, clang).
    Tsan,
}

impl Checker {
    /// As the command line has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loom => "loom",
            Self::Properties => "properties",
            Self::Miri => "miri",
            Self::Asan => "asan",
            Self::Tsan => "tsan",
        }
    }

    /// What it runs, one after another.
    pub(super) fn commands(self) -> Vec<Command> {
        match self {
            Self::Loom => loom(),
            Self::Properties => (0..PROPERTY_ROUNDS).map(|_| self.properties()).collect(),
            Self::Miri => vec![self.miri()],
            Self::Asan => vec![self.sanitizer("address")],
            Self::Tsan => vec![self.sanitizer("thread")],
        }
    }

    fn properties(self) -> Command {
        let mut command = cargo(&["test", "--release", "--locked", "--quiet"]);
        command.args(PROPERTIES).env_remove("PROPTEST_RNG_SEED");
        command.env("CARGO_TARGET_DIR", self.target_folder());
        command
    }

    fn miri(self) -> Command {
        let mut command = cargo(&["+nightly", "miri", "test", "-p", "motley-store"]);
        command.args(["--lib", "--test", "store", "--", "schedules", "leases"]);
        // Not isolated: the property tests look for their recorded failures in files.
        let flags = "-Zmiri-strict-provenance -Zmiri-disable-isolation -Zmiri-many-seeds=0..";
        command.env("MIRIFLAGS", format!("{flags}{MIRI_SEEDS}"));
        command.env("PROPTEST_CASES", "4").env("CARGO_TARGET_DIR", self.target_folder());
        command
    }

    /// llama.cpp's objects are instrumented by clang and linked with the runtime of rustc's LLVM,
    /// which is younger and knows all they call.
    fn sanitizer(self, kind: &str) -> Command {
        let mut command = cargo(&["+nightly", "test", "--release", "--locked", "-Zbuild-std"]);
        command.args(["--target", TARGET]).args(SANITIZED);
        let instrumented = format!("-fsanitize={kind} -fno-omit-frame-pointer -g1");
        for language in ["CFLAGS", "CXXFLAGS"] {
            command.env(format!("{language}_{}", TARGET.replace('-', "_")), &instrumented);
        }
        let unless_set = |name: &str, value: &str| std::env::var(name).unwrap_or(value.to_owned());
        command.env("CC", unless_set("CC", "clang-16")).env("CXX", unless_set("CXX", "clang++-16"));
        let frames = "-Ctarget-cpu=native -Cforce-frame-pointers=yes";
        command.env("RUSTFLAGS", format!("-Zsanitizer={kind} {frames}")).env("CPATH", "");
        let list = |name: &str| workspace_root().join("build/sanitizers").join(name);
        let leaks = list("leaks.txt").display().to_string();
        let races = list("races.txt").display().to_string();
        command.env("LSAN_OPTIONS", format!("suppressions={leaks}"));
        command.env("TSAN_OPTIONS", format!("suppressions={races}:exitcode=66"));
        command.env("CARGO_TARGET_DIR", self.target_folder());
        command
    }

    /// A folder of its own below the usual one: other flags, other objects.
    fn target_folder(self) -> PathBuf {
        let usual = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let usual = usual.unwrap_or_else(|| workspace_root().join("target"));
        usual.join(format!("check-{}", self.name()))
    }
}

/// In the usual folder, and the engine as part of the whole workspace: then llama.cpp is the one
/// that was built before.
fn loom() -> Vec<Command> {
    let test = ["test", "--release", "--locked"];
    let store = ["-p", "motley-store", "--features", "loom", "--lib", "--", "schedules"];
    let engine = ["--workspace", "--features", "motley-engine/loom", "--test", "board", "--"];
    let of = |rest: &[&str]| cargo(&[&test[..], rest, &["--nocapture"]].concat());
    vec![of(&store), of(&engine)]
}

/// By rustup's name: the cargo that runs this program knows no `+nightly`.
fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    // Set by the cargo that started this program, for its own toolchain.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").args(args);
    command
}
