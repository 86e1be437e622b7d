//! macOS takes a thread's class of service, never a core; others are not known.

/// No: a set of cores is only their number.
pub fn is_offered() -> bool {
    false
}
