//! Expert bytes into slots. A lane belongs to one copy thread and works beside a compute
//! lane of the same unit: each has a stream of its own on the device.
//!
//! With pinned memory and events, two staging pieces take turns: one is filled by this
//! thread while the device copies the other.

use super::device::GpuDevice;
use super::host::HostMemory;
use super::unit::{GpuExpert, GpuLease, GpuUnit, Slots, UnitError};
use crate::api;
use crate::compute::stream::Stream;
use motley_model::{Matrix, TensorPart};
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes of one staging piece: long enough that a copy's start costs little (some 10 µs
/// against 80 µs at 25 GB/s).
const STAGING_BYTES: usize = 2 << 20;

/// Why an expert was not copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FillReason {
    /// A part the slot has room for was not given.
    #[error("no bytes for the {part:?} of {matrix:?}")]
    Missing {
        /// Which of the expert's.
        matrix: Matrix,
        /// What of it: weights or a bias.
        part: TensorPart,
    },
    /// A part has another size.
    #[error("{given} bytes for the {part:?} of {matrix:?} where {wanted} belong")]
    Size {
        /// Which of the expert's.
        matrix: Matrix,
        /// What of it: weights or a bias.
        part: TensorPart,
        /// Bytes of the caller's part.
        given: usize,
        /// Bytes of the slot.
        wanted: usize,
    },
    /// The slot is another unit's.
    #[error("the slot belongs to another unit")]
    OtherUnit,
}

/// A fill that was refused; the slot is given back in it.
#[derive(Debug, thiserror::Error)]
#[error("an expert cannot be copied to the device: {reason}")]
pub struct FillError {
    /// What was wrong with the bytes or the slot.
    #[source]
    pub reason: FillReason,
    /// The slot, unchanged and still the caller's.
    pub lease: GpuLease,
}

/// Copies experts into the slots of one unit.
pub struct CopyLane {
    staging: Option<Staging>,
    stream: Stream,
    slots: Arc<Slots>,
}

impl GpuUnit {
    /// A lane for a copy thread.
    pub fn copy_lane(&self) -> Result<CopyLane, UnitError> {
        let stream = self.0.device.stream().ok_or_else(|| self.0.start_error())?;
        let staging = Staging::new(&self.0.device);
        Ok(CopyLane { staging, stream, slots: Arc::clone(&self.0) })
    }
}

impl CopyLane {
    /// Copies one expert into the slot and returns when it is there. `parts` are all the
    /// model has for this expert, in any order; parts that live elsewhere are passed over.
    pub fn fill<'b>(
        &mut self,
        lease: GpuLease,
        parts: impl IntoIterator<Item = (Matrix, TensorPart, &'b [u8])>,
    ) -> Result<GpuExpert, FillError> {
        match self.check(&lease, parts) {
            Ok(found) => {
                for (index, bytes) in found {
                    self.upload(&lease, index, bytes);
                }
                self.stream.synchronise();
                Ok(GpuExpert(Arc::new(lease)))
            }
            Err(reason) => Err(FillError { reason, lease }),
        }
    }

    /// Whether copies go through pinned memory.
    pub fn is_pinned(&self) -> bool {
        self.staging.is_some()
    }

    /// The slot's parts by index, with their bytes: all of them, each of its size.
    fn check<'b>(
        &self,
        lease: &GpuLease,
        parts: impl IntoIterator<Item = (Matrix, TensorPart, &'b [u8])>,
    ) -> Result<Vec<(usize, &'b [u8])>, FillReason> {
        if !Arc::ptr_eq(&lease.slots, &self.slots) {
            return Err(FillReason::OtherUnit);
        }
        let shape = &lease.stack().shape;
        let mut found = vec![None; shape.parts.len()];
        for (matrix, part, bytes) in parts {
            let Some(index) = shape.index_of(matrix, part) else { continue };
            let (given, wanted) = (bytes.len(), shape.parts[index].bytes as usize);
            if given != wanted {
                return Err(FillReason::Size { matrix, part, given, wanted });
            }
            found[index] = Some(bytes);
        }
        let checked = found.into_iter().zip(&shape.parts).enumerate().map(|(index, (bytes, p))| {
            let missing = FillReason::Missing { matrix: p.matrix, part: p.part };
            bytes.map(|bytes| (index, bytes)).ok_or(missing)
        });
        checked.collect()
    }

    fn upload(&mut self, lease: &GpuLease, part: usize, bytes: &[u8]) {
        let tensor = lease.stack().tensors[part];
        let offset = lease.slot as usize * bytes.len();
        match &mut self.staging {
            // SAFETY: the slot's range lies in the tensor and is leased exclusively.
            None => unsafe {
                api::ggml_backend_tensor_set(tensor, bytes.as_ptr().cast(), offset, bytes.len());
            },
            Some(staging) => {
                for (nth, piece) in bytes.chunks(STAGING_BYTES).enumerate() {
                    // SAFETY: as above.
                    unsafe {
                        staging.upload(&self.stream, tensor, offset + nth * STAGING_BYTES, piece);
                    }
                }
            }
        }
    }
}

/// Two pieces of pinned memory, each with an event that says when it may be reused.
struct Staging {
    pieces: [(HostMemory, Event); 2],
    next: usize,
}

impl Staging {
    fn new(device: &GpuDevice) -> Option<Self> {
        if !device.copies_by_itself() {
            return None;
        }
        let piece = || {
            let memory = HostMemory::new(device, STAGING_BYTES);
            memory.is_pinned().then_some((memory, Event::new(device)?))
        };
        Some(Self { pieces: [piece()?, piece()?], next: 0 })
    }

    /// # Safety
    /// The range must lie in `tensor` and nobody else use it until the stream is synchronised.
    unsafe fn upload(
        &mut self,
        stream: &Stream,
        tensor: *mut api::ggml_tensor,
        offset: usize,
        bytes: &[u8],
    ) {
        let (memory, event) = &mut self.pieces[self.next];
        self.next = 1 - self.next;
        event.wait();
        let staged = &mut memory.bytes_mut()[..bytes.len()];
        staged.copy_from_slice(bytes);
        // SAFETY: the staged bytes stay until the event, or the synchronisation, has come.
        unsafe {
            let (data, len) = (staged.as_ptr().cast(), staged.len());
            api::ggml_backend_tensor_set_async(stream.raw(), tensor, data, offset, len);
            api::ggml_backend_event_record(event.raw.as_ptr(), stream.raw());
        }
        event.recorded = true;
    }
}

struct Event {
    raw: NonNull<api::ggml_backend_event>,
    recorded: bool,
}

// SAFETY: an event may be used from any thread, by one at a time.
unsafe impl Send for Event {}

impl Event {
    fn new(device: &GpuDevice) -> Option<Self> {
        // SAFETY: the device is live and says that it has events.
        let raw = NonNull::new(unsafe { api::ggml_backend_event_new(device.raw()) })?;
        Some(Self { raw, recorded: false })
    }

    /// Waits for what was recorded last, if anything.
    fn wait(&mut self) {
        if std::mem::take(&mut self.recorded) {
            // SAFETY: the event is live and was recorded.
            unsafe { api::ggml_backend_event_synchronize(self.raw.as_ptr()) }
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: made in `new`, freed once; every fill ends with a synchronisation.
        unsafe { api::ggml_backend_event_free(self.raw.as_ptr()) }
    }
}
