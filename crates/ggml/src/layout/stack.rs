//! The experts of one matrix of one layer in one layout, in memory of their own.

use super::Layout;
use super::nodes::Nodes;
use crate::api;
use crate::compute::tensors::{Buffer, Tensors};
use crate::system::memory;
use std::ffi::c_void;
use std::io;

/// Experts in memory, to be filled one by one. The scratch of a thread is a stack of one expert.
pub(crate) struct Stack {
    layout: Layout,
    /// One expert, without its data.
    one: api::ggml_tensor,
    /// Where each expert begins.
    experts: Vec<*mut c_void>,
    /// All of them as one tensor, for layouts that have it.
    whole: Option<api::ggml_tensor>,
    buffer: Buffer,
    _tensors: Tensors,
}

// SAFETY: the addresses are of memory the stack owns.
unsafe impl Send for Stack {}
// SAFETY: as above; [`Stack::set`] writes one expert's bytes while nobody else reads or writes them:
// before a model is handed its weights, or on the one thread whose scratch it is.
unsafe impl Sync for Stack {}

impl Stack {
    /// Memory for experts like those of `like`, `[row, rows, experts]`. `None` when the system has
    /// none, or the build has no such layout.
    pub(crate) fn new(layout: Layout, like: &api::ggml_tensor) -> Option<Self> {
        let [row, rows, count, _] = like.ne;
        let tensors = Tensors::new(if layout.is_apart() { count as usize } else { 1 })?;
        let tensor = |count| tensors.tensor(like.type_, [row, rows, count]);
        let made: Vec<_> = if layout.is_apart() {
            (0..count).map(|_| tensor(1)).collect()
        } else {
            vec![tensor(count)]
        };
        let buffer = tensors.allocate(layout.buffer_type()?)?;
        prefer_large_pages(buffer.base(), buffer.size_bytes());
        // SAFETY: the buffer is live; the mark is what llama.cpp puts on its own.
        unsafe {
            api::ggml_backend_buffer_set_usage(
                buffer.raw(),
                api::GGML_BACKEND_BUFFER_USAGE_WEIGHTS,
            );
        }
        // SAFETY: the tensors are live and were given their places; a tensor is plain data.
        let first = unsafe { **made.first()? };
        let one = one_of(&first);
        let place = |expert: usize| match layout.is_apart() {
            // SAFETY: as above; one tensor for each expert.
            true => unsafe { (*made[expert]).data },
            false => first.data.wrapping_byte_add(expert * first.nb[2]),
        };
        let experts = (0..count as usize).map(place).collect();
        let whole = (!layout.is_apart()).then_some(first);
        Some(Self { layout, one, experts, whole, buffer, _tensors: tensors })
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    /// Bytes of one expert in the file.
    pub(crate) fn file_bytes(&self) -> usize {
        // SAFETY: sizes of a tensor that is plain data.
        unsafe { api::ggml_nbytes(&self.one) }
    }

    /// Rearranges one expert from the file's order. By one thread, while nobody computes with it.
    ///
    /// # Panics
    /// When there is no such expert or it has not as many bytes.
    pub(crate) fn set(&self, expert: usize, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.file_bytes(), "an expert's bytes");
        let mut tensor = self.expert(expert);
        // SAFETY: the tensor lies in the stack's own buffer and has exactly these bytes.
        unsafe { api::ggml_backend_tensor_set(&mut tensor, bytes.as_ptr().cast(), 0, bytes.len()) }
    }

    /// One expert as a matrix.
    pub(crate) fn expert(&self, expert: usize) -> api::ggml_tensor {
        let mut tensor = self.one;
        tensor.data = self.experts[expert];
        tensor
    }

    /// Has every node hold its part of the experts. Before they are set: what has been written
    /// stays where it is.
    pub(crate) fn divide(&self, nodes: &Nodes) -> io::Result<()> {
        let count = self.experts.len();
        let after = self.buffer.base().wrapping_byte_add(self.buffer.size_bytes());
        let place = |expert: usize| self.experts.get(expert).copied().unwrap_or(after);
        let mut first = 0;
        for node in 0..nodes.count() {
            let end = nodes.end(node, count);
            let (from, to) = (place(std::mem::replace(&mut first, end)), place(end));
            nodes.prefer(node, from, to.addr().saturating_sub(from.addr()))?;
        }
        Ok(())
    }

    /// All experts as one tensor; `None` when they are apart.
    pub(crate) fn whole(&self) -> Option<&api::ggml_tensor> {
        self.whole.as_ref()
    }
}

/// One expert of a stack, as a matrix at the first one's place.
pub(crate) fn one_of(stack: &api::ggml_tensor) -> api::ggml_tensor {
    let mut one = *stack;
    one.ne[2] = 1;
    one.nb[3] = one.nb[2];
    one
}

/// Weights are read once per token from beginning to end: with pages of 2 MiB decoding was 1.2
/// times as fast (docs/decisions/0085). For the whole pages of the given memory, which is this
/// process's. Best effort: the system may have none.
pub fn prefer_large_pages(start: *mut c_void, bytes: usize) {
    memory::prefer_large_pages(start, bytes);
}
