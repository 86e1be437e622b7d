//! Keys of the API, and what who has one may have.

use motley_engine::batching::{Client, ClientId, Priority};
use std::time::Duration;

/// A key that opens the API.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiKey {
    pub key: String,
    /// What its holders are given together; `None` where they are told apart by their addresses, each
    /// like all others.
    pub terms: Option<KeyTerms>,
}

/// What the requests of a key are given, all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyTerms {
    /// Part of the time beside other keys, in hundredths of an equal one.
    pub weight: u32,
    /// Most requests answered at once.
    pub streams: u16,
    /// Of its requests; one may ask for less.
    pub priority: Priority,
    /// Time for each request; one may ask for less.
    pub deadline: Option<Duration>,
}

/// Who asks, as the engine is told, and how much time there is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AskedBy {
    pub(crate) client: Client,
    pub(crate) deadline: Option<Duration>,
}

/// Who sent a request, and what it may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    client: Client,
    /// No request has a higher one.
    highest: Priority,
    deadline: Option<Duration>,
}

impl Caller {
    /// Who has no key of their own.
    pub(crate) fn of_address(id: ClientId) -> Self {
        Self { client: id.into(), highest: Priority::High, deadline: None }
    }

    /// Who has the key of that number, if its holders are given something together.
    pub(crate) fn of_key(number: usize, key: &ApiKey) -> Option<Self> {
        let KeyTerms { weight, streams, priority, deadline } = key.terms?;
        // No address sends from there: they are all of IPv6's multicast.
        let id = ClientId(u128::MAX - number as u128);
        let client = Client { id, weight, streams, priority };
        Some(Self { client, highest: priority, deadline })
    }

    /// What a request is given that asks for so much.
    pub(crate) fn asks(&self, priority: Option<Priority>, deadline: Option<Duration>) -> AskedBy {
        let priority = priority.unwrap_or(self.client.priority).max(self.highest);
        let deadline = [self.deadline, deadline].into_iter().flatten().min();
        AskedBy { client: Client { priority, ..self.client }, deadline }
    }
}

impl Default for Caller {
    fn default() -> Self {
        Self::of_address(ClientId::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_gets_what_it_asks_for_within_what_its_key_has() {
        let terms = KeyTerms {
            weight: 200,
            streams: 3,
            priority: Priority::Normal,
            deadline: Some(Duration::from_secs(9)),
        };
        let key = ApiKey { key: "k".into(), terms: Some(terms) };
        let caller = Caller::of_key(0, &key).unwrap();
        let usual = caller.asks(None, None);
        assert_eq!((usual.client.weight, usual.client.streams), (200, 3));
        assert_eq!((usual.client.priority, usual.deadline), (Priority::Normal, terms.deadline));
        let urgent = caller.asks(Some(Priority::High), Some(Duration::from_secs(20)));
        assert_eq!((urgent.client.priority, urgent.deadline), (Priority::Normal, terms.deadline));
        let patient = caller.asks(Some(Priority::Low), Some(Duration::from_secs(2)));
        assert_eq!(patient.client.priority, Priority::Low);
        assert_eq!(patient.deadline, Some(Duration::from_secs(2)));
        let anyone = Caller::default();
        assert_eq!(anyone.asks(None, None).client.priority, Priority::Normal);
        assert_eq!(anyone.asks(Some(Priority::High), None).client.priority, Priority::High);
        assert!(Caller::of_key(0, &ApiKey { terms: None, ..key }).is_none());
    }
}
