//! What a context and its backend share: the pool in use, counts, the last error. Written on
//! the thread that decodes, read by anybody.

use super::block::NotABlock;
use super::executor::BlockError;
use crate::compute::threadpool::CurrentPool;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// Shared between a context and its backend.
#[derive(Debug, Default)]
pub(crate) struct BackendLink {
    pub(crate) pool: Arc<CurrentPool>,
    blocks: AtomicU64,
    rows: AtomicU64,
    delegated: AtomicU64,
    delegated_reason: Mutex<Option<NotABlock>>,
    error: Mutex<Option<BlockError>>,
}

/// Counts of what went through the seam.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeamCounts {
    /// Blocks given to the executor.
    pub blocks: u64,
    /// (token, slot) rows in them.
    pub rows: u64,
    /// Splits that were not a known block and ran whole on the CPU backend.
    pub delegated: u64,
    /// Why the last of those was not a block.
    pub delegated_reason: Option<NotABlock>,
}

impl BackendLink {
    pub(crate) fn counts(&self) -> SeamCounts {
        SeamCounts {
            blocks: self.blocks.load(Relaxed),
            rows: self.rows.load(Relaxed),
            delegated: self.delegated.load(Relaxed),
            delegated_reason: *self.delegated_reason.lock().expect("no panic holds this lock"),
        }
    }

    pub(crate) fn take_error(&self) -> Option<BlockError> {
        self.error.lock().expect("no panic holds this lock").take()
    }

    pub(super) fn set_error(&self, error: BlockError) {
        *self.error.lock().expect("no panic holds this lock") = Some(error);
    }

    /// A block of `rows` rows goes to the executor.
    pub(super) fn count_block(&self, rows: u64) {
        self.blocks.fetch_add(1, Relaxed);
        self.rows.fetch_add(rows, Relaxed);
    }

    /// A split runs whole on the CPU backend, or is refused.
    pub(super) fn count_delegated(&self, reason: NotABlock) {
        self.delegated.fetch_add(1, Relaxed);
        *self.delegated_reason.lock().expect("no panic holds this lock") = Some(reason);
    }
}
