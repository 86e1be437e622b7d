//! How many states there are, and which goes when another is to come: the one that would cost least
//! to compute again, counted from when it was last of use (GreedyDual: Young 1994; Cao and Irani
//! 1997).

use super::{Sharing, StateId};
use std::collections::BTreeMap;

/// A state of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Saved {
    pub(super) state: StateId,
    /// Tokens before it.
    pub(super) at: u32,
}

/// All states there are.
#[derive(Debug, Clone)]
pub(super) struct States {
    most: usize,
    next: u64,
    /// Worth of the last one thrown away.
    floor: u64,
    kept: BTreeMap<StateId, Worth>,
}

#[derive(Debug, Clone, Copy)]
struct Worth {
    /// Tokens to compute again without it.
    tokens: u64,
    /// That, and the floor when it was last of use.
    worth: u64,
}

impl States {
    /// Room for as many as `sharing` says.
    pub(super) fn new(sharing: Sharing) -> Self {
        let most = match sharing {
            Sharing::States { most } => usize::from(most),
            _ => 0,
        };
        Self { most, next: 0, floor: 0, kept: BTreeMap::new() }
    }

    /// A new one, without which `tokens` are computed again.
    pub(super) fn add(&mut self, tokens: u32) -> StateId {
        let state = StateId(self.next);
        self.next += 1;
        let tokens = u64::from(tokens);
        self.kept.insert(state, Worth { tokens, worth: self.floor + tokens });
        state
    }

    /// It was of use.
    pub(super) fn touch(&mut self, state: StateId) {
        if let Some(worth) = self.kept.get_mut(&state) {
            worth.worth = self.floor + worth.tokens;
        }
    }

    /// The one that goes when another is to come and there is no room.
    pub(super) fn in_the_way(&self) -> Option<StateId> {
        let full = self.kept.len() >= self.most;
        let cheapest = || self.kept.iter().min_by_key(|(state, worth)| (worth.worth, **state));
        full.then(cheapest).flatten().map(|(state, _)| *state)
    }

    /// The worth of `state`, which goes, is what others must have from now on.
    pub(super) fn outlive(&mut self, state: StateId) {
        self.floor = self.kept.get(&state).map_or(self.floor, |worth| worth.worth);
    }

    pub(super) fn remove(&mut self, state: StateId) {
        self.kept.remove(&state);
    }

    /// Whether there may be any.
    pub(super) fn has_room(&self) -> bool {
        self.most > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_costs_least_goes_first_unless_it_was_of_use() {
        let mut states = States::new(Sharing::States { most: 2 });
        let (long, short) = (states.add(1000), states.add(100));
        assert_eq!(states.in_the_way(), Some(short));
        states.touch(short);
        states.outlive(long);
        states.touch(short);
        assert_eq!(states.in_the_way(), Some(long), "it was not of use for long");
    }
}
