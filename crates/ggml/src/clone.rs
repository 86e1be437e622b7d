//! A block's operations cloned for packed rows: same operations and parameters,
//! shape `[n, 1, rows]` instead of `[n, k, tokens]`. Knows no architecture: what
//! stands between the matmuls is copied, not interpreted.

use crate::block::ExpertBlock;
use crate::claim::is_view_op;
use crate::subset::ArenaWeight;
use llama_cpp_sys_2 as sys;
use std::ptr::{NonNull, null_mut};

/// Most nodes of one block; today's longest has 12.
const MAX_NODES: usize = 48;
/// ggml's kernels load whole cache lines.
const ALIGNMENT_BYTES: usize = 64;

/// Why a block cannot be cloned for packed rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CloneError {
    /// More nodes than [`MAX_NODES`].
    #[error("the block has {0} operations, more than the {MAX_NODES} expected")]
    TooLong(usize),
    /// A tensor between is not one row per (token, slot).
    #[error("an operation of the block is not one row per token and slot")]
    Shape,
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

/// Reusable clones: tensors, their data and a graph.
#[derive(Default)]
pub(crate) struct Clones {
    graph: Option<Graph>,
    tensors: Vec<sys::ggml_tensor>,
    /// (original, clone) of every tensor of the block met so far.
    known: Vec<(*const sys::ggml_tensor, *mut sys::ggml_tensor)>,
    data: Vec<Line>,
}

/// One aligned line of scratch.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Line(#[allow(dead_code, reason = "read and written by ggml")] [u8; ALIGNMENT_BYTES]);

/// Clones ready to run; rows go in, rows come out.
pub(crate) struct Packed<'c> {
    graph: *mut sys::ggml_cgraph,
    input: *mut sys::ggml_tensor,
    output: *mut sys::ggml_tensor,
    scratch: std::marker::PhantomData<&'c mut Clones>,
}

impl Clones {
    /// Clones `block` for `shape.rows` rows with `weights` (in the block's order);
    /// `expert_ids` name each row's expert for biases.
    pub(crate) fn build(
        &mut self,
        block: &ExpertBlock<'_>,
        shape: PackedShape,
        weights: &mut [ArenaWeight],
        expert_ids: &mut sys::ggml_tensor,
    ) -> Result<Packed<'_>, CloneError> {
        let nodes = block.nodes();
        if nodes.len() > MAX_NODES {
            return Err(CloneError::TooLong(nodes.len()));
        }
        self.tensors.clear();
        self.tensors.reserve_exact(MAX_NODES + 1);
        self.known.clear();
        let input = self.add_input(block, shape);
        for (original, weight) in block.matrices().zip(weights.iter_mut()) {
            self.known.push((original.raw(), &mut weight.stack));
        }
        for node in nodes {
            let matrix = block.matmul_index(node);
            let ids = matrix.map_or(&raw mut *expert_ids, |index| &raw mut weights[index].ids);
            self.add_node(node, block, shape, ids)?;
        }
        self.place_data();
        let graph = self.graph.get_or_insert_with(Graph::new);
        let output = graph.refill(&mut self.tensors);
        Ok(Packed { graph: graph.raw(), input, output, scratch: std::marker::PhantomData })
    }

    fn add_input(&mut self, block: &ExpertBlock<'_>, shape: PackedShape) -> *mut sys::ggml_tensor {
        // SAFETY: all-zero is a valid tensor: no sources, no buffer, operation NONE.
        let mut input: sys::ggml_tensor = unsafe { std::mem::zeroed() };
        input.type_ = sys::GGML_TYPE_F32;
        set_packed_shape(&mut input, block.hidden_width() as i64, shape.rows);
        self.push(block.hidden(), input)
    }

    fn add_node(
        &mut self,
        node: *const sys::ggml_tensor,
        block: &ExpertBlock<'_>,
        shape: PackedShape,
        ids: *mut sys::ggml_tensor,
    ) -> Result<(), CloneError> {
        // SAFETY: nodes of a block are live for the block's life; a tensor is plain data.
        let mut clone = unsafe { *node };
        if (clone.ne[1], clone.ne[2]) != (shape.slots as i64, shape.tokens as i64) {
            return Err(CloneError::Shape);
        }
        clone.buffer = null_mut();
        clone.extra = null_mut();
        for source in clone.src.iter_mut().filter(|source| !source.is_null()) {
            *source = if std::ptr::eq(*source, block.ids()) { ids } else { self.mapped(*source) };
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
        clone: &mut sys::ggml_tensor,
        shape: PackedShape,
    ) -> Result<(), CloneError> {
        let parent = self.mapped(clone.view_src);
        if std::ptr::eq(parent, clone.view_src) || clone.op != sys::GGML_OP_VIEW {
            return Err(CloneError::Shape);
        }
        clone.view_src = parent;
        clone.ne = [clone.ne[0], 1, shape.rows as i64, 1];
        // SAFETY: the parent is one of our clones.
        let row = unsafe { (*parent).nb[1] };
        clone.nb = [clone.nb[0], row, row, row * shape.rows];
        Ok(())
    }

    /// The clone of `original`, or `original` itself when it is no part of the block
    /// (biases by expert).
    fn mapped(&self, original: *mut sys::ggml_tensor) -> *mut sys::ggml_tensor {
        let found = self.known.iter().find(|(known, _)| std::ptr::eq(*known, original));
        found.map_or(original, |(_, clone)| *clone)
    }

    fn push(
        &mut self,
        original: *const sys::ggml_tensor,
        clone: sys::ggml_tensor,
    ) -> *mut sys::ggml_tensor {
        debug_assert!(self.tensors.len() < self.tensors.capacity(), "clones must not move");
        self.tensors.push(clone);
        let clone = self.tensors.last_mut().expect("just pushed");
        self.known.push((original, clone));
        clone
    }

    /// Gives every tensor that is not a view its own aligned piece of scratch.
    fn place_data(&mut self) {
        let bytes = |tensor: &sys::ggml_tensor| tensor.nb[2] * tensor.ne[2] as usize;
        let lines = |tensor: &sys::ggml_tensor| bytes(tensor).div_ceil(ALIGNMENT_BYTES);
        let owns = |tensor: &&sys::ggml_tensor| tensor.view_src.is_null();
        let total: usize = self.tensors.iter().filter(owns).map(lines).sum();
        if self.data.len() < total {
            self.data.resize(total, Line([0; ALIGNMENT_BYTES]));
        }
        let mut next = 0;
        for tensor in &mut self.tensors {
            if tensor.view_src.is_null() {
                tensor.data = self.data[next..].as_mut_ptr().cast();
                next += lines(tensor);
            } else {
                // SAFETY: the parent is an earlier clone, placed already.
                tensor.data = unsafe { (*tensor.view_src).data.byte_add(tensor.view_offs) };
            }
        }
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

    pub(crate) fn graph(&self) -> *mut sys::ggml_cgraph {
        self.graph
    }
}

/// # Safety
/// `tensor` must be a live packed F32 tensor, and the row not be borrowed elsewhere.
unsafe fn row_mut<'t>(tensor: *mut sys::ggml_tensor, row: usize) -> &'t mut [f32] {
    // SAFETY: by the caller, with the index checked here.
    unsafe {
        assert!(row < (*tensor).ne[2] as usize);
        let start = (*tensor).data.byte_add(row * (*tensor).nb[2]);
        std::slice::from_raw_parts_mut(start.cast(), (*tensor).ne[0] as usize)
    }
}

fn set_packed_shape(tensor: &mut sys::ggml_tensor, width: i64, rows: usize) {
    let row = width as usize * size_of::<f32>();
    tensor.ne = [width, 1, rows as i64, 1];
    tensor.nb = [size_of::<f32>(), row, row, row * rows];
}

/// A ggml graph with room for one block, reused.
pub(crate) struct Graph {
    context: NonNull<sys::ggml_context>,
    raw: *mut sys::ggml_cgraph,
}

impl Graph {
    pub(crate) fn new() -> Self {
        // SAFETY: ggml allocates the context's own memory, large enough for the graph.
        unsafe {
            let params = sys::ggml_init_params {
                mem_size: sys::ggml_graph_overhead_custom(MAX_NODES, false),
                mem_buffer: null_mut(),
                no_alloc: true,
            };
            let context = NonNull::new(sys::ggml_init(params)).expect("ggml allocates or aborts");
            let raw = sys::ggml_new_graph_custom(context.as_ptr(), MAX_NODES, false);
            Self { context, raw }
        }
    }

    /// Holds the computed tensors in order; the last one is the result.
    pub(crate) fn refill(&mut self, tensors: &mut [sys::ggml_tensor]) -> *mut sys::ggml_tensor {
        let mut last = null_mut();
        // SAFETY: the graph has room for MAX_NODES nodes, which `build` checked.
        unsafe {
            sys::ggml_graph_clear(self.raw);
            for tensor in tensors.iter_mut().filter(|tensor| !is_view_op(tensor.op)) {
                sys::ggml_graph_add_node(self.raw, tensor);
                last = tensor;
            }
        }
        last
    }

    pub(crate) fn raw(&self) -> *mut sys::ggml_cgraph {
        self.raw
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made in `new`, freed once; the graph lies inside.
        unsafe { sys::ggml_free(self.context.as_ptr()) }
    }
}
