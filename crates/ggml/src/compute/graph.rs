//! A ggml graph with room for one block, reused from run to run.

use crate::api;
use crate::seam::claim::is_view_op;
use std::ptr::{NonNull, null_mut};

/// Most nodes of one block; today's longest has 12.
pub(crate) const MAX_NODES: usize = 48;

pub(crate) struct Graph {
    context: NonNull<api::ggml_context>,
    raw: *mut api::ggml_cgraph,
    room: usize,
}

impl Graph {
    pub(crate) fn new() -> Self {
        Self::with_room(MAX_NODES)
    }

    /// For several blocks of up to `room` nodes together.
    pub(crate) fn with_room(room: usize) -> Self {
        // SAFETY: ggml allocates the context's own memory, large enough for the graph.
        unsafe {
            let params = api::ggml_init_params {
                mem_size: api::ggml_graph_overhead_custom(room, false),
                mem_buffer: null_mut(),
                no_alloc: true,
            };
            let context = NonNull::new(api::ggml_init(params)).expect("ggml allocates or aborts");
            let raw = api::ggml_new_graph_custom(context.as_ptr(), room, false);
            Self { context, raw, room }
        }
    }

    /// Holds the computed tensors in order; the last one is the result.
    pub(crate) fn refill(&mut self, tensors: &mut [api::ggml_tensor]) -> *mut api::ggml_tensor {
        let mut last = null_mut();
        // SAFETY: the graph has room for MAX_NODES nodes, which `Clones::build` checked.
        unsafe {
            api::ggml_graph_clear(self.raw);
            for tensor in tensors.iter_mut().filter(|tensor| !is_view_op(tensor.op)) {
                api::ggml_graph_add_node(self.raw, tensor);
                last = tensor;
            }
        }
        last
    }

    /// Nodes it has room for.
    pub(crate) fn room(&self) -> usize {
        self.room
    }

    /// Holds these nodes in their order.
    ///
    /// # Panics
    /// When there are more than it has room for.
    pub(crate) fn refill_with(&mut self, nodes: impl Iterator<Item = *mut api::ggml_tensor>) {
        // SAFETY: the graph is ours and its room is checked; it only keeps the addresses.
        unsafe {
            api::ggml_graph_clear(self.raw);
            for (index, node) in nodes.enumerate() {
                assert!(index < self.room, "a graph of {} nodes", self.room);
                api::ggml_graph_add_node(self.raw, node);
            }
        }
    }

    /// Holds what `output` is computed from, with the use counts by which GPU backends
    /// fuse operations. Writes to the names of tensors that have none.
    ///
    /// # Safety
    /// `output` and all it descends from must be live, and fit [`MAX_NODES`].
    pub(crate) unsafe fn expand(&mut self, output: *mut api::ggml_tensor) {
        // SAFETY: by the caller.
        unsafe {
            api::ggml_graph_clear(self.raw);
            api::ggml_build_forward_expand(self.raw, output);
        }
    }

    pub(crate) fn raw(&self) -> *mut api::ggml_cgraph {
        self.raw
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made in `new`, freed once; the graph lies inside.
        unsafe { api::ggml_free(self.context.as_ptr()) }
    }
}
