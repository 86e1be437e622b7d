//! One matrix of a block as slots of an arena hold it. Points at bytes; owns none.

use crate::api;

/// The stack of slots, and which slot each row uses (matrices are leased separately, so
/// they differ).
pub(crate) struct ArenaWeight {
    pub(crate) stack: api::ggml_tensor,
    pub(crate) ids: api::ggml_tensor,
}
