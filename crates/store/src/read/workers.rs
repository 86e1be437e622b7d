//! What the backends have in common: how they are woken and joined, and what ends the process.

/// Threads that take chunks from the read queue they were started with and land them.
pub(super) trait Workers: Send + Sync {
    /// Called when the queue has new chunks.
    fn wake(&self);

    /// Called after the queue was closed: returns when no read is in flight any more.
    fn join(&mut self);
}

/// Ends the process when a backend's thread unwinds, which only a bug can make it do: the
/// system might go on writing into slots nobody guards any more, and callers would wait forever.
pub(super) struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        eprintln!("store: a thread that reads experts failed; this is a bug");
        std::process::abort();
    }
}
