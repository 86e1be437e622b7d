//! Where threads cannot be bound: they run where the system likes.

/// Does nothing.
pub(crate) fn bind_this_thread(_cpus: &[usize]) {}
