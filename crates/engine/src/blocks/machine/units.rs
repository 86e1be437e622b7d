//! What the executor needs of devices, of the links to them, of the disk and of the CPU. Traits
//! and orders only.

use motley_sched::{Purpose, Share};
use motley_store::{Counters, FilledExpert};
use motley_trace::ExpertKey;
use std::sync::Arc;

/// One expert for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceOrder {
    pub key: ExpertKey,
    /// The part of it.
    pub share: Share,
    /// The buffer its bytes are in.
    pub buffer: u32,
    /// Tokens routed to it.
    pub tokens: u32,
    /// Tokens of the pass when this is the device's first expert of the layer.
    pub enters: Option<u32>,
}

/// One expert for the CPU.
#[derive(Debug, Clone)]
pub struct CpuOrder {
    pub key: ExpertKey,
    /// The part of it.
    pub share: Share,
    /// Tokens routed to it.
    pub tokens: u32,
    /// Tokens of the pass when this is the CPU's first expert of the layer.
    pub enters: Option<u32>,
    /// Its bytes where it was read from disk; else they are where llama.cpp has them.
    pub bytes: Option<FilledExpert>,
}

impl CpuOrder {
    /// Number and bytes of an expert that was read from disk.
    pub(super) fn read(&self) -> Option<(u32, &FilledExpert)> {
        Some((u32::from(self.key.expert), self.bytes.as_ref()?))
    }
}

/// One expert for a link.
#[derive(Debug, Clone)]
pub struct CopyOrder {
    pub key: ExpertKey,
    /// The part of it.
    pub share: Share,
    /// The buffer it goes to.
    pub buffer: u32,
    pub purpose: Purpose,
    /// Its bytes where it was read from disk; else they are in the model's files.
    pub from: Option<FilledExpert>,
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

/// A device, on a thread of its own.
pub trait Device: Send + 'static {
    /// One block as devices need it, made on the driver's thread.
    type Block: Send + Sync + 'static;
    /// Rows it has computed, read back on the driver's thread.
    type Rows: Send + 'static;

    /// Computes these experts of the block, as one launch with one read-back if it can. Called
    /// once or several times per block.
    fn compute(
        &mut self,
        block: &Self::Block,
        experts: &[DeviceOrder],
    ) -> Result<(Self::Rows, Flow), UnitFailed>;
}

/// The link to a device, on a thread of its own.
pub trait Link: Send + 'static {
    /// Brings an expert to a buffer and returns when its bytes are there. The executor never
    /// names a buffer that is being computed from.
    fn copy(&mut self, order: &CopyOrder) -> Result<(), UnitFailed>;

    /// (optional) The same before the first block, when nobody waits. Defaults to a copy.
    fn preload(&mut self, order: &CopyOrder) -> Result<(), UnitFailed> {
        self.copy(order)
    }
}

/// The CPU, on the driver's thread, for one block.
pub trait Cpu {
    /// Computes these experts of the block.
    fn compute(&mut self, experts: &[CpuOrder]) -> Result<Flow, UnitFailed>;
}

/// A read that has ended: the expert, and why it failed if it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    pub key: ExpertKey,
    pub error: Option<String>,
}

/// Memory for experts that are read from disk, and the disk. Several reads are under way at once.
pub trait Disk: Send + 'static {
    /// Starts reading an expert.
    fn load(&mut self, key: ExpertKey, purpose: Purpose) -> Result<(), UnitFailed>;

    /// A read that has ended already.
    fn poll(&mut self) -> Option<Landed>;

    /// Whether a read has not been polled.
    fn is_under_way(&self) -> bool;

    /// To wait for reads without the executor's lock.
    fn arrivals(&self) -> Arc<dyn Arrivals>;

    /// The bytes of an expert that has been read; none on machines that do not exist.
    fn bytes(&self, key: ExpertKey) -> Option<FilledExpert>;

    /// Gives the memory of an expert back.
    fn release(&mut self, key: ExpertKey);

    /// (optional) Uses so many slots from now on (M3). Defaults to nothing.
    fn set_usable(&mut self, _slots: u32) {}

    /// (optional) What it has done. Defaults to nothing.
    fn done(&self) -> DiskDone {
        DiskDone::default()
    }
}

/// Waits for reads.
pub trait Arrivals: Send + Sync {
    /// Returns when a read has ended that was not polled, or none is under way.
    fn wait(&self);
}

/// What a disk has done.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskDone {
    /// Reads of experts.
    pub counters: Counters,
    /// Memory of the slots in use.
    pub arena_bytes: u64,
    /// Whether a read found that a file is not what was opened any more.
    pub changed: bool,
}
