//! Who is told how a download goes. Draws nothing.

use crate::error::FetchError;
use std::time::Duration;

/// Who is told how it goes; called by several threads.
pub trait Progress: Sync {
    /// So many bytes were here already.
    fn here(&self, bytes: u64);
    /// So many bytes came.
    fn came(&self, bytes: u64);
    /// So many bytes that were here or came will come again.
    fn lost(&self, bytes: u64);
    /// Another process is fetching this file.
    fn waits(&self, file: &str);
    /// A connection broke, and will be tried again after so long.
    fn again(&self, file: &str, error: &FetchError, wait: Duration);
}

/// Nobody is told.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {
    fn here(&self, _: u64) {}
    fn came(&self, _: u64) {}
    fn lost(&self, _: u64) {}
    fn waits(&self, _: &str) {}
    fn again(&self, _: &str, _: &FetchError, _: Duration) {}
}
