//! What units need of a block, copied: the rows, the routing and the operations. The block
//! itself belongs to the driver's thread; this may go anywhere.

use super::refused::Refused;
use super::template::Template;
use crate::seam::block::ExpertBlock;

/// A block on its way to units; any number of tasks can be prepared from it.
pub struct GpuBlock {
    layer: u32,
    tokens: usize,
    slots: usize,
    /// By (token, slot); `None` where the row is set aside.
    experts: Vec<Option<u32>>,
    width: usize,
    /// One row per token, or per (token, slot) where they differ by slot.
    hidden: Vec<f32>,
    pub(crate) template: Template,
}

impl GpuBlock {
    /// Copies what is needed of `block`; refused when its operations cannot be cloned.
    pub fn of(block: &ExpertBlock<'_>) -> Result<Self, Refused> {
        let (tokens, slots) = (block.tokens(), block.slots());
        let template = Template::of(block)?;
        let per_token = if block.hidden_differs_by_slot() { slots } else { 1 };
        let width = block.hidden_width();
        let mut hidden = Vec::with_capacity(tokens * per_token * width);
        let mut experts = vec![None; tokens * slots];
        for (token, slot, expert) in block.rows() {
            experts[token * slots + slot] = Some(expert);
        }
        for token in 0..tokens {
            for slot in 0..per_token {
                hidden.extend_from_slice(block.hidden_row(token, slot));
            }
        }
        Ok(Self { layer: block.layer(), tokens, slots, experts, width, hidden, template })
    }

    /// Layer number.
    pub fn layer(&self) -> u32 {
        self.layer
    }

    /// Tokens of the block.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Experts per token (k).
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Expert chosen for (`token`, `slot`); none where the row is set aside.
    pub fn expert(&self, token: usize, slot: usize) -> Option<u32> {
        assert!(token < self.tokens && slot < self.slots);
        self.experts[token * self.slots + slot]
    }

    /// Row the expert of (`token`, `slot`) reads.
    pub(crate) fn hidden_row(&self, token: usize, slot: usize) -> &[f32] {
        assert!(token < self.tokens && slot < self.slots);
        let per_token = self.hidden.len() / (self.tokens * self.width);
        let row = token * per_token + slot.min(per_token - 1);
        &self.hidden[row * self.width..][..self.width]
    }

    pub(crate) fn hidden_width(&self) -> usize {
        self.width
    }
}
