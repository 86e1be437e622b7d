//! How a computation by ggml ended.

use crate::api;

/// What a backend did with a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComputeOutcome {
    /// All nodes were computed.
    Done,
    /// The abort callback stopped it.
    Aborted,
    /// ggml reported failure (out of memory for its work buffer, mostly).
    Failed,
}

impl ComputeOutcome {
    pub(crate) fn of(status: api::ggml_status) -> Self {
        match status {
            api::GGML_STATUS_SUCCESS => Self::Done,
            api::GGML_STATUS_ABORTED => Self::Aborted,
            _ => Self::Failed,
        }
    }

    /// As ggml's scheduler expects it of a backend.
    pub(crate) fn status(self) -> api::ggml_status {
        match self {
            Self::Done => api::GGML_STATUS_SUCCESS,
            Self::Aborted => api::GGML_STATUS_ABORTED,
            Self::Failed => api::GGML_STATUS_FAILED,
        }
    }
}
