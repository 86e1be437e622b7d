//! The rows of one computation, with clones of the block's operations over one stack of
//! slots. Owns all it points at, so it may go to any thread; runs nothing itself.

use super::block::GpuBlock;
use super::refused::Refused;
use super::template::{Template, TemplatePart, empty_tensor};
use super::unit::{GpuExpert, Slots, Stack};
use crate::api;
use crate::seam::claim::is_view_op;
use std::ffi::CStr;

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
    pub(crate) input_tensor: *mut api::ggml_tensor,
    pub(crate) ids_tensor: *mut api::ggml_tensor,
    pub(crate) output_tensor: *mut api::ggml_tensor,
}

impl Piece {
    pub(super) fn new(
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

    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// (token, slot) of each row and what came out for it.
    pub(super) fn computed(&self) -> impl Iterator<Item = ((usize, usize), &[f32])> {
        let width = self.output.len() / self.rows.len().max(1);
        self.rows.iter().copied().zip(self.output.chunks_exact(width.max(1)))
    }

    /// Every tensor that needs a place, parents before their views.
    pub(crate) fn tensors_mut(&mut self) -> impl Iterator<Item = &mut api::ggml_tensor> {
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
pub(super) struct Operations {
    ids_tensor: Box<api::ggml_tensor>,
    /// The packed input and all operations.
    clones: Box<[api::ggml_tensor]>,
}

impl Operations {
    /// Refused when the stack or its device does not suit them.
    pub(super) fn new(
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
fn tensor_of(stack: &Stack, wanted: &TemplatePart) -> Result<*mut api::ggml_tensor, Refused> {
    let (matrix, part) = (wanted.matrix, wanted.part);
    let index = stack.shape.index_of(matrix, part).ok_or(Refused::Part { matrix, part })?;
    let tensor = stack.tensors[index];
    // SAFETY: the stack's tensors are live as long as the unit.
    let (ty, [row, rows, ..]) = unsafe { ((*tensor).type_, (*tensor).ne) };
    let same = ty == wanted.ty && row == wanted.row && wanted.rows.is_none_or(|r| r == rows);
    if same { Ok(tensor) } else { Err(Refused::Slot) }
}

fn check_operations(slots: &Slots, tensors: &[api::ggml_tensor]) -> Result<(), Refused> {
    for operation in tensors.iter().filter(|tensor| !is_view_op(tensor.op)) {
        // SAFETY: the clone and its sources are live; the name is a static string.
        unsafe {
            if !slots.device.computes(operation) {
                let name = CStr::from_ptr(api::ggml_op_desc(operation));
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
fn ids_tensor(rows: usize) -> api::ggml_tensor {
    let mut tensor = empty_tensor();
    tensor.type_ = api::GGML_TYPE_I32;
    tensor.ne = [1, rows as i64, 1, 1];
    let id = size_of::<i32>();
    tensor.nb = [id, id, id * rows, id * rows];
    tensor
}
