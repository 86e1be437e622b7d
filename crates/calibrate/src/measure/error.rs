//! Why measuring fails. One enum for all its steps.

use motley_cost::FitError;
use motley_ggml::BenchError;

use super::disk::DiskError;

/// Why measuring failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// No experts or copies could be allocated.
    #[error("nothing to measure with")]
    Experts(#[from] BenchError),
    /// Copies took no time that a line could be drawn through.
    #[error("copies to a device cannot be fitted")]
    Links(#[from] FitError),
    /// No threads.
    #[error("the system refuses {threads} threads")]
    Threads {
        /// How many were asked for.
        threads: u32,
    },
    /// The disk could not be measured.
    #[error("the disk cannot be measured")]
    Disk(#[from] DiskError),
}
