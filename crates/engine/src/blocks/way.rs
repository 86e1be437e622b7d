//! How the CPU computes a block: whole, or expert by expert.

use motley_ggml::{Cut, ExpertBlock, Way};
use motley_plan::ExpertKernels;

/// How a block is computed, in ggml's words. By its tokens and not by the rows that are ready, which
/// are a matter of time: a run repeated computes the same.
pub(crate) fn way_of(kernels: &ExpertKernels, block: &ExpertBlock<'_>) -> Way {
    let from = kernels.from_tokens(block.experts() as u32, block.slots() as u32);
    match block.tokens() >= from as usize || block.is_apart() {
        true => Way::Blocks(Cut {
            block_rows: kernels.block_rows,
            rearrange_from: kernels.rearranged_from_rows,
        }),
        false => Way::Whole,
    }
}
