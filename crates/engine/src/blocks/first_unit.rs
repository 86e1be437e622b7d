//! A unit that takes rows of a block before the others share the rest, wherever their experts
//! are. What it is (a device with static graphs, other machines) is its own business.

use crate::blocks::resident::ExpertPlaces;
use motley_ggml::{CpuUnit, ExpertBlock};
use motley_sched::Phase;
use std::sync::Arc;

/// Takes rows of the blocks of one session.
pub trait FirstUnit: Send {
    /// Sets rows of `block`, of a batch of `phase`, aside and begins to compute them; whether it
    /// took some. `cpu` is idle until this returns.
    fn begin(
        &mut self,
        phase: Phase,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<bool, String>;

    /// Waits for the rows begun and writes them; whether some have to be computed by the others
    /// after all, which are then the only ones of the block that are not set aside.
    fn finish(&mut self, block: &mut ExpertBlock<'_>) -> Result<bool, String>;
}

/// Makes one unit per session, which may see where experts are unless all are in memory.
pub type FirstUnitMaker = Arc<dyn Fn(Option<ExpertPlaces>) -> Box<dyn FirstUnit> + Send + Sync>;
