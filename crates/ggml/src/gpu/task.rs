//! The rows of one block that go through one unit: prepared from a copy and run on any
//! thread, put back on the driver's. A task owns all it needs, so the CPU may compute other
//! rows of the block meanwhile.

use super::block::GpuBlock;
use super::lane::ComputeLane;
use super::template::{Template, TemplatePart, empty_tensor};
use super::unit::{GpuExpert, GpuUnit, Slots, Stack};
use crate::backend::ComputeOutcome;
use crate::block::ExpertBlock;
use crate::claim::is_view_op;
use crate::clone::CloneError;
use llama_cpp_sys_2 as sys;
use motley_model::{Matrix, Part};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::Arc;

/// One row of a block, and where its expert lies.
#[derive(Debug, Clone, Copy)]
pub struct GpuRow<'a> {
    /// Token of the block.
    pub token: usize,
    /// Which of its experts.
    pub slot: usize,
    /// That expert.
    pub expert: &'a GpuExpert,
}

/// Why a unit does not take rows; the CPU can.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// A slot is another unit's, or holds an expert of another shape.
    #[error("a slot does not hold an expert of this layer")]
    Slot,
    /// The slot has no such part.
    #[error("slots have no {part:?} of {matrix:?}")]
    Part {
        /// The matrix.
        matrix: Matrix,
        /// The part.
        part: Part,
    },
    /// A weight of the block is none of gate, up, gate_up and down.
    #[error("the block has a weight that is no routed expert's")]
    UnknownMatrix,
    /// The device lacks an operation of the block.
    #[error("{device} does not compute {operation}")]
    Operation {
        /// The device's name.
        device: String,
        /// ggml's name of the operation.
        operation: String,
    },
    /// One row needs more than the workspace.
    #[error("a row needs {row_bytes} bytes, more than the workspace of {workspace_bytes}")]
    Workspace {
        /// Of one row.
        row_bytes: usize,
        /// The workspace.
        workspace_bytes: usize,
    },
    /// The operations cannot be cloned.
    #[error(transparent)]
    Clone(#[from] CloneError),
}

/// Rows on their way through a unit.
pub struct GpuTask {
    slots: Arc<Slots>,
    layer: u32,
    pieces: Vec<Piece>,
    /// Keeps the slots from being filled anew until the rows are computed.
    experts: Vec<GpuExpert>,
}

impl GpuUnit {
    /// A task over these rows of `block`.
    pub fn prepare(&self, block: &GpuBlock, rows: &[GpuRow<'_>]) -> Result<GpuTask, Refused> {
        let mut by_stack: BTreeMap<usize, Vec<GpuRow<'_>>> = BTreeMap::new();
        for row in rows {
            if !Arc::ptr_eq(&row.expert.0.slots, &self.0) {
                return Err(Refused::Slot);
            }
            by_stack.entry(row.expert.0.stack).or_default().push(*row);
        }
        let most = self.rows_at_once(&block.template)?;
        let mut pieces = Vec::new();
        for (stack, rows) in by_stack {
            for rows in rows.chunks(most) {
                pieces.push(Piece::new(&self.0, &self.0.stacks[stack], block, rows)?);
            }
        }
        let experts = rows.iter().map(|row| row.expert.clone()).collect();
        let (slots, layer) = (Arc::clone(&self.0), block.layer());
        Ok(GpuTask { slots, layer, pieces, experts })
    }

    /// Whether tasks over rows of `block` would be taken, as far as that does not depend on where
    /// its experts lie.
    pub fn check(&self, block: &GpuBlock) -> Result<(), Refused> {
        let most = self.rows_at_once(&block.template)?;
        let (_, stack) = self.0.stacks_of(block.layer()).next().ok_or(Refused::Slot)?;
        let rows = most.min(block.tokens() * block.slots());
        Operations::new(&self.0, stack, &block.template, rows).map(drop)
    }

    /// A task over all rows of these experts: (number in the layer, its slot).
    pub fn prepare_experts(
        &self,
        block: &GpuBlock,
        experts: &[(u32, &GpuExpert)],
    ) -> Result<GpuTask, Refused> {
        let find = |wanted| experts.iter().find(|(number, _)| *number == wanted);
        let mut rows = Vec::new();
        for token in 0..block.tokens() {
            for slot in 0..block.slots() {
                if let Some((_, expert)) = find(block.expert(token, slot)) {
                    rows.push(GpuRow { token, slot, expert });
                }
            }
        }
        self.prepare(block, &rows)
    }

    fn rows_at_once(&self, template: &Template) -> Result<usize, Refused> {
        let row_bytes = template.row_bytes();
        let workspace_bytes = self.0.workspace_bytes;
        match (workspace_bytes / row_bytes).min(self.0.max_rows) {
            0 => Err(Refused::Workspace { row_bytes, workspace_bytes }),
            rows => Ok(rows),
        }
    }
}

impl GpuTask {
    /// Rows of the task.
    pub fn rows(&self) -> usize {
        self.pieces.iter().map(|piece| piece.rows.len()).sum()
    }

    /// Device computations it takes: one, unless its rows or its experts' slots are many.
    pub fn computations(&self) -> usize {
        self.pieces.len()
    }

    /// Computes the rows, once: up, computation, one read-back. The first failure ends it.
    /// The experts' slots are let go when it returns; the rows stay until the task is dropped.
    ///
    /// # Panics
    /// When `lane` is another unit's, or the task has run.
    pub fn run(&mut self, lane: &mut ComputeLane) -> ComputeOutcome {
        assert!(lane.serves(&self.slots), "a task runs on a lane of its own unit");
        let experts = std::mem::take(&mut self.experts);
        assert_eq!(experts.len(), self.rows(), "a task runs once");
        for piece in &mut self.pieces {
            match lane.run(piece) {
                ComputeOutcome::Done => {}
                failed => return failed,
            }
        }
        ComputeOutcome::Done
    }

    /// Writes the rows where they belong.
    ///
    /// # Panics
    /// When `block` is not the one the task came from.
    pub fn scatter(&self, block: &mut ExpertBlock<'_>) {
        assert_eq!(self.layer, block.layer(), "the block the task came from");
        for piece in &self.pieces {
            let width = piece.output.len() / piece.rows.len().max(1);
            let outputs = piece.output.chunks_exact(width.max(1));
            for (&(token, slot), row) in piece.rows.iter().zip(outputs) {
                block.write_row(token, slot, row);
            }
        }
    }
}

/// Rows of one computation, with clones of the block's operations over one stack.
pub(crate) struct Piece {
    rows: Vec<(usize, usize)>,
    ids: Vec<i32>,
    input: Vec<f32>,
    output: Vec<f32>,
    operations: Operations,
}

// SAFETY: the clones' sources are the piece's own tensors, at fixed addresses on the heap, and
// tensors of the unit's stacks, which the task keeps alive; nothing points into the block.
unsafe impl Send for Piece {}

/// What a lane moves and computes.
pub(crate) struct PieceParts<'p> {
    pub(crate) input: &'p [f32],
    pub(crate) ids: &'p [i32],
    pub(crate) output: &'p mut [f32],
    pub(crate) input_tensor: *mut sys::ggml_tensor,
    pub(crate) ids_tensor: *mut sys::ggml_tensor,
    pub(crate) output_tensor: *mut sys::ggml_tensor,
}

impl Piece {
    fn new(
        slots: &Slots,
        stack: &Stack,
        block: &GpuBlock,
        rows: &[GpuRow<'_>],
    ) -> Result<Self, Refused> {
        let operations = Operations::new(slots, stack, &block.template, rows.len())?;
        let mut input = Vec::with_capacity(rows.len() * block.hidden_width());
        for row in rows {
            input.extend_from_slice(block.hidden_row(row.token, row.slot));
        }
        Ok(Self {
            rows: rows.iter().map(|row| (row.token, row.slot)).collect(),
            ids: rows.iter().map(|row| row.expert.0.slot as i32).collect(),
            input,
            output: vec![0.0; rows.len() * block.template.output_width()],
            operations,
        })
    }

    /// Every tensor that needs a place, parents before their views.
    pub(crate) fn tensors_mut(&mut self) -> impl Iterator<Item = &mut sys::ggml_tensor> {
        let Operations { ids_tensor, clones } = &mut self.operations;
        std::iter::once(&mut **ids_tensor).chain(clones)
    }

    pub(crate) fn parts(&mut self) -> PieceParts<'_> {
        let Operations { ids_tensor, clones } = &mut self.operations;
        let last = clones.iter().rposition(|tensor| !is_view_op(tensor.op)).unwrap_or(0);
        let base = clones.as_mut_ptr();
        PieceParts {
            input: &self.input,
            ids: &self.ids,
            output: &mut self.output,
            input_tensor: base,
            ids_tensor: &raw mut **ids_tensor,
            output_tensor: base.wrapping_add(last),
        }
    }
}

/// Clones of a block's operations over one stack, for some number of rows.
struct Operations {
    ids_tensor: Box<sys::ggml_tensor>,
    /// The packed input and all operations.
    clones: Box<[sys::ggml_tensor]>,
}

impl Operations {
    /// Refused when the stack or its device does not suit them.
    fn new(
        slots: &Slots,
        stack: &Stack,
        template: &Template,
        rows: usize,
    ) -> Result<Self, Refused> {
        let weights = template.parts.iter().map(|part| tensor_of(stack, part));
        let weights = weights.collect::<Result<Vec<_>, _>>()?;
        let mut ids_tensor = Box::new(ids_tensor(rows));
        let clones = template.make(rows, &raw mut *ids_tensor, &weights);
        check_operations(slots, &clones)?;
        Ok(Self { ids_tensor, clones })
    }
}

/// The stack's tensor for a part of the block; refused when it is of another kind.
fn tensor_of(stack: &Stack, wanted: &TemplatePart) -> Result<*mut sys::ggml_tensor, Refused> {
    let (matrix, part) = (wanted.matrix, wanted.part);
    let index = stack.shape.index_of(matrix, part).ok_or(Refused::Part { matrix, part })?;
    let tensor = stack.tensors[index];
    // SAFETY: the stack's tensors are live as long as the unit.
    let (ty, [row, rows, ..]) = unsafe { ((*tensor).type_, (*tensor).ne) };
    let same = ty == wanted.ty && row == wanted.row && wanted.rows.is_none_or(|r| r == rows);
    if same { Ok(tensor) } else { Err(Refused::Slot) }
}

fn check_operations(slots: &Slots, tensors: &[sys::ggml_tensor]) -> Result<(), Refused> {
    for operation in tensors.iter().filter(|tensor| !is_view_op(tensor.op)) {
        // SAFETY: the clone and its sources are live; the name is a static string.
        unsafe {
            if !slots.device.computes(operation) {
                let name = CStr::from_ptr(sys::ggml_op_desc(operation));
                return Err(Refused::Operation {
                    device: slots.device.info().name.clone(),
                    operation: name.to_string_lossy().into_owned(),
                });
            }
        }
    }
    Ok(())
}

/// I32 `[1, rows]` without data.
fn ids_tensor(rows: usize) -> sys::ggml_tensor {
    let mut tensor = empty_tensor();
    tensor.type_ = sys::GGML_TYPE_I32;
    tensor.ne = [1, rows as i64, 1, 1];
    let id = size_of::<i32>();
    tensor.nb = [id, id, id * rows, id * rows];
    tensor
}
