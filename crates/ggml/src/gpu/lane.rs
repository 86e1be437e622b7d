//! Where tasks run: a stream of one device, its workspace, and memory of this process for
//! the rows on their way. Belongs to one compute thread.

use super::host::HostMemory;
use super::piece::Piece;
use super::unit::{GpuUnit, Slots, UnitError};
use crate::api;
use crate::compute::graph::{Graph, MAX_NODES};
use crate::compute::outcome::ComputeOutcome;
use crate::compute::stream::Stream;
use crate::compute::tensors::Buffer;
use std::sync::Arc;

/// Runs the tasks of one unit, one after the other.
pub struct ComputeLane {
    graph: Graph,
    workspace: Buffer,
    alignment: usize,
    /// Rows in, ids, rows out.
    host: HostMemory,
    stream: Stream,
    slots: Arc<Slots>,
}

// SAFETY: graph and workspace are the lane's alone, and a lane is used by one thread at a time.
unsafe impl Send for ComputeLane {}

impl GpuUnit {
    /// A lane for a compute thread; its workspace is one the unit's budget has room for.
    pub fn compute_lane(&self) -> Result<ComputeLane, UnitError> {
        let slots = &self.0;
        let stream = slots.device.stream().ok_or_else(|| slots.start_error())?;
        // SAFETY: buffer types live until the process ends.
        let alignment = unsafe { api::ggml_backend_buft_get_alignment(slots.device.buffer_type()) };
        // Each tensor begins at a multiple: an operation's result, the input, the ids.
        let bytes = slots.workspace_bytes + (MAX_NODES + 2) * alignment;
        // SAFETY: as above.
        let workspace = unsafe { Buffer::new(slots.device.buffer_type(), bytes) };
        let workspace = workspace.ok_or_else(|| slots.memory_error(bytes))?;
        let row_bytes = (2 * slots.widest_row + 1) * size_of::<f32>();
        let host = HostMemory::new(&slots.device, slots.max_rows * row_bytes);
        let graph = Graph::new();
        Ok(ComputeLane { graph, workspace, alignment, host, stream, slots: Arc::clone(slots) })
    }
}

impl ComputeLane {
    pub(crate) fn serves(&self, slots: &Arc<Slots>) -> bool {
        Arc::ptr_eq(&self.slots, slots)
    }

    /// Rows up, computation, rows down; waits once, at the end.
    pub(crate) fn run(&mut self, piece: &mut Piece) -> ComputeOutcome {
        self.place(piece);
        let parts = piece.parts();
        let (input_bytes, ids_bytes) = (size_of_val(parts.input), size_of_val(parts.ids));
        let (input, rest) = self.host.bytes_mut().split_at_mut(input_bytes);
        let (ids, rest) = rest.split_at_mut(ids_bytes);
        let output = &mut rest[..size_of_val(parts.output)];
        copy_words(parts.input, f32::to_ne_bytes, input);
        copy_words(parts.ids, i32::to_ne_bytes, ids);
        // SAFETY: tensors are placed and have exactly these sizes; host memory and tensors stay
        // until the stream is synchronised below, and the graph holds no more than its room.
        let status = unsafe {
            let stream = self.stream.raw();
            let (from, len) = (input.as_ptr().cast(), input.len());
            api::ggml_backend_tensor_set_async(stream, parts.input_tensor, from, 0, len);
            let (from, len) = (ids.as_ptr().cast(), ids.len());
            api::ggml_backend_tensor_set_async(stream, parts.ids_tensor, from, 0, len);
            self.graph.expand(parts.output_tensor);
            let status = api::ggml_backend_graph_compute_async(stream, self.graph.raw());
            if status == api::GGML_STATUS_SUCCESS {
                let (to, len) = (output.as_mut_ptr().cast(), output.len());
                api::ggml_backend_tensor_get_async(stream, parts.output_tensor, to, 0, len);
            }
            status
        };
        self.stream.synchronise();
        for (word, bytes) in parts.output.iter_mut().zip(output.as_chunks().0) {
            *word = f32::from_ne_bytes(*bytes);
        }
        ComputeOutcome::of(status)
    }

    /// Gives the piece's tensors their places in the workspace.
    fn place(&mut self, piece: &mut Piece) {
        let mut next = self.workspace.base();
        for tensor in piece.tensors_mut() {
            tensor.buffer = std::ptr::null_mut();
            tensor.data = std::ptr::null_mut();
            // SAFETY: the tensor is live and without data; a view's parent came before it; the
            // workspace has room for what a piece may hold, which ggml checks once more.
            let status = unsafe {
                if tensor.view_src.is_null() {
                    let status = api::ggml_backend_tensor_alloc(self.workspace.raw(), tensor, next);
                    let ty = self.slots.device.buffer_type();
                    let bytes = api::ggml_backend_buft_get_alloc_size(ty, tensor);
                    next = next.byte_add(bytes.next_multiple_of(self.alignment));
                    status
                } else {
                    api::ggml_backend_view_init(tensor)
                }
            };
            debug_assert_eq!(status, api::GGML_STATUS_SUCCESS);
        }
    }
}

fn copy_words<T: Copy>(words: &[T], bytes_of: impl Fn(T) -> [u8; 4], to: &mut [u8]) {
    for (word, bytes) in words.iter().zip(to.as_chunks_mut().0) {
        *bytes = bytes_of(*word);
    }
}
