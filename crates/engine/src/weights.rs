//! Where llama.cpp gets a model's weights from: left in the mapped files, read through a header of
//! our own, or left on disk. Opens nothing: the files are those whose headers were read.

use crate::layouts::layout_of;
use motley_ggml::{
    LaidOutSource, LaidOutWeights, MappedWeights, MatrixShape, Nodes, ReadCounts, Runtime, Seam,
    Stays, VirtualFile, Weights,
};
use motley_model::gguf::{GgmlType, LayoutError, VirtualLayout};
use motley_model::{ModelFiles, ModelSpec, OpenedFile, Role, Sizes, read_exact_at};
use motley_plan::cores::NodeShare;
use motley_plan::{ExpertKernels, Loading};
use motley_store::{MapError, MappedFiles};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Why weights cannot be had from a model's files.
#[derive(Debug, thiserror::Error)]
pub enum WeightsError {
    /// The files cannot be presented as one.
    #[error("{}: {source}", path.display())]
    Layout { path: PathBuf, source: LayoutError },
    /// A handle cannot be had a second time.
    #[error("{}: {source}", path.display())]
    Handle { path: PathBuf, source: std::io::Error },
    /// The files cannot be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
}

/// What decides it.
pub(crate) struct WeightSource {
    pub(crate) runtime: Runtime,
    pub(crate) loading: Loading,
    /// llama.cpp rearranges weights: whatever it takes is copied, so everything is read.
    pub(crate) repack: bool,
    /// How experts are laid out, when they are.
    pub(crate) experts: Option<ExpertPlan>,
    pub(crate) gpu_layers: u32,
    pub(crate) gpu_experts: bool,
}

/// How experts are laid out: by how many threads, on which memory nodes.
pub(crate) struct ExpertPlan {
    pub(crate) kernels: ExpertKernels,
    pub(crate) threads: usize,
    pub(crate) nodes: Option<Arc<Nodes>>,
}

impl WeightSource {
    /// The weights of `files`, and their mapping if somebody computes or copies from it.
    pub(crate) fn weights(
        &self,
        spec: &Arc<ModelSpec>,
        files: &ModelFiles,
    ) -> Result<(Weights, Option<MappedFiles>), WeightsError> {
        if self.loading == Loading::OnDemand {
            let file = virtual_file(spec, files, left_on_disk)?.forgetting();
            return Ok((Weights::Reserved(file), None));
        }
        if self.runtime.seam() == Seam::Absent {
            return Ok((Weights::Bare(files.paths[0].clone()), None));
        }
        if let Some(plan) = self.experts.as_ref().filter(|_| self.lays_out(spec)) {
            let experts = Some(expert_source(spec, files, plan)?);
            let file = virtual_file(spec, files, left_on_disk)?;
            return Ok((Weights::LaidOut(LaidOutWeights { file, experts }), None));
        }
        if self.repack || self.gpu_experts {
            return Ok((Weights::Read(virtual_file(spec, files, unused)?), None));
        }
        let stays = if self.gpu_layers > 0 { Stays::Experts } else { Stays::All };
        let (source, bytes) = (layout(files)?, MappedFiles::map(&files.opened)?);
        let mapped = MappedWeights::new(Arc::clone(spec), source, bytes.clone(), stays);
        Ok((Weights::Mapped(mapped), Some(bytes)))
    }

    /// Experts that llama.cpp computes on a GPU are its own business.
    fn lays_out(&self, spec: &ModelSpec) -> bool {
        spec.is_moe() && !self.gpu_experts
    }
}

/// Where experts come from, and in which layout each tensor goes.
fn expert_source(
    spec: &ModelSpec,
    files: &ModelFiles,
    plan: &ExpertPlan,
) -> Result<LaidOutSource, WeightsError> {
    let experts = spec.tensors.iter().filter(|tensor| tensor.role.is_expert_matrix());
    let places: HashMap<_, _> = experts.map(|tensor| (tensor.name.clone(), tensor.range)).collect();
    let bytes: u64 = places.values().map(|range| range.len_bytes).sum();
    let handles = files.opened.iter().map(handle).collect::<Result<Vec<_>, _>>()?;
    let read = move |name: &str, expert: usize, bytes: &mut [u8]| {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let range = places.get(name).ok_or_else(missing)?;
        let file = handles.get(range.file).ok_or_else(missing)?;
        read_exact_at(file, bytes, range.offset + (expert * bytes.len()) as u64)
    };
    let kernels = plan.kernels.clone();
    Ok(LaidOutSource {
        choose: Box::new(move |_, shape: &MatrixShape| layout_of(kernels.layout(shape.ty))),
        read: Box::new(read),
        threads: plan.threads,
        nodes: plan.nodes.clone(),
        share: bytes as f32 / Sizes::of(spec).total_bytes.max(1) as f32,
    })
}

/// Memory nodes of the plan, as ggml's memory knows them.
pub(crate) fn nodes_of(shares: &[NodeShare]) -> Option<Arc<Nodes>> {
    let share = |share: &NodeShare| motley_ggml::NodeShare {
        id: share.id,
        cpus: share.cpus.clone(),
        part: share.part,
    };
    Nodes::new(shares.iter().map(share).collect()).map(Arc::new)
}

/// Experts without their model: their matrices left on disk, their biases and scales read, zeros
/// for everything else.
pub(crate) fn experts_alone(spec: &ModelSpec, files: &ModelFiles) -> Result<Weights, WeightsError> {
    let skipped = |role| !matches!(role, Role::Routed { .. }) || left_on_disk(role);
    Ok(Weights::Experts(virtual_file(spec, files, skipped)?.forgetting()))
}

/// What is read while experts are left on disk.
pub(crate) fn dense_reads(weights: &Weights) -> Option<Arc<ReadCounts>> {
    match weights {
        Weights::Reserved(file) => Some(file.counts()),
        _ => None,
    }
}

/// The files as one, without the bytes of tensors whose role is `skipped`.
fn virtual_file(
    spec: &ModelSpec,
    files: &ModelFiles,
    skipped: impl Fn(Role) -> bool,
) -> Result<VirtualFile, WeightsError> {
    let (layout, handles) = layout(files)?;
    let skipped = spec.tensors.iter().map(|tensor| skipped(tensor.role)).collect();
    Ok(VirtualFile::new(layout, handles, skipped))
}

fn layout(files: &ModelFiles) -> Result<(VirtualLayout, Vec<File>), WeightsError> {
    let path = &files.paths[0];
    let layout =
        files.layout().map_err(|source| WeightsError::Layout { path: path.clone(), source })?;
    Ok((layout, files.opened.iter().map(handle).collect::<Result<_, _>>()?))
}

fn handle(file: &OpenedFile) -> Result<File, WeightsError> {
    let failed = |source| WeightsError::Handle { path: file.path().into(), source };
    file.file().try_clone().map_err(failed)
}

/// Expert matrices are read on demand; predictor layers are not run at all.
fn left_on_disk(role: Role) -> bool {
    role.is_expert_matrix() || unused(role)
}

/// Predictor layers are not run at all.
fn unused(role: Role) -> bool {
    matches!(role, Role::Predictor { .. })
}

/// llama.cpp's AMX buffers take the two absorbed projections of latent attention
/// (`attn_k_b`, `attn_v_b`) and then find no way to multiply with them: the process
/// would be ended by an assertion (ggml-backend.cpp). Such models stay as they are.
pub(crate) fn may_rearrange(spec: &ModelSpec) -> bool {
    let amx = motley_ggml::cpu::built_features().iter().any(|name| name == "AMX_INT8");
    let absorbed = |name: &str| name.ends_with("_k_b.weight") || name.ends_with("_v_b.weight");
    let plain = |ty| matches!(ty, GgmlType::F32 | GgmlType::BF16);
    !amx || spec.tensors.iter().all(|tensor| !absorbed(&tensor.name) || plain(tensor.ty))
}
