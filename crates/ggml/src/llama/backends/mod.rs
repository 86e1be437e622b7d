//! Where ggml's backends come from: linked into the program, or libraries beside it of which the
//! fitting ones are loaded. One `cfg`; both files offer the same function.

#[cfg(feature = "dynamic-backends")]
mod beside;
#[cfg(not(feature = "dynamic-backends"))]
mod linked;

#[cfg(feature = "dynamic-backends")]
pub(super) use beside::load;
#[cfg(not(feature = "dynamic-backends"))]
pub(super) use linked::load;

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
