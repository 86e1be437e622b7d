//! The models of these tests, and copies of them with floats for quantised numbers; each with what
//! the CPU alone says.

use crate::run::{Apart, Course, again_on_cpu, on_cpu};
use crate::support::as_floats;
use motley_model::gguf::GgmlType;
use std::path::{Path, PathBuf};
use xtask::synth::{Arch, Preset, Request};

/// A model and the CPU's answer.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) cpu: Course,
}

impl Subject {
    /// With as many tokens.
    pub(crate) fn new(path: &Path, tokens: usize) -> Self {
        let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
        Self { name, path: path.into(), cpu: on_cpu(path, tokens) }
    }
}

/// Two copies of a model: one with floats for everything but its experts, so that nothing else
/// rounds, and one with floats for everything.
pub(crate) struct Floats {
    pub(crate) quantised_experts: Subject,
    /// With the CPU's answer after the same tokens: no kernel rounds, so it is the right one.
    pub(crate) all: Subject,
    /// How far the CPU is from it beside quantised experts.
    pub(crate) rounding: Apart,
    _folder: tempfile::TempDir,
}

impl Floats {
    pub(crate) fn of(path: &Path, tokens: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let stem = path.file_stem().expect("a file").to_string_lossy();
        let [experts, all] = ["quantised-experts", "floats"]
            .map(|kind| folder.path().join(format!("{stem}-{kind}.gguf")));
        as_floats(path, &experts, |t| t.ty != GgmlType::F32 && !t.name.contains("_exps."));
        as_floats(path, &all, |t| t.ty != GgmlType::F32);
        let quantised_experts = Subject::new(&experts, tokens);
        let cpu = again_on_cpu(&all, &quantised_experts.cpu.tokens);
        let rounding = Apart::of(&cpu, &quantised_experts.cpu);
        let all = Subject { name: format!("{stem}-floats"), path: all, cpu };
        Self { quantised_experts, all, rounding, _folder: folder }
    }
}

/// A small model of this architecture; `None` when it cannot be made here.
pub(crate) fn synthetic(arch: Arch) -> Option<PathBuf> {
    dense()?;
    let request = Request::of_preset(Preset::Test(arch));
    Some(xtask::synth::ensure_cached(&request).expect("the model can be made"))
}

/// SmolLM2 with sixteen permuted copies of its own feed-forward networks as experts.
pub(crate) fn upcycled() -> Option<PathBuf> {
    let request = xtask::upcycle::Request { experts: 16, topk: 4, block: 32, seed: 0 };
    let path = xtask::upcycle::ensure_cached(&dense()?, &request);
    Some(path.expect("the model can be made"))
}

/// The trained model in one of its quantisations.
pub(crate) fn trained(kind: &str) -> Option<PathBuf> {
    let shared = std::env::var_os("MOTLEY_SHARED")
        .map_or_else(|| xtask::workspace_root().join("../shared"), PathBuf::from);
    let path = shared.join(format!("data/tiny-wiki-moe/tiny-wiki-moe-{kind}.gguf"));
    if !path.exists() {
        eprintln!("passing over: no {}", path.display());
    }
    path.exists().then_some(path)
}

fn dense() -> Option<PathBuf> {
    let path = xtask::smollm2::path().ok().filter(|path| path.exists());
    if path.is_none() {
        let required = std::env::var_os("MOTLEY_REQUIRE_MODELS").is_some();
        assert!(!required, "run `cargo xtask smollm2`");
        eprintln!("passing over: run `cargo xtask smollm2`");
    }
    path
}
