//! The rows of one block that go through one unit: prepared from a copy and run on any
//! thread, put back on the driver's. A task owns all it needs, so the CPU may compute other
//! rows of the block meanwhile.

use super::block::GpuBlock;
use super::lane::ComputeLane;
use super::piece::{GpuRow, Operations, Piece};
use super::refused::Refused;
use super::template::Template;
use super::unit::{GpuExpert, GpuUnit, Slots};
use crate::compute::outcome::ComputeOutcome;
use crate::seam::block::ExpertBlock;
use std::collections::BTreeMap;
use std::sync::Arc;

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
                if let Some((_, expert)) = block.expert(token, slot).and_then(find) {
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
        self.pieces.iter().map(|piece| piece.rows()).sum()
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
            for ((token, slot), row) in piece.computed() {
                block.write_row(token, slot, row);
            }
        }
    }
}
