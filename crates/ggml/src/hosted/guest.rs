//! What a guest decides: which expert weights it takes, where their bytes are, who computes.

use crate::api;
use crate::seam::block::ExpertBlock;
use crate::seam::executor::{BlockError, BlockExecutor};
use std::ffi::CStr;
use std::sync::OnceLock;

/// The guest of this process.
pub(super) static GUEST: OnceLock<Box<dyn Guest>> = OnceLock::new();

/// Whoever takes the experts. Called on threads of the host; a panic counts as a refusal.
pub trait Guest: Send + Sync {
    /// Whether a model's expert tensor shall be handed over. The loader asks before it allocates.
    fn wants(&self, tensor: &HandedTensor<'_>) -> bool;

    /// The loader hands over a tensor's bytes, or a piece of them, for a place in `buffer`.
    fn hand_over(&self, buffer: BufferId, tensor: &HandedOver<'_>) -> Taken;

    /// Bytes of a tensor that was taken, for a host that reads it back; whether they were read.
    fn read(
        &self,
        buffer: BufferId,
        tensor: &HandedTensor<'_>,
        offset: usize,
        out: &mut [u8],
    ) -> bool;

    /// A buffer is freed, and with it its model.
    fn forget(&self, buffer: BufferId);

    /// Who computes the blocks of a context.
    fn executor(&self) -> Box<dyn BlockExecutor>;

    /// A block could not be computed; the host only hears that something failed.
    fn failed(&self, error: &BlockError);
}

/// What became of bytes that were handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// They are known to be in a file, or are of no use to anybody: nothing is copied.
    Elsewhere,
    /// They belong to this process alone and must be kept.
    Copy,
}

/// One buffer of a model's expert weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub(super) usize);

/// A tensor of the host, by its name and shape.
#[derive(Debug, Clone, Copy)]
pub struct HandedTensor<'t> {
    /// Its name in the GGUF.
    pub name: &'t str,
    /// Elements, the innermost dimension first.
    pub dims: [u64; 4],
    /// ggml's number of its type, which is the file format's.
    pub type_id: u32,
}

/// Its bytes, where the host has them now.
#[derive(Debug, Clone, Copy)]
pub struct HandedOver<'t> {
    pub tensor: HandedTensor<'t>,
    /// Where in the tensor they begin.
    pub offset: usize,
    /// The bytes; mapped ones are read from disk when they are looked at.
    pub bytes: &'t [u8],
}

impl<'t> HandedTensor<'t> {
    /// `None` where the name is no text.
    ///
    /// # Safety
    /// `tensor` is live for `'t`.
    pub(super) unsafe fn of(tensor: *const api::ggml_tensor) -> Option<Self> {
        // SAFETY: by the caller; ggml keeps the name NUL-terminated inside its 64 bytes.
        unsafe {
            let name = CStr::from_ptr((*tensor).name.as_ptr()).to_str().ok()?;
            let dims = (*tensor).ne.map(|n| n.max(0) as u64);
            Some(Self { name, dims, type_id: (*tensor).type_ })
        }
    }
}

impl ExpertBlock<'_> {
    /// The buffer that holds this block's weights, in a host.
    pub fn buffer_id(&self) -> Option<BufferId> {
        let weight = self.matrices().next()?;
        // SAFETY: the weights of a live block are live.
        let buffer = unsafe { (*weight.raw()).buffer };
        (!buffer.is_null()).then(|| BufferId(buffer.addr()))
    }
}
