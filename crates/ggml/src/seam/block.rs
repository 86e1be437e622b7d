//! The routed-expert block as a typed value: what llama.cpp hands over per layer.
//! Looks at tensors; does not compute.
//!
//! ```text
//! hidden [n_embd, 1 or k, n_tokens] ─┬─ MUL_MAT_ID gate ─┐
//! ids    [k, n_tokens]               └─ MUL_MAT_ID up   ─┴─ between ─ MUL_MAT_ID down ─ output [n_embd, k, n_tokens]
//! ```
//!
//! `between` is whatever the architecture puts there (GLU variants, biases by
//! `ADD_ID`, clamps, scales); it is carried along, never interpreted.

use super::arena_weight::ArenaWeight;
use super::matrix::ExpertMatrix;
use super::{claim, reserve};
use crate::api;
use crate::api::numbers::op_of;
use crate::layout::memory;
use motley_model::{MAX_LAYERS, Matrix, Role, TensorPart};
use std::ffi::CStr;
use std::marker::PhantomData;

/// A block has at most gate, up (or gate_up) and down.
pub(crate) const MAX_MATRICES: usize = 3;

/// One layer's routed experts over one micro-batch. Valid inside
/// [`crate::BlockExecutor::execute`] only: the lifetime is that of the call.
pub struct ExpertBlock<'g> {
    graph: *mut api::ggml_cgraph,
    layer: u32,
    matmuls: [*mut api::ggml_tensor; MAX_MATRICES],
    matmul_count: usize,
    ids: *const api::ggml_tensor,
    hidden: *const api::ggml_tensor,
    output: *mut api::ggml_tensor,
    /// Where the bytes of `ids` and `hidden` are read ([`ExpertBlock::secure_inputs`]).
    ids_at: *const u8,
    hidden_at: *const u8,
    /// By (token, slot): rows computed elsewhere; empty when there are none.
    aside: Vec<bool>,
    call: PhantomData<&'g mut api::ggml_tensor>,
}

/// Why a split is not a block; shown by `motley run -v` next to the count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotABlock {
    /// No `MUL_MAT_ID`, or more than gate, up and down.
    #[error("expected 2 or 3 expert matmuls, found {0}")]
    MatmulCount(usize),
    /// The matmuls disagree about which experts are routed.
    #[error("the matmuls use different expert ids")]
    MixedIds,
    /// The entry matmuls read different hidden rows.
    #[error("the entry matmuls read different inputs")]
    MixedInputs,
    /// The last node is not the down projection or its bias.
    #[error("the split does not end with the down projection")]
    OpenEnd,
    /// A weight is not called `blk.N.…`.
    #[error("a weight has no layer number in its name")]
    NoLayer,
}

impl<'g> ExpertBlock<'g> {
    /// Recognises a block in the nodes of one split.
    ///
    /// # Safety
    /// `graph` and its tensors must stay live and untouched for `'g`.
    pub(crate) unsafe fn parse(graph: *mut api::ggml_cgraph) -> Result<Self, NotABlock> {
        let mut matmuls = [std::ptr::null_mut(); MAX_MATRICES];
        let mut count = 0;
        let mut last = std::ptr::null_mut();
        // SAFETY: the caller vouches for the graph; nodes of a live graph are live.
        unsafe {
            for index in 0..api::ggml_graph_n_nodes(graph) {
                let node = api::ggml_graph_node(graph, index);
                if claim::is_view_op((*node).op) {
                    continue;
                }
                last = node;
                if op_of((*node).op) == api::GGML_OP_MUL_MAT_ID {
                    if count < MAX_MATRICES {
                        matmuls[count] = node;
                    }
                    count += 1;
                }
            }
            if !(2..=MAX_MATRICES).contains(&count) {
                return Err(NotABlock::MatmulCount(count));
            }
            check_shape(&matmuls[..count], last)?;
            let first = matmuls[0];
            Ok(Self {
                graph,
                layer: claim::layer_of((*first).src[0]).ok_or(NotABlock::NoLayer)?,
                matmuls,
                matmul_count: count,
                ids: (*first).src[2],
                hidden: (*first).src[1],
                output: last,
                ids_at: (*(*first).src[2]).data.cast(),
                hidden_at: (*(*first).src[1]).data.cast(),
                aside: Vec::new(),
                call: PhantomData,
            })
        }
    }

    /// Copies ids and hidden rows to `kept` where they share memory with the output. ggml plans
    /// memory for operations that run one after the other: once the products of gate and up are
    /// there, nobody needs the hidden rows, and down may be written over them. Whoever computes
    /// some experts first needs them to the end.
    pub(crate) fn secure_inputs(&mut self, kept: &mut [Vec<u8>; 2]) {
        let [kept_ids, kept_hidden] = kept;
        // SAFETY: the tensors are live for `'g` and their bytes are host memory; the copies are
        // the caller's, who keeps them as long as the block.
        unsafe {
            if let Some(bytes) = shared_bytes(self.ids, self.output) {
                kept_ids.clear();
                kept_ids.extend_from_slice(bytes);
                self.ids_at = kept_ids.as_ptr();
            }
            if let Some(bytes) = shared_bytes(self.hidden, self.output) {
                kept_hidden.clear();
                kept_hidden.extend_from_slice(bytes);
                self.hidden_at = kept_hidden.as_ptr();
            }
        }
    }

    /// Layer number, from the weights' name.
    pub fn layer(&self) -> u32 {
        self.layer
    }

    /// Tokens in this micro-batch.
    pub fn tokens(&self) -> usize {
        // SAFETY: `ids` is live for `'g`.
        unsafe { (*self.ids).ne[1] as usize }
    }

    /// Experts per token (k).
    pub fn slots(&self) -> usize {
        // SAFETY: `ids` is live for `'g`.
        unsafe { (*self.ids).ne[0] as usize }
    }

    /// Experts of the layer.
    pub fn experts(&self) -> usize {
        // SAFETY: source 0 of a live MUL_MAT_ID is its live weight tensor.
        unsafe { (*(*self.matmuls[0]).src[0]).ne[2] as usize }
    }

    /// Expert chosen for (`token`, `slot`).
    pub fn expert(&self, token: usize, slot: usize) -> u32 {
        assert!(token < self.tokens() && slot < self.slots());
        // SAFETY: ids are I32 in host memory (the device accepts host activations
        // only), computed before this split, and the indices are in range.
        unsafe {
            let at = token * (*self.ids).nb[1] + slot * (*self.ids).nb[0];
            self.ids_at.add(at).cast::<i32>().read() as u32
        }
    }

    /// (token, slot, expert) of every row that is not set aside.
    pub fn rows(&self) -> impl Iterator<Item = (usize, usize, u32)> + Clone {
        let slots = self.slots();
        let rows = 0..self.tokens() * slots;
        let ours = rows.filter(|&row| self.aside.is_empty() || !self.aside[row]);
        let place = move |row| (row / slots, row % slots);
        ours.map(place).map(|(token, slot)| (token, slot, self.expert(token, slot)))
    }

    /// Leaves the row of (`token`, `slot`) to somebody who writes it later: no unit computes it.
    pub fn set_aside(&mut self, token: usize, slot: usize) {
        let (tokens, slots) = (self.tokens(), self.slots());
        assert!(token < tokens && slot < slots);
        self.aside.resize(tokens * slots, false);
        self.aside[token * slots + slot] = true;
    }

    /// Sets all rows aside but these, (token, slot) each.
    pub fn leave_only(&mut self, rows: &[(usize, usize)]) {
        let (tokens, slots) = (self.tokens(), self.slots());
        self.aside.clear();
        self.aside.resize(tokens * slots, true);
        for &(token, slot) in rows {
            assert!(token < tokens && slot < slots);
            self.aside[token * slots + slot] = false;
        }
    }

    /// Whether rows are set aside.
    pub fn has_aside(&self) -> bool {
        !self.aside.is_empty()
    }

    /// Hidden row the experts of `token` read, `[n_embd]`. With weights applied
    /// before the experts (llama4) rows differ by slot; `slot` selects.
    pub fn hidden_row(&self, token: usize, slot: usize) -> &[f32] {
        assert!(token < self.tokens() && slot < self.slots());
        // SAFETY: hidden is F32 in host memory, rows contiguous, indices in range;
        // ne[1] is 1 (shared by all slots) or k.
        unsafe {
            let h = &*self.hidden;
            let slot = if h.ne[1] == 1 { 0 } else { slot };
            let row = self.hidden_at.add(token * h.nb[2] + slot * h.nb[1]);
            std::slice::from_raw_parts(row.cast::<f32>(), h.ne[0] as usize)
        }
    }

    /// The stacked matrices, in graph order; down is last.
    pub fn matrices(&self) -> impl Iterator<Item = ExpertMatrix<'_>> {
        self.matmuls[..self.matmul_count]
            .iter()
            // SAFETY: source 0 of a live MUL_MAT_ID is its live weight tensor.
            .map(|&node| unsafe { ExpertMatrix::new((*node).src[0]) })
    }

    /// Whether its weights are reserved address space: nothing but zeros unless an executor brings
    /// the bytes from elsewhere.
    pub(crate) fn is_unread(&self) -> bool {
        // SAFETY: the weights of a live block are live, and so are their buffers.
        self.matrices().any(|matrix| unsafe {
            reserve::owns((*matrix.raw()).buffer) && memory::apart(matrix.raw()).is_none()
        })
    }

    /// Whether experts of some matrix are tensors of their own: no `MUL_MAT_ID` computes with them.
    pub fn is_apart(&self) -> bool {
        // SAFETY: as above.
        self.matrices().any(|matrix| unsafe { memory::apart(matrix.raw()).is_some() })
    }

    /// Rows of the output, `[n_embd]` floats each, one per (token, slot).
    pub fn output_rows(&self) -> usize {
        // SAFETY: `output` is live for `'g`.
        unsafe { ((*self.output).ne[1] * (*self.output).ne[2]) as usize }
    }

    /// Where the row of (`token`, `slot`) belongs, `[n_embd]`.
    pub(crate) fn output_row_mut(&mut self, token: usize, slot: usize) -> &mut [f32] {
        // SAFETY: the output is F32 in host memory, `[n_embd, k, tokens]`, rows
        // contiguous, indices in range, and the block is borrowed mutably.
        unsafe {
            let width = (*self.output).ne[0] as usize;
            std::slice::from_raw_parts_mut(self.output_row_place(token, slot), width)
        }
    }

    /// The row of (`token`, `slot`) as it is now, `[n_embd]`.
    pub fn output_row(&self, token: usize, slot: usize) -> &[f32] {
        // SAFETY: as `output_row_mut`, shared.
        unsafe {
            let width = (*self.output).ne[0] as usize;
            std::slice::from_raw_parts(self.output_row_place(token, slot), width)
        }
    }

    /// Where the row of (`token`, `slot`) lies, for threads that write different rows.
    pub(crate) fn output_row_place(&self, token: usize, slot: usize) -> *mut f32 {
        assert!(token < self.tokens() && slot < self.slots());
        // SAFETY: as `output_row_mut`; an address only.
        unsafe {
            let out = &*self.output;
            out.data.byte_add(token * out.nb[2] + slot * out.nb[1]).cast()
        }
    }

    /// Writes the row of (`token`, `slot`), computed elsewhere.
    ///
    /// # Panics
    /// When there is no such row or `row` is not `[n_embd]`.
    pub fn write_row(&mut self, token: usize, slot: usize, row: &[f32]) {
        self.output_row_mut(token, slot).copy_from_slice(row);
    }

    /// Writes zeros there: the expert adds nothing to this token.
    pub fn drop_row(&mut self, token: usize, slot: usize) {
        self.output_row_mut(token, slot).fill(0.0);
    }

    /// Points the matmuls at `weights` (in the order of [`ExpertBlock::matrices`])
    /// and their ids; what they pointed at before.
    pub(crate) fn exchange_weights(&mut self, weights: &mut [ArenaWeight]) -> SavedWeights {
        let mut saved = [std::ptr::null_mut(); MAX_MATRICES];
        let matmuls = &self.matmuls[..self.matmul_count];
        for ((&node, weight), saved) in matmuls.iter().zip(weights).zip(&mut saved) {
            // SAFETY: the nodes are live for `'g` and nothing else looks at them now.
            unsafe {
                *saved = std::mem::replace(&mut (*node).src[0], &mut weight.stack);
                (*node).src[2] = &mut weight.ids;
            }
        }
        SavedWeights(saved)
    }

    /// Undoes [`ExpertBlock::exchange_weights`].
    pub(crate) fn restore_weights(&mut self, SavedWeights(saved): SavedWeights) {
        for (&node, weight) in self.matmuls[..self.matmul_count].iter().zip(saved) {
            // SAFETY: as `exchange_weights`.
            unsafe {
                (*node).src[0] = weight;
                (*node).src[2] = self.ids.cast_mut();
            }
        }
    }

    pub(crate) fn nodes(&self) -> Vec<*const api::ggml_tensor> {
        // SAFETY: the graph is live for `'g`.
        unsafe {
            (0..api::ggml_graph_n_nodes(self.graph))
                .map(|index| api::ggml_graph_node(self.graph, index).cast_const())
                .collect()
        }
    }

    /// Which matrix `node` multiplies with, if it is one of the matmuls.
    pub(crate) fn matmul_index(&self, node: *const api::ggml_tensor) -> Option<usize> {
        self.matmuls[..self.matmul_count].iter().position(|&matmul| std::ptr::eq(matmul, node))
    }

    /// Tensors by expert that operations beside the matmuls read (biases), with what the
    /// model's names say they are.
    pub(crate) fn side_tensors(&self) -> Vec<(*const api::ggml_tensor, Matrix, TensorPart)> {
        let side = |node: *const api::ggml_tensor| {
            // SAFETY: nodes of a block and their sources are live; names are NUL-terminated.
            unsafe {
                if op_of((*node).op) != api::GGML_OP_ADD_ID {
                    return None;
                }
                let tensor = (*node).src[1];
                let name = CStr::from_ptr((*tensor).name.as_ptr()).to_str().ok()?;
                match Role::of(name, MAX_LAYERS as u32) {
                    Role::Routed { matrix, part, .. } => Some((tensor.cast_const(), matrix, part)),
                    _ => None,
                }
            }
        };
        self.nodes().into_iter().filter_map(side).collect()
    }

    pub(crate) fn ids(&self) -> *const api::ggml_tensor {
        self.ids
    }

    pub(crate) fn hidden(&self) -> *const api::ggml_tensor {
        self.hidden
    }

    /// Whether the experts of one token read different rows (llama4).
    pub fn hidden_differs_by_slot(&self) -> bool {
        // SAFETY: `hidden` is live for `'g`.
        unsafe { (*self.hidden).ne[1] != 1 }
    }

    /// Floats of a hidden row.
    pub fn hidden_width(&self) -> usize {
        // SAFETY: `hidden` is live for `'g`.
        unsafe { (*self.hidden).ne[0] as usize }
    }

    /// The hidden rows of slot 0 as a plain matrix `[n_embd, tokens]`.
    pub(crate) fn hidden_rows(&self) -> api::ggml_tensor {
        // SAFETY: `hidden` is live for `'g`; a tensor is plain data.
        let mut rows = unsafe { *self.hidden };
        let stride = rows.nb[2];
        rows.ne = [rows.ne[0], rows.ne[2], 1, 1];
        rows.nb = [rows.nb[0], stride, stride * rows.ne[1] as usize, stride * rows.ne[1] as usize];
        rows.op = api::GGML_OP_NONE;
        rows.src.fill(std::ptr::null_mut());
        rows.view_src = std::ptr::null_mut();
        rows
    }

    pub(crate) fn graph(&self) -> *mut api::ggml_cgraph {
        self.graph
    }
}

/// What the matmuls of a block pointed at.
pub(crate) struct SavedWeights([*mut api::ggml_tensor; MAX_MATRICES]);

/// The bytes of `input`, if some of them are bytes of `output`.
///
/// # Safety
/// Both are live tensors in host memory.
unsafe fn shared_bytes<'t>(
    input: *const api::ggml_tensor,
    output: *const api::ggml_tensor,
) -> Option<&'t [u8]> {
    // SAFETY: by the caller.
    unsafe {
        let bytes = |t: *const api::ggml_tensor| {
            std::ptr::slice_from_raw_parts((*t).data.cast_const().cast::<u8>(), api::ggml_nbytes(t))
        };
        let (input, output) = (bytes(input), bytes(output));
        let start = |slice: *const [u8]| slice.cast::<u8>().addr();
        let end = |slice: *const [u8]| start(slice) + slice.len();
        let apart = end(input) <= start(output) || end(output) <= start(input);
        (!apart).then(|| &*input)
    }
}

unsafe fn check_shape(
    matmuls: &[*mut api::ggml_tensor],
    last: *mut api::ggml_tensor,
) -> Result<(), NotABlock> {
    // SAFETY: nodes and their sources are live (caller).
    unsafe {
        let (down, entries) = matmuls.split_last().expect("two or three matmuls");
        let ids = (*entries[0]).src[2];
        let hidden = (*entries[0]).src[1];
        if matmuls.iter().any(|&m| (*m).src[2] != ids) {
            return Err(NotABlock::MixedIds);
        }
        if entries.iter().any(|&m| (*m).src[1] != hidden) {
            return Err(NotABlock::MixedInputs);
        }
        let ends_with_down =
            last == *down || (op_of((*last).op) == api::GGML_OP_ADD_ID && (*last).src[0] == *down);
        if ends_with_down { Ok(()) } else { Err(NotABlock::OpenEnd) }
    }
}
