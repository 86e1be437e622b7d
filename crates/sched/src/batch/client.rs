//! Who asks, and what it is given beside others.

/// Names who asks; requests of one client share its time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u128);

/// Who goes first where not all can.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    High,
    #[default]
    Normal,
    Low,
}

/// An equal part of the time.
const EQUAL: u32 = 100;

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    pub id: ClientId,
    /// Its part of the time beside others, in hundredths of an equal one; at least 1.
    pub weight: u32,
    /// Most of its requests that are answered at once.
    pub streams: u16,
    /// Of this request: prompts of a higher one are computed first, and it gets a sequence first.
    pub priority: Priority,
}

impl From<ClientId> for Client {
    fn from(id: ClientId) -> Self {
        Self::like_others(id)
    }
}

impl Default for Client {
    fn default() -> Self {
        ClientId::default().into()
    }
}

impl Client {
    /// One like all others.
    pub const fn like_others(id: ClientId) -> Self {
        Self { id, weight: EQUAL, streams: u16::MAX, priority: Priority::Normal }
    }

    /// What counts for it when it was served for so many nanoseconds.
    pub(super) fn counted(weight: u32, nanos: u128) -> u128 {
        nanos * u128::from(EQUAL) / u128::from(weight.max(1))
    }
}
