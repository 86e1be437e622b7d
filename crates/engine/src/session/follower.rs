//! A session that follows another: what it holds of the other's tokens. Says nothing of how it
//! computes them.

/// A timeline `S` that holds the beginning of another one.
pub(super) struct Follower<S> {
    pub(super) session: Box<S>,
    /// Tokens in its cache.
    pub(super) held: Vec<i32>,
    /// Those that are computed with the next question.
    pub(super) waiting: Vec<i32>,
}

impl<S> Follower<S> {
    /// `session` has computed nothing.
    pub(super) fn new(session: S) -> Self {
        Self { session: Box::new(session), held: Vec::new(), waiting: Vec::new() }
    }
}
