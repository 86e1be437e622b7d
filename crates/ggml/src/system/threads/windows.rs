//! By the program's header, as linkers write it.

/// What linkers write when they are told nothing.
pub(crate) fn default_stack_bytes() -> usize {
    1 << 20
}
