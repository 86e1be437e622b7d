//! Who runs the blocks of a context: the trait that drivers implement. Holds no driver but
//! the plain one, for contexts nobody bound.

use super::block::ExpertBlock;
use crate::compute::blocks::Way;
use crate::compute::outcome::ComputeOutcome;
use crate::compute::subset::SubsetError;
use crate::compute::unit::CpuUnit;

/// Runs the routed-expert blocks of one context.
pub trait BlockExecutor: Send {
    /// Runs `block`: when it returns `Ok(Done)`, every output row has been written.
    /// An error ends the current `decode` with [`crate::DecodeError::Executor`];
    /// the context stays usable.
    fn execute(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError>;
}

/// Why an executor could not run a block, in words for the user.
#[derive(Debug, Clone, thiserror::Error)]
#[error("layer {layer}: {reason}")]
pub struct BlockError {
    /// Layer whose experts were to be computed.
    pub layer: u32,
    /// What went wrong.
    pub reason: String,
}

/// Executor of a context nobody bound: a plain CPU run.
pub(super) struct WholeOnCpu;

impl BlockExecutor for WholeOnCpu {
    fn execute(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        let layer = block.layer();
        let failed = |error: SubsetError| BlockError { layer, reason: error.to_string() };
        cpu.compute(block, Way::Whole).map_err(failed)
    }
}
