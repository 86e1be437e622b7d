//! A block's operations cloned for packed rows: same operations and parameters,
//! shape `[n, 1, rows]` instead of `[n, k, tokens]`. Knows no architecture: what
//! stands between the matmuls is copied, not interpreted. Where the clones' data lies
//! is decided by who runs them (`packed`: this process; `gpu`: a device).

use super::graph::MAX_NODES;
use crate::api;
use crate::api::numbers::op_of;
use crate::seam::block::ExpertBlock;
use crate::seam::claim::is_view_op;
use std::ptr::null_mut;

/// Why a block cannot be cloned for packed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CloneError {
    /// More nodes than any block is known to have.
    #[error("the block has {0} operations, more than the {MAX_NODES} expected")]
    TooLong(usize),
    /// A tensor between is not one row per (token, slot).
    #[error("an operation of the block is not one row per token and slot")]
    Shape,
    /// An operation reads something that is not where the clones run.
    #[error("an operation of the block reads a tensor that is not in the expert's slot")]
    Outside,
}

/// Shape of the block and of its packed rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackedShape {
    /// Experts per token (k).
    pub(crate) slots: usize,
    /// Tokens of the block.
    pub(crate) tokens: usize,
    /// Rows that are packed.
    pub(crate) rows: usize,
}

impl PackedShape {
    /// `rows` rows of `block`.
    pub(crate) fn of(block: &ExpertBlock<'_>, rows: usize) -> Self {
        Self { slots: block.slots(), tokens: block.tokens(), rows }
    }
}

/// What the clones read in place of the block's own tensors.
pub(crate) struct Stands<'a> {
    /// (original, what stands in for it).
    pub(crate) tensors: &'a [(*const api::ggml_tensor, *mut api::ggml_tensor)],
    /// The expert ids an operation reads in place of the block's.
    pub(crate) ids: &'a dyn Fn(*const api::ggml_tensor) -> *mut api::ggml_tensor,
    /// Whether tensors of the model without a stand-in may be read where they are.
    pub(crate) outside: bool,
}

/// Reusable clones: tensors without data.
#[derive(Default)]
pub(crate) struct Clones {
    tensors: Vec<api::ggml_tensor>,
    /// (original, clone) of every tensor of the block met so far.
    known: Vec<(*const api::ggml_tensor, *mut api::ggml_tensor)>,
}

impl Clones {
    /// Clones `block` for `shape.rows` rows. Operations read `stands`; the first tensor
    /// is the packed input, the last one that is no view the result.
    pub(crate) fn build(
        &mut self,
        block: &ExpertBlock<'_>,
        shape: PackedShape,
        stands: &Stands<'_>,
    ) -> Result<(), CloneError> {
        let nodes = block.nodes();
        if nodes.len() > MAX_NODES {
            return Err(CloneError::TooLong(nodes.len()));
        }
        self.tensors.clear();
        self.tensors.reserve_exact(MAX_NODES + 1);
        self.known.clear();
        self.add_input(block, shape);
        self.known.extend_from_slice(stands.tensors);
        for node in nodes {
            self.add_node(node, block, shape, stands)?;
        }
        Ok(())
    }

    /// The packed input and all clones, in the order of the graph.
    pub(crate) fn tensors(&self) -> &[api::ggml_tensor] {
        &self.tensors
    }

    /// As [`Clones::tensors`], to give them their data.
    pub(crate) fn tensors_mut(&mut self) -> &mut [api::ggml_tensor] {
        &mut self.tensors
    }

    fn add_input(&mut self, block: &ExpertBlock<'_>, shape: PackedShape) {
        // SAFETY: all-zero is a valid tensor: no sources, no buffer, operation NONE.
        let mut input: api::ggml_tensor = unsafe { std::mem::zeroed() };
        input.type_ = api::GGML_TYPE_F32;
        set_packed_shape(&mut input, block.hidden_width() as i64, shape.rows);
        self.push(block.hidden(), input);
    }

    fn add_node(
        &mut self,
        node: *const api::ggml_tensor,
        block: &ExpertBlock<'_>,
        shape: PackedShape,
        stands: &Stands<'_>,
    ) -> Result<(), CloneError> {
        // SAFETY: nodes of a block are live for the block's life; a tensor is plain data.
        let mut clone = unsafe { *node };
        if is_view_op(clone.op) && self.mapped(clone.view_src).is_none() {
            // Of a tensor that is no part of the block (a scale per expert, applied after it): ggml
            // puts views into the split they happen to follow.
            return Ok(());
        }
        if (clone.ne[1], clone.ne[2]) != (shape.slots as i64, shape.tokens as i64) {
            return Err(CloneError::Shape);
        }
        clone.buffer = null_mut();
        clone.extra = null_mut();
        clone.data = null_mut();
        for source in clone.src.iter_mut().filter(|source| !source.is_null()) {
            *source = if std::ptr::eq(*source, block.ids()) {
                (stands.ids)(node)
            } else {
                match self.mapped(*source) {
                    Some(clone) => clone,
                    None if stands.outside => *source,
                    None => return Err(CloneError::Outside),
                }
            };
        }
        if is_view_op(clone.op) {
            self.shape_view(&mut clone, shape)?;
        } else {
            clone.view_src = null_mut();
            let width = clone.ne[0];
            set_packed_shape(&mut clone, width, shape.rows);
        }
        self.push(node, clone);
        Ok(())
    }

    /// A view keeps its place in the row of its parent (gate and up in one product).
    fn shape_view(
        &self,
        clone: &mut api::ggml_tensor,
        shape: PackedShape,
    ) -> Result<(), CloneError> {
        let parent = self.mapped(clone.view_src).ok_or(CloneError::Shape)?;
        if op_of(clone.op) != api::GGML_OP_VIEW {
            return Err(CloneError::Shape);
        }
        clone.view_src = parent;
        clone.ne = [clone.ne[0], 1, shape.rows as i64, 1];
        // SAFETY: the parent is one of our clones.
        let row = unsafe { (*parent).nb[1] };
        clone.nb = [clone.nb[0], row, row, row * shape.rows];
        Ok(())
    }

    /// The clone of `original` or what stands in for it; `None` when it is no part of
    /// the block.
    fn mapped(&self, original: *mut api::ggml_tensor) -> Option<*mut api::ggml_tensor> {
        let found = self.known.iter().find(|(known, _)| std::ptr::eq(*known, original));
        found.map(|(_, clone)| *clone)
    }

    fn push(&mut self, original: *const api::ggml_tensor, clone: api::ggml_tensor) {
        debug_assert!(self.tensors.len() < self.tensors.capacity(), "clones must not move");
        self.tensors.push(clone);
        let clone = self.tensors.last_mut().expect("just pushed");
        self.known.push((original, clone));
    }
}

/// Bytes of a packed tensor's rows.
pub(crate) fn packed_bytes(tensor: &api::ggml_tensor) -> usize {
    tensor.nb[2] * tensor.ne[2] as usize
}

/// F32 `[width, 1, rows]`, contiguous.
pub(crate) fn set_packed_shape(tensor: &mut api::ggml_tensor, width: i64, rows: usize) {
    let row = width as usize * size_of::<f32>();
    tensor.ne = [width, 1, rows as i64, 1];
    tensor.nb = [size_of::<f32>(), row, row, row * rows];
}
