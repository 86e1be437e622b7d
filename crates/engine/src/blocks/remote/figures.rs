//! What workers have done for a head, for others to read.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a worker has done for this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteFigures {
    /// Host and port.
    pub name: String,
    pub answers: bool,
    /// Requests, and rows that came back.
    pub requests: u64,
    pub rows: u64,
    /// Rows that did not and were computed here.
    pub recomputed: u64,
    /// Bytes of frames.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// From a request to its answer, all together, in microseconds.
    pub exchange_us: u64,
    /// What was left to wait when everything else of a block was done, in microseconds.
    pub wait_us: u64,
    /// Why it was last lost.
    pub lost: Option<String>,
}

/// Figures of all workers.
pub type SharedRemoteFigures = Arc<Mutex<Vec<RemoteFigures>>>;

impl fmt::Display for RemoteFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, requests, rows, recomputed, .. } = self;
        let each_us = self.exchange_us / (*requests).max(1);
        write!(
            f,
            "worker {name}: {rows} rows in {requests} requests of {each_us} µs, {:.1} MB there, \
             {:.1} MB back, {:.2} s waited",
            self.sent_bytes as f64 / 1e6,
            self.received_bytes as f64 / 1e6,
            self.wait_us as f64 / 1e6
        )?;
        if *recomputed > 0 {
            write!(f, "; {recomputed} rows computed here instead")?;
        }
        match &self.lost {
            Some(why) if !self.answers => write!(f, "; lost: {why}"),
            _ => Ok(()),
        }
    }
}

pub(super) fn lock(figures: &SharedRemoteFigures) -> MutexGuard<'_, Vec<RemoteFigures>> {
    figures.lock().unwrap_or_else(PoisonError::into_inner)
}
