//! What is wrong where no backend is found.

/// No library with kernels for the CPU where this program looks for them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no libggml-cpu-*.so of this program in {}; install motley anew, or name their folder in \
     MOTLEY_BACKENDS", .searched.join(" or ")
)]
pub struct NoBackends {
    /// Folders that were looked into.
    pub searched: Vec<String>,
}
