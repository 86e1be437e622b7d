//! Linux and Android: `sched_setaffinity`.

/// Yes.
pub fn is_offered() -> bool {
    true
}
