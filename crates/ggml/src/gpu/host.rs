//! Memory of this process for copies from and to a device: pinned where the backend
//! offers that, ordinary otherwise.

use super::device::GpuDevice;
use crate::compute::tensors::Buffer;

/// Bytes of this process; reached by one owner at a time.
pub(crate) struct HostMemory {
    base: *mut u8,
    len_bytes: usize,
    keeper: Keeper,
}

#[allow(dead_code, reason = "held for its memory")]
enum Keeper {
    Pinned(Buffer),
    Ordinary(Vec<u64>),
}

// SAFETY: plain memory with one owner; ggml's buffers may be freed on any thread.
unsafe impl Send for HostMemory {}

impl HostMemory {
    /// `len_bytes` for copies with `device`, aligned for any number.
    pub(crate) fn new(device: &GpuDevice, len_bytes: usize) -> Self {
        // SAFETY: buffer types live until the process ends.
        let pinned =
            device.pinned_buffer_type().and_then(|ty| unsafe { Buffer::new(ty, len_bytes) });
        if let Some(buffer) = pinned {
            return Self { base: buffer.base().cast(), len_bytes, keeper: Keeper::Pinned(buffer) };
        }
        let mut words = vec![0_u64; len_bytes.div_ceil(size_of::<u64>())];
        Self { base: words.as_mut_ptr().cast(), len_bytes, keeper: Keeper::Ordinary(words) }
    }

    pub(crate) fn is_pinned(&self) -> bool {
        matches!(self.keeper, Keeper::Pinned(_))
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the keeper owns these bytes, initialised (zeroed or by the system), and
        // `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.len_bytes) }
    }
}
