//! Clones of a block run by the CPU backend: their data in scratch of this process,
//! rows in, rows out.

use super::clone::{CloneError, Clones, PackedShape, Stands, packed_bytes};
use super::graph::Graph;
use crate::api;
use crate::seam::arena_weight::ArenaWeight;
use crate::seam::block::ExpertBlock;

/// ggml's kernels load whole cache lines.
const ALIGNMENT_BYTES: usize = 64;

/// Reusable clones with their data and a graph.
#[derive(Default)]
pub(crate) struct CpuClones {
    graph: Option<Graph>,
    clones: Clones,
    data: Vec<Line>,
}

/// One aligned line of scratch.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub(crate) struct Line(
    #[allow(dead_code, reason = "read and written by ggml")] [u8; ALIGNMENT_BYTES],
);

/// Clones ready to run; rows go in, rows come out.
pub(crate) struct Packed<'c> {
    graph: *mut api::ggml_cgraph,
    input: *mut api::ggml_tensor,
    output: *mut api::ggml_tensor,
    scratch: std::marker::PhantomData<&'c mut CpuClones>,
}

impl CpuClones {
    /// Clones `block` for `shape.rows` rows with `weights` (in the block's order);
    /// `expert_ids` name each row's expert for biases, which stay where they are.
    pub(crate) fn build(
        &mut self,
        block: &ExpertBlock<'_>,
        shape: PackedShape,
        weights: &mut [ArenaWeight],
        expert_ids: &mut api::ggml_tensor,
    ) -> Result<Packed<'_>, CloneError> {
        let originals = block.matrices().map(|matrix| matrix.raw());
        let tensors: Vec<_> =
            originals.zip(weights.iter_mut()).map(|(raw, w)| (raw, &raw mut w.stack)).collect();
        let slot_ids: Vec<_> = weights.iter_mut().map(|weight| &raw mut weight.ids).collect();
        let expert_ids = &raw mut *expert_ids;
        let ids = |node| block.matmul_index(node).map_or(expert_ids, |index| slot_ids[index]);
        let stands = Stands { tensors: &tensors, ids: &ids, outside: true };
        self.clones.build(block, shape, &stands)?;
        place_data(self.clones.tensors_mut(), &mut self.data);
        let graph = self.graph.get_or_insert_with(Graph::new);
        let tensors = self.clones.tensors_mut();
        let output = graph.refill(tensors);
        let input = tensors.as_mut_ptr();
        Ok(Packed { graph: graph.raw(), input, output, scratch: std::marker::PhantomData })
    }
}

impl Packed<'_> {
    /// Row the experts read.
    pub(crate) fn input_row(&mut self, row: usize) -> &mut [f32] {
        // SAFETY: the input is ours, F32, one contiguous row per index, and no other
        // reference to this row is alive while the caller fills it.
        unsafe { row_mut(self.input, row) }
    }

    /// Row they wrote.
    pub(crate) fn output_row(&self, row: usize) -> &[f32] {
        // SAFETY: as `input_row`; nobody writes it after the computation.
        unsafe { row_mut(self.output, row) }
    }

    pub(crate) fn graph(&self) -> *mut api::ggml_cgraph {
        self.graph
    }
}

/// # Safety
/// `tensor` must be a live packed F32 tensor, and the row not be borrowed elsewhere.
unsafe fn row_mut<'t>(tensor: *mut api::ggml_tensor, row: usize) -> &'t mut [f32] {
    // SAFETY: by the caller, with the index checked here.
    unsafe {
        assert!(row < (*tensor).ne[2] as usize);
        let start = (*tensor).data.byte_add(row * (*tensor).nb[2]);
        std::slice::from_raw_parts_mut(start.cast(), (*tensor).ne[0] as usize)
    }
}

/// Gives every tensor that is not a view its own aligned piece of scratch.
pub(crate) fn place_data(tensors: &mut [api::ggml_tensor], data: &mut Vec<Line>) {
    let lines = |tensor: &api::ggml_tensor| packed_bytes(tensor).div_ceil(ALIGNMENT_BYTES);
    let owners = tensors.iter().filter(|tensor| tensor.view_src.is_null());
    let total: usize = owners.map(lines).sum();
    if data.len() < total {
        data.resize(total, Line([0; ALIGNMENT_BYTES]));
    }
    let mut next = 0;
    for tensor in tensors {
        if tensor.view_src.is_null() {
            tensor.data = data[next..].as_mut_ptr().cast();
            next += lines(tensor);
        } else {
            // SAFETY: the parent is an earlier clone, placed already.
            tensor.data = unsafe { (*tensor.view_src).data.byte_add(tensor.view_offs) };
        }
    }
}
