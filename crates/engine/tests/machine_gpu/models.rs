//! The models of these tests, and copies of them with floats for quantised numbers; each with what
//! the CPU alone says.

use crate::run::{Apart, Course, again_on_cpu, on_cpu};
use crate::support::as_floats;
use motley_model::gguf::{GgmlType, TensorInfo};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A model and the CPU's answer.
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) cpu: Course,
    /// Of a copy.
    _folder: Option<TempDir>,
}

impl Subject {
    /// With as many tokens.
    pub(crate) fn new(path: &Path, tokens: usize) -> Self {
        Self::of(path.into(), None, |path| on_cpu(path, tokens))
    }

    /// A copy with floats for everything, and as many tokens.
    pub(crate) fn as_floats(path: &Path, tokens: usize) -> Self {
        let (folder, copy) = copy(path, "floats", |_| true);
        Self::of(copy, Some(folder), |path| on_cpu(path, tokens))
    }

    fn of(path: PathBuf, folder: Option<TempDir>, run: impl Fn(&Path) -> Course) -> Self {
        let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
        Self { name, cpu: run(&path), path, _folder: folder }
    }
}

/// The model with floats for the tensors `takes` says, in a folder of its own.
fn copy(path: &Path, kind: &str, takes: impl Fn(&TensorInfo) -> bool) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let stem = path.file_stem().expect("a file").to_string_lossy();
    let to = folder.path().join(format!("{stem}-{kind}.gguf"));
    as_floats(path, &to, |tensor| tensor.ty != GgmlType::F32 && takes(tensor));
    (folder, to)
}

/// Two copies of a model: one with floats for everything but its experts, so that nothing else
/// rounds, and one with floats for everything.
pub(crate) struct Floats {
    pub(crate) quantised_experts: Subject,
    /// With the CPU's answer after the same tokens: no kernel rounds, so it is the right one.
    pub(crate) all: Subject,
    /// How far the CPU is from it beside quantised experts.
    pub(crate) rounding: Apart,
}

impl Floats {
    pub(crate) fn of(path: &Path, tokens: usize) -> Self {
        let (folder, experts) = copy(path, "quantised-experts", |t| !t.name.contains("_exps."));
        let quantised_experts = Subject::of(experts, Some(folder), |path| on_cpu(path, tokens));
        let (folder, all) = copy(path, "floats", |_| true);
        let said = &quantised_experts.cpu.tokens;
        let all = Subject::of(all, Some(folder), |path| again_on_cpu(path, said));
        let rounding = Apart::of(&all.cpu, &quantised_experts.cpu);
        Self { quantised_experts, all, rounding }
    }
}
