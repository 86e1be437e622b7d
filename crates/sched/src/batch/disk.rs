//! When segments of a prompt are read from disk and written to it (`segments` says which there are).
//!
//! * A prompt that begins finds out what it can have; its segments are read one per step, so that
//!   others go on, and nothing of it is computed until they are there.
//! * Where memory can be cut ([`Sharing::Prefixes`]) all segments are of one length, and
//!   written once its prompt is computed, one per step: a first token waits for none.
//! * Where it cannot ([`Sharing::States`]) a segment ends where a state is saved, and is written
//!   there and then.

use super::on_disk::{OnDisk, Stored};
use super::planner::Planner;
use super::segments::{Segment, SegmentKey, SegmentLimits, Segments, ToLoad};
use super::sequence::Sequence;
use super::{Change, Sharing};
use std::time::Duration;

impl Planner {
    /// Keeps beginnings of prompts on disk too, and begins with `found`, most recently used last.
    /// Only where sequences share one cache, and prefixes at all.
    pub fn keep_on_disk(&mut self, limits: SegmentLimits, found: &[Segment]) {
        if matches!(self.limits.sharing, Sharing::Prefixes | Sharing::States { .. }) {
            let mut segments = Segments::new(limits, found);
            let gone = segments.keep_within(limits.most_bytes);
            self.changes.extend(gone.into_iter().map(|segment| Change::Erase { segment }));
            self.segments = Some(segments);
        }
    }

    /// A segment was written; its bytes were only expected before.
    pub fn on_stored(&mut self, segment: Segment) {
        if let Some(segments) = &mut self.segments
            && segments.contains(segment.key)
        {
            segments.add(segment);
        }
    }

    /// A segment could not be had of the context, or not be read: it is not there.
    pub fn on_unstored(&mut self, key: SegmentKey) {
        if self.segments.as_mut().is_some_and(|segments| segments.remove(key)) {
            self.changes.push(Change::Erase { segment: key });
        }
    }

    /// A segment was read for a sequence.
    pub fn on_loaded(&mut self, segment: &Segment, took: Duration) {
        self.figures.reused_tokens += u64::from(segment.tokens);
        self.figures.loaded_tokens += u64::from(segment.tokens);
        if let Some(segments) = &mut self.segments {
            segments.on_read(segment.bytes, took);
        }
    }

    /// A segment could not be read: the sequence goes on from where it begins, by computing.
    pub fn on_unloaded(&mut self, sequence: u16, segment: &Segment) {
        self.on_unstored(segment.key);
        let Some(Some(sequence)) = self.sequences.get_mut(usize::from(sequence)) else { return };
        if sequence.disk.loading.take() != Some(*segment) {
            // It was sent back with the same step, and another has its place.
            return;
        }
        sequence.disk.to_load.clear();
        let first = sequence.cells.len().min(segment.first as usize);
        sequence.cells.drain(first..).for_each(|cell| self.cells.give(cell));
    }

    /// Whether there is something to write, which a driver without requests has the time for.
    pub fn has_to_store(&self) -> bool {
        let mut sequences = self.sequences.iter().flatten();
        sequences.any(|sequence| self.next_to_store(sequence).is_some())
    }

    /// Asks for the next segment of every sequence that waits for some.
    pub(super) fn load_due(&mut self) {
        for at in 0..self.sequences.len() {
            let Some(sequence) = &mut self.sequences[at] else { continue };
            sequence.disk.loading = None;
            let Some(segment) = sequence.disk.to_load.pop_front() else { continue };
            let is_there = self.segments.as_ref().is_some_and(|all| all.contains(segment.key));
            if !is_there || self.make_room(at, segment.tokens, &mut Vec::new()) < segment.tokens {
                if let Some(sequence) = &mut self.sequences[at] {
                    sequence.disk.to_load.clear();
                }
                continue;
            }
            if let Some(sequence) = &mut self.sequences[at] {
                sequence.cells.extend((0..segment.tokens).filter_map(|_| self.cells.take()));
                sequence.disk.loading = Some(segment);
                self.changes.push(Change::Load { sequence: at as u16, segment });
            }
        }
    }

    /// What of the prompt of `at` is worth reading when memory has `known` tokens of it, and can
    /// begin where `offers` says.
    pub(super) fn worth_loading(
        &self,
        at: usize,
        known: usize,
        offers: impl Fn(u32) -> bool,
    ) -> Option<ToLoad> {
        let (segments, sequence) = (self.segments.as_ref()?, self.sequences[at].as_ref()?);
        let wanted = &sequence.tokens[..sequence.tokens.len() - 1];
        segments.worth_loading(wanted, known as u32, self.token_time, offers)
    }

    /// The sequence at `at`, which has the tokens before them, waits for these segments.
    pub(super) fn wait_for(&mut self, at: usize, segments: Vec<Segment>) {
        if let Some(all) = &mut self.segments {
            all.touch(&segments);
        }
        if let Some(sequence) = &mut self.sequences[at] {
            sequence.disk.stored =
                segments.last().map_or(Stored::Unknown, |last| Stored::UpTo(last.end(), last.key));
            sequence.disk.to_load = segments.into();
        }
    }

    /// Has the next segment of one prompt written that is computed.
    pub(super) fn store_due(&mut self) {
        let Some(segments) = &self.segments else { return };
        let tokens = segments.lengths().each;
        for at in 0..self.sequences.len() {
            self.look_for_stored(at);
            while let Some(sequence) = &self.sequences[at]
                && let Some((first, parent)) = self.next_to_store(sequence)
            {
                if self.store(at, first, tokens, parent) {
                    return;
                }
            }
        }
    }

    /// Has what the sequence at `at` has computed since its last segment written, with its state.
    pub(super) fn store_state(&mut self, at: usize) {
        self.look_for_stored(at);
        let (Some(segments), Some(sequence)) = (&self.segments, &self.sequences[at]) else {
            return;
        };
        let computed = sequence.cells.len() as u32;
        let Stored::UpTo(first, parent) = sequence.disk.stored else { return };
        let tokens = computed.saturating_sub(first);
        let lengths = segments.lengths();
        if (lengths.with_state_min..=lengths.with_state_max).contains(&tokens) {
            self.store(at, first, tokens, parent);
        }
    }

    /// From where on a sequence's next segment is to be written, and what is before it.
    fn next_to_store(&self, sequence: &Sequence) -> Option<(u32, SegmentKey)> {
        let OnDisk { prompt_tokens, stored, .. } = sequence.disk;
        let (segments, Stored::UpTo(first, parent)) = (self.segments.as_ref()?, stored) else {
            return None;
        };
        let lengths = segments.lengths();
        let is_computed = sequence.cells.len() as u32 >= prompt_tokens;
        let has_one_more = first + lengths.each <= prompt_tokens;
        let wanted =
            self.limits.sharing == Sharing::Prefixes && prompt_tokens >= lengths.prompt_min;
        (wanted && is_computed && has_one_more).then_some((first, parent))
    }

    /// Finds out which of a sequence's segments are there. One whose last is gone is given up.
    fn look_for_stored(&mut self, at: usize) {
        let (Some(segments), Some(sequence)) = (&self.segments, &mut self.sequences[at]) else {
            return;
        };
        let is_there = |key| key == segments.root() || segments.contains(key);
        let stored = match sequence.disk.stored {
            Stored::UpTo(_, key) if !is_there(key) => Stored::GivenUp,
            Stored::Unknown => {
                let prompt = (sequence.disk.prompt_tokens as usize).min(sequence.tokens.len());
                let last = segments.chain(&sequence.tokens[..prompt]).pop();
                let (end, key) = last.map_or((0, segments.root()), |last| (last.end(), last.key));
                Stored::UpTo(end, key)
            }
            known => known,
        };
        sequence.disk.stored = stored;
    }

    /// `false` when it is there already, or has no room.
    fn store(&mut self, at: usize, first: u32, tokens: u32, parent: SegmentKey) -> bool {
        let (Some(segments), Some(sequence)) = (&mut self.segments, &mut self.sequences[at]) else {
            return false;
        };
        let stored = &sequence.tokens[first as usize..(first + tokens) as usize];
        let key = parent.then(stored);
        let segment = Segment { key, parent, first, tokens, bytes: segments.bytes_of(tokens) };
        sequence.disk.stored = Stored::UpTo(segment.end(), key);
        if segments.contains(key) {
            return false;
        }
        let Some(gone) = segments.make_room(tokens, parent) else {
            sequence.disk.stored = Stored::GivenUp;
            return false;
        };
        self.changes.extend(gone.into_iter().map(|segment| Change::Erase { segment }));
        segments.add(segment);
        self.changes.push(Change::Store { sequence: at as u16, segment });
        true
    }
}
