//! The models of these tests, and copies of them with floats for quantised numbers; each with what
//! the CPU alone says.

use crate::run::{Apart, Course, again_on_cpu, on_cpu};
use crate::support::as_floats;
use motley_model::gguf::GgmlType;
use std::path::{Path, PathBuf};

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
