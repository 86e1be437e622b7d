//! What the executor needs of a device, of the link to it and of the CPU. Traits and orders only.

use motley_sched::{Purpose, Share};
use motley_trace::ExpertKey;

/// One expert for the fast unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastOrder {
    pub key: ExpertKey,
    /// The part of it.
    pub share: Share,
    /// The buffer its bytes are in.
    pub buffer: u32,
    /// Tokens routed to it.
    pub tokens: u32,
}

/// One expert for the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HomeOrder {
    pub key: ExpertKey,
    /// The part of it.
    pub share: Share,
    /// Tokens routed to it.
    pub tokens: u32,
    /// Tokens of the pass when this is the CPU's first expert of the layer.
    pub enters: Option<u32>,
}

/// One expert for the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyOrder {
    pub key: ExpertKey,
    /// The part of it.
    pub share: Share,
    /// The buffer it goes to.
    pub buffer: u32,
    pub purpose: Purpose,
}

/// Whether a computation came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// It did.
    Done,
    /// It was asked to stop; the block is given up.
    Cancelled,
}

/// Why a unit did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnitFailed(pub String);

/// The unit beside the fast tier, on a thread of its own.
pub trait FastUnit: Send + 'static {
    /// One block as the unit needs it, and the rows computed so far. It is made from the block
    /// and read back on the driver's thread.
    type Job: Send + 'static;

    /// Computes these experts of the block, as one launch with one read-back if it can, and
    /// returns when their rows are in `job`. Called once or several times per block.
    fn compute(&mut self, job: &mut Self::Job, experts: &[FastOrder]) -> Result<Flow, UnitFailed>;
}

/// The link to the fast tier, on a thread of its own.
pub trait Link: Send + 'static {
    /// Brings an expert to a buffer and returns when its bytes are there. The executor never
    /// names a buffer that is being computed from.
    fn copy(&mut self, order: &CopyOrder) -> Result<(), UnitFailed>;

    /// (optional) The same before the first block, when nobody waits. Defaults to a copy.
    fn preload(&mut self, order: &CopyOrder) -> Result<(), UnitFailed> {
        self.copy(order)
    }
}

/// The unit beside the slow tier: the CPU, on the driver's thread, for one block.
pub trait HomeUnit {
    /// Computes these experts of the block.
    fn compute(&mut self, experts: &[HomeOrder]) -> Result<Flow, UnitFailed>;
}
