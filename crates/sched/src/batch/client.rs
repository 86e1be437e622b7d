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

/// The weight of an equal part of the time.
pub(super) const EQUAL: u32 = 100;

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
}
