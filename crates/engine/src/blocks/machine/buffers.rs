//! Which buffer of the device each place of the scheduler is, and whose bytes are in it.
//! Bookkeeping only.

use crate::blocks::resident::ResidentExperts;
use motley_sched::Purpose;
use motley_sched::cache::SlotId;
use motley_sched::scheduler::Place;
use motley_trace::ExpertKey;
use std::sync::Arc;

/// The buffers of one device: first the cache's, then the staging ones. An exchange swaps two.
#[derive(Debug)]
pub(super) struct Buffers {
    cache: Vec<u32>,
    staging: Vec<u32>,
    contents: Vec<Option<Content>>,
    unused: Unused,
    /// What is there, for others to read.
    shown: Option<Arc<ResidentExperts>>,
}

#[derive(Debug, Clone, Copy)]
struct Content {
    key: ExpertKey,
    purpose: Purpose,
    used: bool,
}

/// Copies nobody computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Unused {
    pub(super) demanded: u64,
    pub(super) guessed: u64,
}

impl Buffers {
    pub(super) fn new(cache_slots: u32, staging_slots: u16) -> Self {
        let all = cache_slots + u32::from(staging_slots);
        Self {
            cache: (0..cache_slots).collect(),
            staging: (cache_slots..all).collect(),
            contents: vec![None; all as usize],
            unused: Unused::default(),
            shown: None,
        }
    }

    /// The same, for others to read.
    pub(super) fn shown_in(self, shown: Option<Arc<ResidentExperts>>) -> Self {
        Self { shown, ..self }
    }

    pub(super) fn at(&self, place: Place) -> u32 {
        match place {
            Place::Cache(SlotId(slot)) => self.cache[slot as usize],
            Place::Staging(at) => self.staging[usize::from(at)],
        }
    }

    /// A copy of `key` goes there.
    pub(super) fn begin(&mut self, place: Place, key: ExpertKey, purpose: Purpose) -> u32 {
        let buffer = self.at(place);
        self.forget(buffer);
        self.contents[buffer as usize] = Some(Content { key, purpose, used: false });
        buffer
    }

    /// The copy of `key` is there.
    pub(super) fn arrived(&self, key: ExpertKey) {
        self.show(key, true);
    }

    fn show(&self, key: ExpertKey, is_here: bool) {
        if let Some(shown) = &self.shown {
            shown.set(key, is_here);
        }
    }

    /// What is there is computed from.
    ///
    /// # Panics
    /// When somebody else's bytes are there: the scheduler's error, or this file's.
    pub(super) fn use_at(&mut self, place: Place, key: ExpertKey) -> u32 {
        let buffer = self.at(place);
        let content = self.contents[buffer as usize].as_mut();
        let content = content.filter(|content| content.key == key);
        content.unwrap_or_else(|| panic!("{key} is not in buffer {buffer}")).used = true;
        buffer
    }

    pub(super) fn release(&mut self, place: Place) {
        self.forget(self.at(place));
    }

    pub(super) fn exchange(&mut self, staging: u16, slot: SlotId) {
        std::mem::swap(&mut self.staging[usize::from(staging)], &mut self.cache[slot.0 as usize]);
    }

    pub(super) fn unused(&self) -> Unused {
        self.unused
    }

    fn forget(&mut self, buffer: u32) {
        let Some(content) = self.contents[buffer as usize].take() else { return };
        self.show(content.key, false);
        match content.purpose {
            _ if content.used => {}
            Purpose::Demand => self.unused.demanded += 1,
            Purpose::Guess => self.unused.guessed += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_moves_no_bytes() {
        let mut buffers = Buffers::new(2, 1);
        let (slot, staged) = (Place::Cache(SlotId(1)), Place::Staging(0));
        let (old, new) = (ExpertKey::new(0, 1), ExpertKey::new(0, 2));
        assert_eq!(buffers.begin(slot, old, Purpose::Guess), 1);
        assert_eq!(buffers.begin(staged, new, Purpose::Demand), 2);
        assert_eq!(buffers.use_at(staged, new), 2);
        buffers.release(slot);
        buffers.exchange(0, SlotId(1));
        assert_eq!((buffers.use_at(slot, new), buffers.at(staged)), (2, 1));
        assert_eq!(buffers.unused(), Unused { demanded: 0, guessed: 1 });
    }
}
