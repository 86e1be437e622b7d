//! A unit beside the CPU that may take a block, whole or in part. What it is (a
//! static-graph device, say) is its own business.

use motley_ggml::{ComputeOutcome, CpuUnit, ExpertBlock};
use motley_plan::ExpertKernels;
use motley_sched::Phase;
use std::sync::Arc;

/// Takes blocks of one session.
pub trait BlockHelper: Send {
    /// Computes `block`, of a batch of `phase`, together with `cpu`, which computes as
    /// `kernels` say: every output row has been written when it returns an outcome. `None` leaves the whole block to the CPU, untouched.
    fn run(
        &mut self,
        phase: Phase,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
        kernels: &ExpertKernels,
    ) -> Result<Option<ComputeOutcome>, String>;
}

/// Makes one helper per session.
pub type HelperMaker = Arc<dyn Fn() -> Box<dyn BlockHelper> + Send + Sync>;
