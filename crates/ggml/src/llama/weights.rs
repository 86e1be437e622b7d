//! Where a model's weights come from, and which memory llama.cpp is told to put them in. Loads
//! nothing.

use super::vfile::VirtualFile;
use crate::layout::memory::{ChooseLayout, LaidOutMemory, ReadExpert};
use crate::layout::nodes::Nodes;
use crate::seam::device;
use crate::seam::mapped::MappedMemory;
use crate::seam::zeros::ZeroMemory;
use llama_cpp_sys_2 as sys;
use motley_model::ModelSpec;
use motley_model::gguf::VirtualLayout;
use motley_store::MappedFiles;
use std::ffi::CStr;
use std::fs::File;
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// Names of the stacked expert matrices, as llama.cpp's regular expressions have it.
const ROUTED_MATRICES: &CStr = c"ffn_(gate|up|down|gate_up)_exps\\.weight$";
/// Everything the operations of a block read: a bias on a GPU would draw its `ADD_ID` there and
/// cut the block.
const ROUTED_EXPERTS: &CStr = c"ffn_(gate|up|down|gate_up)_exps\\.";
/// The same for [`is_routed`].
const ROUTED_NAMES: [&str; 4] =
    ["ffn_gate_exps.", "ffn_up_exps.", "ffn_down_exps.", "ffn_gate_up_exps."];
/// Every tensor.
const ALL_TENSORS: &CStr = c".*";

/// Where the bytes come from.
#[derive(Debug)]
pub enum Weights {
    /// llama.cpp opens, reads and maps the file by itself (and its other parts, when split): the
    /// bare engine, for comparison.
    Bare(PathBuf),
    /// Weights stay where they lie in the mapped files. Not together with
    /// [`super::ModelOptions::repack`].
    Mapped(MappedWeights),
    /// llama.cpp reads a virtual file into memory of its own.
    Read(VirtualFile),
    /// As `Read`, with the routed experts rearranged into memory of ours, in layouts that are
    /// chosen tensor by tensor.
    LaidOut(LaidOutWeights),
    /// As `Read`, with the routed experts in reserved address space, unread: an
    /// executor fills them. The virtual file should skip their bytes.
    Reserved(VirtualFile),
    /// Zeros that take no memory, whatever the virtual file holds: a header without its weights.
    /// Not together with [`super::ModelOptions::repack`].
    Zeros(VirtualFile),
    /// As `Reserved` for the matrices of routed experts, and zeros that take no memory for all that
    /// is no part of an expert: experts without their model. The virtual file should skip both.
    Experts(VirtualFile),
}

/// A model's mapped files, and the virtual file without what stays in them.
#[derive(Debug)]
pub struct MappedWeights {
    file: VirtualFile,
    spec: Arc<ModelSpec>,
    files: MappedFiles,
    stays: Stays,
}

/// A virtual file without its routed experts, and where they come from.
#[derive(Debug)]
pub struct LaidOutWeights {
    /// Skips the matrices of routed experts.
    pub file: VirtualFile,
    /// `None` once they were taken out.
    pub experts: Option<LaidOutSource>,
}

/// Experts to be read and rearranged.
pub struct LaidOutSource {
    /// Which layout a tensor gets; one it cannot have becomes plain.
    pub choose: Box<ChooseLayout>,
    /// Reads an expert.
    pub read: Box<ReadExpert>,
    /// Threads that read and rearrange.
    pub threads: usize,
    /// The memory nodes they are divided among; `None` leaves their places to the system.
    pub nodes: Option<Arc<Nodes>>,
    /// Their part of the bytes, for progress.
    pub share: f32,
}

impl std::fmt::Debug for LaidOutSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LaidOutSource").field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// What stays in the mapped files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stays {
    /// Every tensor.
    All,
    /// Routed experts; the others are read, to GPUs or into memory.
    Experts,
}

impl MappedWeights {
    /// The model `spec` whose `layout` is over `handles`, mapped as `files`.
    pub fn new(
        spec: Arc<ModelSpec>,
        (layout, handles): (VirtualLayout, Vec<File>),
        files: MappedFiles,
        stays: Stays,
    ) -> Self {
        // What is skipped here must go to the mapped memory in `overrides`, and does: both go by
        // the same names.
        let skip = |name: &str| stays == Stays::All || is_routed(name);
        let skipped = spec.tensors.iter().map(|tensor| skip(&tensor.name)).collect();
        Self { file: VirtualFile::new(layout, handles, skipped), spec, files, stays }
    }

    pub(super) fn into_file(self) -> VirtualFile {
        self.file
    }
}

impl Weights {
    /// The memory that mapped weights are in, if they are. `None` when the system refuses it.
    #[allow(clippy::option_option, reason = "refused, or not asked for")]
    pub(super) fn mapped(&self) -> Option<Option<MappedMemory>> {
        let Self::Mapped(MappedWeights { spec, files, .. }) = self else { return Some(None) };
        MappedMemory::new(spec, files.clone()).map(Some)
    }

    /// What llama.cpp reads, and the experts that are laid out afterwards, if any.
    pub(super) fn without_experts(mut self) -> (Self, Option<LaidOutSource>) {
        let experts = match &mut self {
            Self::LaidOut(weights) => weights.experts.take(),
            _ => None,
        };
        (self, experts)
    }

    /// The memory that zeros are in, if weights are.
    pub(super) fn zeros(&self) -> Option<ZeroMemory> {
        matches!(self, Self::Zeros(_) | Self::Experts(_)).then(ZeroMemory::new)
    }

    /// Which tensors go to memory that we name; llama.cpp places the others. Ends with an empty
    /// one. `None` when experts are to be reserved and the device is not registered.
    pub(super) fn overrides(
        &self,
        Memories { mapped, laid_out, zeros }: Memories<'_>,
        experts_in_memory: bool,
    ) -> Option<Vec<sys::llama_model_tensor_buft_override>> {
        // The first that fits a tensor's name counts.
        let mut overrides = Vec::new();
        let mut add = |pattern: &CStr, buft| {
            overrides
                .push(sys::llama_model_tensor_buft_override { pattern: pattern.as_ptr(), buft });
        };
        match (self, mapped) {
            (Self::Reserved(_), _) => add(ROUTED_MATRICES, device::reserved_buffer_type()?),
            (Self::Experts(_), _) => {
                add(ROUTED_MATRICES, device::reserved_buffer_type()?);
                // SAFETY: returns a static of ggml's.
                add(ROUTED_EXPERTS, unsafe { sys::ggml_backend_cpu_buffer_type() });
            }
            (Self::Mapped(MappedWeights { stays, .. }), Some(mapped)) => match stays {
                Stays::All => add(ALL_TENSORS, mapped.buffer_type()),
                Stays::Experts => add(ROUTED_EXPERTS, mapped.buffer_type()),
            },
            _ => {}
        }
        if let Some(laid_out) = laid_out {
            add(ROUTED_MATRICES, laid_out.buffer_type());
        }
        if let Some(zeros) = zeros {
            add(ALL_TENSORS, zeros.buffer_type());
        }
        if experts_in_memory {
            // SAFETY: returns a static of ggml's.
            add(ROUTED_EXPERTS, unsafe { sys::ggml_backend_cpu_buffer_type() });
        }
        overrides.push(sys::llama_model_tensor_buft_override { pattern: null(), buft: null_mut() });
        Some(overrides)
    }
}

/// Memory of ours that weights are in.
#[derive(Clone, Copy)]
pub(super) struct Memories<'m> {
    pub(super) mapped: Option<&'m MappedMemory>,
    pub(super) laid_out: Option<&'m LaidOutMemory>,
    pub(super) zeros: Option<&'m ZeroMemory>,
}

/// What [`ROUTED_EXPERTS`] finds.
fn is_routed(name: &str) -> bool {
    ROUTED_NAMES.iter().any(|part| name.contains(part))
}
