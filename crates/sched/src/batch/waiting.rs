//! Requests without a sequence, and who of them is next.

use super::{Client, RequestId};
use std::collections::VecDeque;

/// How often the first may be passed by those behind it.
const PASSED_MOST: u32 = 16;

/// A request without a sequence.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) request: RequestId,
    pub(super) client: Client,
    /// The prompt's, and those answered before it was sent back.
    pub(super) tokens: Vec<i32>,
    pub(super) prompt_tokens: u32,
    pub(super) chunk_tokens: u32,
    pub(super) boundaries: Vec<u32>,
    /// Kept when it is sent back, so that it stays older than those after it.
    pub(super) age: Option<u64>,
}

/// First come, first served, but for higher priorities, for clients with fewer sequences, and for
/// small ones that fit where the first does not.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    /// How often the first was passed.
    passed: u32,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// At the end.
    pub(super) fn join(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// At the beginning: it had a sequence already.
    pub(super) fn go_back(&mut self, waiting: Waiting) {
        self.waiting.push_front(waiting);
        self.passed = 0;
    }

    /// `false` when it does not wait.
    pub(super) fn leave(&mut self, request: RequestId) -> bool {
        let at = self.waiting.iter().position(|waiting| waiting.request == request);
        at.is_some_and(|at| self.remove(at).is_some())
    }

    /// Place of who is next where `room` cells are left: of those that fit and of the highest
    /// priority the first whose client has fewest sequences, as `held` says; `None` for one that may not have another. A prompt
    /// needs a cell more than it has tokens, for its answer.
    pub(super) fn next(&self, room: u32, held: impl Fn(Client) -> Option<usize>) -> Option<usize> {
        let fits = |waiting: &Waiting| (waiting.tokens.len() as u64) < u64::from(room);
        let behind = if self.passed < PASSED_MOST { self.waiting.len() } else { 1 };
        let all = self.waiting.iter().enumerate();
        let may = all.filter_map(|(at, waiting)| Some((at, held(waiting.client)?, waiting)));
        let fitting = may.take(behind).filter(|(_, _, waiting)| fits(waiting));
        let order =
            |(_, held, waiting): &(usize, usize, &Waiting)| (waiting.client.priority, *held);
        fitting.min_by_key(order).map(|(at, _, _)| at)
    }

    pub(super) fn tokens(&self, at: usize) -> Option<&[i32]> {
        self.waiting.get(at).map(|waiting| waiting.tokens.as_slice())
    }

    /// Takes the one at `at` out.
    pub(super) fn take(&mut self, at: usize) -> Option<Waiting> {
        self.passed += u32::from(at > 0);
        self.remove(at)
    }

    fn remove(&mut self, at: usize) -> Option<Waiting> {
        if at == 0 {
            self.passed = 0;
        }
        self.waiting.remove(at)
    }
}
