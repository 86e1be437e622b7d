//! What the model asks of expert bytes.

use motley_engine::batching::ComputeError;
use std::collections::BTreeSet;

/// All that the model asks of expert bytes: the seam where the drive loop joins.
pub trait ExpertBlocks {
    /// Computes `experts` of `layer`: shows the bytes of each once, matrix by matrix, in any order.
    /// Other things may happen meanwhile.
    fn run(
        &mut self,
        layer: u16,
        experts: &BTreeSet<u16>,
        show: &mut dyn FnMut(u16, &[&[u8]]),
    ) -> Result<(), ComputeError>;
}
