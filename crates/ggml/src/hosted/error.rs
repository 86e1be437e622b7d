//! Why a host is left alone, in words for its user.

/// Why a host is left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotThisHost {
    /// Nobody knows who called.
    #[error("the ggml that loaded this library cannot be found")]
    NoCaller,
    /// A function is missing.
    #[error("its ggml has no {0}")]
    Function(&'static str),
    /// Its CPU backend comes later, or not at all.
    #[error("its CPU backend is not loaded")]
    NoCpu,
    /// A function of the CPU backend is missing.
    #[error("its CPU backend has no {0}")]
    CpuFunction(String),
    /// Its tables or structs are not ones we know.
    #[error("its {0} is of a kind this library does not know")]
    Layout(&'static str),
    /// It does not compute what it should.
    #[error("a small product of experts came out wrong")]
    Product,
    /// Somebody else was here first.
    #[error("this process has a guest already")]
    Twice,
}
