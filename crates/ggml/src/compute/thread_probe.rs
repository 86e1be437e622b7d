//! Whether the system gives this process so many more threads: ggml ends the process when it is
//! refused one while it makes a pool. Keeps none of them.

use crate::system::threads::default_stack_bytes;
use std::sync::{Arc, RwLock};
use std::thread::{Builder, JoinHandle};

/// Starts `threads` threads with the stacks ggml's would have, all at once, and lets them end. A
/// neighbour may take the room between this and the pool; then ggml aborts after all.
pub(super) fn can_start(threads: u32) -> bool {
    let stack_bytes = default_stack_bytes();
    // Whoever has started waits here: threads that end would make room for the next.
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write();
    let start = |_| {
        let gate = Arc::clone(&gate);
        Builder::new().stack_size(stack_bytes).spawn(move || drop(gate.read()))
    };
    let (started, refused): (Vec<_>, Vec<_>) = (0..threads).map(start).partition(Result::is_ok);
    drop(closed);
    for thread in started.into_iter().flatten() {
        let _: Result<(), _> = JoinHandle::join(thread);
    }
    refused.is_empty()
}
