//! Responses that are kept so that others can continue them: in memory, within a number and a
//! sum of bytes, the oldest out first. Nothing is written to a disk.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Responses kept at once, and bytes of all of them together.
const KEPT_MAX: usize = 1024;
const KEPT_BYTES_MAX: usize = 64 << 20;

/// A response with its conversation, as JSON: takes no more memory than was counted.
pub(crate) struct KeptResponse {
    /// All turns, the answer last, without the system prompt.
    pub(crate) turns: String,
    /// What was returned.
    pub(crate) response: String,
}

impl KeptResponse {
    fn bytes(&self) -> usize {
        self.turns.len().saturating_add(self.response.len())
    }
}

/// The responses that are kept.
#[derive(Default)]
pub(crate) struct Kept {
    responses: Mutex<Responses>,
}

#[derive(Default)]
struct Responses {
    by_id: HashMap<String, Arc<KeptResponse>>,
    /// Oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

impl Kept {
    /// Keeps one more; the oldest go where there are too many. One that is larger than all may be
    /// is not kept.
    pub(crate) fn keep(&self, id: String, response: KeptResponse) {
        self.lock().keep(id, response, KEPT_MAX, KEPT_BYTES_MAX);
    }

    pub(crate) fn get(&self, id: &str) -> Option<Arc<KeptResponse>> {
        self.lock().by_id.get(id).map(Arc::clone)
    }

    /// Whether there was one.
    pub(crate) fn forget(&self, id: &str) -> bool {
        let mut responses = self.lock();
        responses.order.retain(|kept| kept != id);
        responses.drop_one(id)
    }

    /// Usable after a panic: nothing panics between two changes.
    fn lock(&self) -> MutexGuard<'_, Responses> {
        self.responses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Responses {
    fn keep(&mut self, id: String, response: KeptResponse, most: usize, most_bytes: usize) {
        self.bytes = self.bytes.saturating_add(response.bytes());
        self.order.push_back(id.clone());
        self.by_id.insert(id, Arc::new(response));
        while self.order.len() > most || self.bytes > most_bytes {
            let Some(oldest) = self.order.pop_front() else { return };
            self.drop_one(&oldest);
        }
    }

    fn drop_one(&mut self, id: &str) -> bool {
        let dropped = self.by_id.remove(id);
        self.bytes -= dropped.as_ref().map_or(0, |response| response.bytes());
        dropped.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(bytes: usize) -> KeptResponse {
        KeptResponse { turns: "x".repeat(bytes), response: String::new() }
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many_or_too_large() {
        let mut kept = Responses::default();
        for (id, bytes) in [("a", 10), ("b", 10), ("c", 10)] {
            kept.keep(id.into(), response(bytes), 2, 100);
        }
        assert_eq!((kept.order.len(), kept.bytes), (2, 20));
        assert!(!kept.by_id.contains_key("a"));
        kept.keep("d".into(), response(95), 9, 100);
        assert_eq!((kept.order.len(), kept.bytes), (1, 95));
        kept.keep("e".into(), response(101), 9, 100);
        assert_eq!((kept.by_id.len(), kept.order.len(), kept.bytes), (0, 0, 0));
    }

    #[test]
    fn what_is_forgotten_is_gone() {
        let kept = Kept::default();
        kept.keep("a".into(), response(10));
        assert!(kept.get("a").is_some());
        assert!(kept.forget("a") && !kept.forget("a"));
        assert!(kept.get("a").is_none());
        assert_eq!(kept.lock().bytes, 0);
    }
}
