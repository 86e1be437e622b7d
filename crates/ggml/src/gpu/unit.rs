//! The slots of one device and who has them. Lends slots and takes them back; what is in
//! them, and what deserves to be, is for others.

use super::device::GpuDevice;
use super::shape::{ShapeClass, SlotPart, SlotShape, classes, slots_within, workspace_row_bytes};
use crate::api;
use crate::compute::tensors::{Buffer, Tensors};
use motley_model::{ModelSpec, TensorPart};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most slots of one stack: kernels start work for every expert of a stack, used or not, and
/// those of Vulkan are slower from 1024 on (docs/decisions/0070).
const STACK_SLOTS_MAX: u64 = 512;

/// How much of a device a unit takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuOptions {
    /// Device memory for slots and one compute lane's workspace together.
    pub budget_bytes: u64,
    /// Most of it for the workspace.
    pub workspace_bytes: u64,
    /// Rows of one computation; tasks with more run in pieces. Lowered where the
    /// workspace would take more than it may.
    pub max_rows: u32,
    /// Largest single tensor, where a driver is known to fail with larger ones; the
    /// device's own limit holds in any case.
    pub largest_tensor_bytes: u64,
}

impl GpuOptions {
    /// A unit within `budget_bytes`, of which at most `workspace_bytes` are for rows.
    pub fn within(budget_bytes: u64, workspace_bytes: u64) -> Self {
        Self { budget_bytes, workspace_bytes, max_rows: 512, largest_tensor_bytes: u64::MAX }
    }
}

/// Why a unit or a lane of it could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// No layer has routed experts whose tensors are matrices and rows.
    #[error("the model has no routed experts that fit slots")]
    NoExperts,
    /// Not one expert fits.
    #[error("{budget_bytes} bytes hold no expert; the least is {least_bytes}")]
    NoRoom {
        /// Budget given.
        budget_bytes: u64,
        /// With which there is one slot per shape.
        least_bytes: u64,
    },
    /// The device gave no memory.
    #[error("{device}: no memory for {bytes} bytes; give it a smaller budget")]
    Memory {
        /// ggml's name of it (`CUDA0`).
        device: String,
        /// Asked for, all tensors of a stack or a lane together.
        bytes: u64,
    },
    /// The device gave no stream of work.
    #[error("{device}: the device cannot be started")]
    Start {
        /// ggml's name of it (`CUDA0`).
        device: String,
    },
}

/// Slots on one device; clones are the same unit.
#[derive(Clone)]
pub struct GpuUnit(pub(crate) Arc<Slots>);

/// What unit, leases, lanes and tasks share.
pub(crate) struct Slots {
    pub(crate) device: GpuDevice,
    pub(crate) stacks: Vec<Stack>,
    /// By layer: its stacks, the preferred one first.
    layers: Vec<Vec<usize>>,
    /// Rows and bytes of a lane's workspace.
    pub(crate) max_rows: usize,
    pub(crate) workspace_bytes: usize,
    /// Width of the widest row that goes in or comes out.
    pub(crate) widest_row: usize,
}

/// Slots of one shape in device tensors, one per part, `[row, rows, slots]`.
pub(crate) struct Stack {
    pub(crate) shape: SlotShape,
    pub(crate) tensors: Vec<*mut api::ggml_tensor>,
    slots: u32,
    free: Mutex<BTreeSet<u32>>,
    buffer: Buffer,
    _tensors: Tensors,
}

// SAFETY: the tensors' descriptions are not changed after `new`; what they hold is written
// under an exclusive lease and read under a shared one.
unsafe impl Send for Stack {}
// SAFETY: as above.
unsafe impl Sync for Stack {}

impl GpuUnit {
    /// Slots for the experts of `spec` within the budget. Where quantisation differs by
    /// layer, each shape gets its share; there are never more slots than experts.
    pub fn new(
        device: &GpuDevice,
        spec: &ModelSpec,
        options: &GpuOptions,
    ) -> Result<Self, UnitError> {
        Self::of_layers(device, spec, &|_| true, options)
    }

    /// The same for some layers of it: where several devices divide them.
    pub fn of_layers(
        device: &GpuDevice,
        spec: &ModelSpec,
        is_served: &dyn Fn(u32) -> bool,
        options: &GpuOptions,
    ) -> Result<Self, UnitError> {
        let classes = classes(spec, is_served);
        if classes.is_empty() {
            return Err(UnitError::NoExperts);
        }
        let (max_rows, workspace_bytes) = workspace(&classes, options);
        let budget_bytes = options.budget_bytes.saturating_sub(workspace_bytes as u64);
        let counts = slots_within(&classes, budget_bytes);
        if counts.iter().all(|&slots| slots == 0) {
            let least = least_bytes(&classes);
            return Err(UnitError::NoRoom { budget_bytes, least_bytes: least });
        }
        let mut stacks = Vec::new();
        let mut layers = vec![Vec::new(); spec.layers.len()];
        for (class, slots) in classes.iter().zip(counts) {
            let first = stacks.len();
            stacks.extend(stacks_of(device, &class.shape, slots, options)?);
            prefer(&mut layers, &class.layers, first..stacks.len());
        }
        let widest_row = widest_row(&classes);
        let device = device.clone();
        let slots = Slots { device, stacks, layers, max_rows, workspace_bytes, widest_row };
        Ok(Self(Arc::new(slots)))
    }

    /// Where its slots lie.
    pub fn device(&self) -> &GpuDevice {
        &self.0.device
    }

    /// Slots of all shapes.
    pub fn slots(&self) -> u32 {
        self.0.stacks.iter().map(|stack| stack.slots).sum()
    }

    /// Slots that can hold an expert of `layer`.
    pub fn slots_of(&self, layer: u32) -> u32 {
        self.0.stacks_of(layer).map(|(_, stack)| stack.slots).sum()
    }

    /// Slots nobody has, of those.
    pub fn free_slots_of(&self, layer: u32) -> u32 {
        self.0.stacks_of(layer).map(|(_, stack)| stack.free().len() as u32).sum()
    }

    /// What a fill copies for an expert of `layer`; 0 when it has no slots.
    pub fn expert_bytes(&self, layer: u32) -> u64 {
        self.0.stacks_of(layer).next().map_or(0, |(_, stack)| stack.shape.bytes())
    }

    /// Device memory of the slots and of one compute lane.
    pub fn bytes(&self) -> u64 {
        let slots = self.0.stacks.iter().map(|stack| stack.buffer.size_bytes() as u64);
        slots.sum::<u64>() + self.0.workspace_bytes as u64
    }

    /// A slot for an expert of `layer`; `None` when all that suit are taken. Experts of a
    /// layer come into the same device tensors while there is room: each further one is
    /// one more computation per task.
    pub fn lease(&self, layer: u32) -> Option<GpuLease> {
        self.0.stacks_of(layer).find_map(|(index, stack)| {
            let slot = stack.free().pop_first()?;
            Some(GpuLease { slots: Arc::clone(&self.0), stack: index, slot })
        })
    }
}

impl Slots {
    pub(crate) fn stacks_of(&self, layer: u32) -> impl Iterator<Item = (usize, &Stack)> {
        let indices = self.layers.get(layer as usize).map_or(&[][..], Vec::as_slice);
        indices.iter().map(|&index| (index, &self.stacks[index]))
    }

    pub(crate) fn memory_error(&self, bytes: usize) -> UnitError {
        memory_error(&self.device, bytes as u64)
    }

    pub(crate) fn start_error(&self) -> UnitError {
        UnitError::Start { device: self.device.info().name.clone() }
    }
}

impl Stack {
    fn new(device: &GpuDevice, shape: &SlotShape, slots: u32) -> Result<Self, UnitError> {
        let bytes = shape.bytes() * u64::from(slots);
        let error = || memory_error(device, bytes);
        let holder = Tensors::new(shape.parts.len()).ok_or_else(error)?;
        let tensors = shape.parts.iter().map(|part| {
            let (row, rows, slots) = (part.row as i64, part.rows as i64, i64::from(slots));
            // `ADD_ID` wants its rows in a plain matrix.
            let dims =
                if part.part == TensorPart::Bias { [row, slots, 1] } else { [row, rows, slots] };
            let tensor = holder.tensor(part.ty.id() as api::ggml_type, dims);
            // SAFETY: the tensor is live. A name keeps ggml from giving it one later,
            // when other threads look at it.
            unsafe { api::ggml_set_name(tensor, c"experts".as_ptr()) };
            tensor
        });
        let tensors = tensors.collect();
        let buffer = holder.allocate(device.buffer_type()).ok_or_else(error)?;
        // Kernels may load, and multiply with zero, what lies behind a row: never a NaN.
        buffer.clear();
        let free = Mutex::new((0..slots).collect());
        Ok(Self { shape: shape.clone(), tensors, slots, free, buffer, _tensors: holder })
    }

    fn free(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot that one holder may fill; dropping it gives it back.
pub struct GpuLease {
    pub(crate) slots: Arc<Slots>,
    pub(crate) stack: usize,
    pub(crate) slot: u32,
}

impl GpuLease {
    pub(crate) fn stack(&self) -> &Stack {
        &self.slots.stacks[self.stack]
    }
}

impl std::fmt::Debug for GpuLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GpuLease({}, {}/{})", self.slots.device.info().name, self.stack, self.slot)
    }
}

impl Drop for GpuLease {
    fn drop(&mut self) {
        self.stack().free().insert(self.slot);
    }
}

/// An expert on a device. Clones are the same slot, which comes free with the last of
/// them, tasks' included.
#[derive(Debug, Clone)]
pub struct GpuExpert(pub(crate) Arc<GpuLease>);

impl GpuExpert {
    /// Whether nobody else (a task, say) holds it.
    pub fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

/// Rows of a computation and bytes of the memory they need.
fn workspace(classes: &[ShapeClass], options: &GpuOptions) -> (usize, usize) {
    let row_bytes = workspace_row_bytes(classes).max(1);
    let affordable = options.workspace_bytes / row_bytes;
    let rows = u64::from(options.max_rows).min(affordable).max(1);
    (rows as usize, (rows * row_bytes) as usize)
}

/// With one slot of each shape in its share, and the smallest workspace.
fn least_bytes(classes: &[ShapeClass]) -> u64 {
    let slots = classes.iter().map(|class| class.shape.bytes()).max().unwrap_or(0);
    slots * classes.len() as u64 + workspace_row_bytes(classes)
}

fn widest_row(classes: &[ShapeClass]) -> usize {
    let parts = classes.iter().flat_map(|class| &class.shape.parts);
    parts.map(|part| part.row.max(part.rows)).max().unwrap_or(0) as usize
}

/// As many stacks as [`STACK_SLOTS_MAX`], the largest buffer and the device's kernels make
/// necessary, evenly filled.
fn stacks_of(
    device: &GpuDevice,
    shape: &SlotShape,
    slots: u32,
    options: &GpuOptions,
) -> Result<Vec<Stack>, UnitError> {
    // SAFETY: buffer types live until the process ends.
    let device_limit = unsafe { api::ggml_backend_buft_get_max_size(device.buffer_type()) } as u64;
    let largest = shape.parts.iter().map(|part| part.bytes).max().unwrap_or(1).max(1);
    let largest_bytes = device_limit.min(options.largest_tensor_bytes);
    let most = (largest_bytes / largest).clamp(1, STACK_SLOTS_MAX);
    let most = computed_slots(device, shape, most);
    let count = u64::from(slots).div_ceil(most) as u32;
    let share = |index: u32| slots / count + u32::from(index < slots % count);
    (0..count).map(|index| Stack::new(device, shape, share(index))).collect()
}

/// How many slots of up to `most` the device's kernels take in one tensor: they may address less
/// than a buffer holds (Vulkan's `maxStorageBufferRange`, 128 MiB on lavapipe).
fn computed_slots(device: &GpuDevice, shape: &SlotShape, most: u64) -> u64 {
    let weights = || shape.parts.iter().filter(|part| part.part == TensorPart::Weight);
    let halved = std::iter::successors(Some(most), |slots| (*slots > 1).then_some(slots / 2));
    // A device that takes no size at all says so when a task is prepared.
    halved
        .clone()
        .find(|&slots| weights().all(|part| is_computed(device, part, slots)))
        .unwrap_or(most)
}

/// Whether the device multiplies with a stack of `slots` such matrices.
fn is_computed(device: &GpuDevice, part: &SlotPart, slots: u64) -> bool {
    let Some(holder) = Tensors::new(4) else { return false };
    let ty = part.ty.id() as api::ggml_type;
    let stack = holder.tensor(ty, [part.row as i64, part.rows as i64, slots as i64]);
    let row = holder.tensor(api::GGML_TYPE_F32, [part.row as i64, 1, 1]);
    let ids = holder.tensor(api::GGML_TYPE_I32, [1, 1, 1]);
    // SAFETY: tensors of the holder, which is live; the shapes are those of a multiplication.
    unsafe { device.computes(api::ggml_mul_mat_id(holder.raw(), stack, row, ids)) }
}

/// Gives each layer all stacks of its shape, beginning with its own part of them.
fn prefer(layers: &mut [Vec<usize>], of_shape: &[u32], stacks: std::ops::Range<usize>) {
    let (first, count) = (stacks.start, stacks.len());
    for (nth, &layer) in of_shape.iter().enumerate() {
        let own = nth * count / of_shape.len();
        if let Some(indices) = layers.get_mut(layer as usize) {
            indices.extend((0..count).map(|step| first + (own + step) % count));
        }
    }
}

fn memory_error(device: &GpuDevice, bytes: u64) -> UnitError {
    UnitError::Memory { device: device.info().name.clone(), bytes }
}
