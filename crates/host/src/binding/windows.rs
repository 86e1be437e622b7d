//! Windows: `SetThreadAffinityMask`, for the 64 processors of one group.

/// Yes.
pub fn is_offered() -> bool {
    true
}
