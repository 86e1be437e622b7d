//! Computing a block with expert bytes that lie in arena slots: the rows of some
//! experts now, the others when their bytes have come. Exact: an output row depends
//! on its own token and expert only, so any grouping gives the same bits.
//!
//! When all experts of the block are resident, the block's own graph runs with its
//! weights and ids pointed at the slots. Otherwise the rows that can run are packed
//! (`k' = 1, n' = rows`), the operations between are cloned from the graph, and the
//! results are put in their places.

use super::clone::{CloneError, PackedShape};
use super::outcome::ComputeOutcome;
use super::packed::CpuClones;
use super::stream::CpuStream;
use crate::api;
use crate::seam::arena_weight::ArenaWeight;
use crate::seam::block::ExpertBlock;
use crate::seam::matrix::ExpertMatrix;
use motley_model::{Matrix, TensorPart};
use motley_store::{Filled, FilledExpert};

/// Why rows could not be computed from slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubsetError {
    /// A weight of the block is none of gate, up, gate_up and down.
    #[error("the block has a weight that is not a routed expert's")]
    UnknownMatrix,
    /// An expert has no slot for a matrix of the block, or one of another size.
    #[error("expert {expert} has no bytes for its {matrix:?} matrix")]
    Bytes {
        /// Its number in the layer.
        expert: u32,
        /// Which of the expert's.
        matrix: Matrix,
    },
    /// Slots of one matrix are in different arenas, or begin at different places.
    #[error("the slots of expert {expert} do not line up with the others'")]
    Misaligned {
        /// Its number in the layer.
        expert: u32,
    },
    /// The router chose an expert the layer does not have.
    #[error("there is no expert {expert}")]
    UnknownExpert {
        /// Its number in the layer.
        expert: u32,
    },
    /// ggml gives no backend for a thread.
    #[error("no backend for one more thread")]
    NoThreads,
    /// The operations between cannot be cloned.
    #[error(transparent)]
    Clone(#[from] CloneError),
}

/// Scratch of one CPU unit; grows to the largest block seen.
#[derive(Default)]
pub(crate) struct Subset {
    /// By expert: its index among the given ones, or -1.
    given: Vec<i32>,
    /// (token, slot) of each row that can run, and its expert.
    rows: Vec<(usize, usize)>,
    expert_ids: Vec<i32>,
    /// Arena slots of each row, matrix after matrix.
    slot_ids: Vec<i32>,
    weights: Vec<ArenaWeight>,
    clones: CpuClones,
}

// SAFETY: the tensors hold addresses that are set anew in every call and not used after it.
unsafe impl Send for Subset {}

impl Subset {
    /// Computes the rows of `block` that belong to `experts`, from their slots.
    pub(super) fn run_experts(
        &mut self,
        cpu: &mut CpuStream,
        block: &mut ExpertBlock<'_>,
        experts: &[(u32, &FilledExpert)],
    ) -> Result<ComputeOutcome, SubsetError> {
        self.collect_rows(block, experts);
        if self.rows.is_empty() {
            return Ok(ComputeOutcome::Done);
        }
        let whole = self.rows.len() == block.tokens() * block.slots();
        self.point_weights(block, experts, if whole { block.slots() } else { 1 })?;
        if whole {
            return Ok(self.run_whole(cpu, block));
        }
        self.run_packed(cpu, block)
    }

    /// Computes these rows, (token, slot) each, with the weights the block came with.
    pub(super) fn run_rows(
        &mut self,
        cpu: &mut CpuStream,
        block: &mut ExpertBlock<'_>,
        rows: &[(usize, usize)],
    ) -> Result<ComputeOutcome, SubsetError> {
        if rows.is_empty() {
            return Ok(ComputeOutcome::Done);
        }
        self.take_rows(block, rows);
        self.run_packed(cpu, block)
    }

    /// One tensor per matrix of the block that sees the arena as its stack of
    /// experts, with the rows' slots as ids `[slots, rows / slots]`.
    fn point_weights(
        &mut self,
        block: &ExpertBlock<'_>,
        experts: &[(u32, &FilledExpert)],
        slots_per_token: usize,
    ) -> Result<(), SubsetError> {
        self.weights.clear();
        self.slot_ids.clear();
        // Room for all matrices at once: the ids must not move afterwards.
        self.slot_ids.reserve(self.rows.len() * block.matrices().count());
        let Some(&(_, first)) = experts.first() else { return Ok(()) };
        for matrix in block.matrices() {
            let kind = matrix.matrix().ok_or(SubsetError::UnknownMatrix)?;
            let reference = slot(experts[0].0, first, kind, &matrix)?;
            let mut slots = 0;
            for &(expert, filled) in experts {
                let filled = slot(expert, filled, kind, &matrix)?;
                if filled.arena().base() != reference.arena().base()
                    || filled.at_bytes() != reference.at_bytes()
                {
                    return Err(SubsetError::Misaligned { expert });
                }
                slots = slots.max(filled.index() + 1);
            }
            let start = self.slot_ids.len();
            for &expert in &self.expert_ids {
                let (_, filled) = experts[self.given[expert as usize] as usize];
                let index = filled.get(kind, TensorPart::Weight).map_or(0, Filled::index);
                self.slot_ids.push(index as i32);
            }
            self.weights.push(ArenaWeight {
                stack: weight_in_arena(&matrix, reference, slots),
                ids: ids_tensor(&mut self.slot_ids[start..], slots_per_token),
            });
        }
        Ok(())
    }

    fn collect_rows(&mut self, block: &ExpertBlock<'_>, experts: &[(u32, &FilledExpert)]) {
        self.given.fill(-1);
        for (index, &(expert, _)) in experts.iter().enumerate() {
            let expert = expert as usize;
            if self.given.len() <= expert {
                self.given.resize(expert + 1, -1);
            }
            self.given[expert] = index as i32;
        }
        self.rows.clear();
        self.expert_ids.clear();
        for (token, slot, expert) in block.rows() {
            if self.given.get(expert as usize).is_some_and(|&index| index >= 0) {
                self.rows.push((token, slot));
                self.expert_ids.push(expert as i32);
            }
        }
    }

    /// These rows and the block's own stacks, in which experts have their own numbers.
    fn take_rows(&mut self, block: &ExpertBlock<'_>, rows: &[(usize, usize)]) {
        self.rows.clear();
        self.rows.extend_from_slice(rows);
        self.expert_ids.clear();
        let expert = |&(token, slot): &(usize, usize)| block.expert(token, slot) as i32;
        self.expert_ids.extend(rows.iter().map(expert));
        self.slot_ids.clear();
        self.slot_ids.extend_from_slice(&self.expert_ids);
        self.weights.clear();
        for matrix in block.matrices() {
            self.weights.push(ArenaWeight {
                stack: matrix.tensor_copy(),
                ids: ids_tensor(&mut self.slot_ids, 1),
            });
        }
    }

    /// All rows: the block's own graph, with weights and ids exchanged for the call.
    fn run_whole(&mut self, cpu: &mut CpuStream, block: &mut ExpertBlock<'_>) -> ComputeOutcome {
        let saved = block.exchange_weights(&mut self.weights);
        // SAFETY: the graph of a block is live for the block's life, and so is what it points at.
        let outcome = unsafe { cpu.compute(block.graph()) };
        block.restore_weights(saved);
        outcome
    }

    /// Some rows: packed, computed in clones, scattered.
    fn run_packed(
        &mut self,
        cpu: &mut CpuStream,
        block: &mut ExpertBlock<'_>,
    ) -> Result<ComputeOutcome, SubsetError> {
        let shape = PackedShape::of(block, self.rows.len());
        let mut expert_ids = ids_tensor(&mut self.expert_ids, 1);
        let mut packed = self.clones.build(block, shape, &mut self.weights, &mut expert_ids)?;
        for (row, &(token, slot)) in self.rows.iter().enumerate() {
            packed.input_row(row).copy_from_slice(block.hidden_row(token, slot));
        }
        // SAFETY: the clones and everything they point at live until the end of this call.
        let outcome = unsafe { cpu.compute(packed.graph()) };
        for (row, &(token, slot)) in self.rows.iter().enumerate() {
            block.output_row_mut(token, slot).copy_from_slice(packed.output_row(row));
        }
        Ok(outcome)
    }
}

fn slot<'a>(
    expert: u32,
    filled: &'a FilledExpert,
    kind: Matrix,
    matrix: &ExpertMatrix<'_>,
) -> Result<&'a Filled, SubsetError> {
    filled
        .get(kind, TensorPart::Weight)
        .filter(|slot| slot.bytes().len() == matrix.expert_bytes())
        .ok_or(SubsetError::Bytes { expert, matrix: kind })
}

/// The block's weight with the arena's slots as its experts: same type and rows,
/// another base and another stride.
fn weight_in_arena(matrix: &ExpertMatrix<'_>, slot: &Filled, slots: u32) -> api::ggml_tensor {
    let mut tensor = matrix.tensor_copy();
    let stride = slot.arena().stride_bytes();
    tensor.buffer = std::ptr::null_mut();
    tensor.extra = std::ptr::null_mut();
    tensor.ne[2] = i64::from(slots);
    tensor.nb[2] = stride;
    tensor.nb[3] = stride * slots as usize;
    tensor.data = slot.arena().base().as_ptr().wrapping_add(slot.at_bytes()).cast();
    tensor
}

/// `values` as an I32 tensor `[slots, values / slots]`; reads them in place.
fn ids_tensor(values: &mut [i32], slots: usize) -> api::ggml_tensor {
    // SAFETY: all-zero is a valid tensor: no sources, no buffer, operation NONE.
    let mut tensor: api::ggml_tensor = unsafe { std::mem::zeroed() };
    tensor.type_ = api::GGML_TYPE_I32;
    let tokens = values.len() / slots;
    tensor.ne = [slots as i64, tokens as i64, 1, 1];
    let row = size_of::<i32>() * slots;
    tensor.nb = [size_of::<i32>(), row, row * tokens, row * tokens];
    tensor.data = values.as_mut_ptr().cast();
    tensor
}
