//! Beginnings of prompts on disk, in segments: what there is, which of it begins a prompt, whether
//! reading it is faster than computing it, and what goes when there is no room. Knows keys, lengths and sizes; the driver has the bytes.
//!
//! ```text
//!  root of the model ──► segment ──► segment ──► segment       key = SHA-256(key before, tokens)
//!                           └──────► segment                   two prompts that begin alike
//! ```
//!
//! A key names all tokens up to the segment's end, and the model. So the segments of a prompt are
//! found without its tokens being on disk, and those of another model never match. Blocks by a chain
//! of hashes: vLLM (Kwon et al. 2023).

use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

/// Names a segment: what a model computed of these tokens after those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentKey(pub [u8; 32]);

impl SegmentKey {
    /// The key of `tokens` after what `self` names.
    pub fn then(self, tokens: &[i32]) -> Self {
        let mut hash = Sha256::new_with_prefix(self.0);
        tokens.iter().for_each(|token| hash.update(token.to_le_bytes()));
        Self(hash.finalize().into())
    }
}

/// A segment on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub key: SegmentKey,
    /// What comes before it: another's key, or the model's root.
    pub parent: SegmentKey,
    /// Tokens before it.
    pub first: u32,
    pub tokens: u32,
    /// Bytes of its file.
    pub bytes: u64,
}

impl Segment {
    /// Tokens up to its end.
    pub fn end(&self) -> u32 {
        self.first.saturating_add(self.tokens)
    }

    /// Whether it is what it must be to stand after `parent` and `tokens` tokens.
    fn follows(&self, parent: SegmentKey, tokens: usize) -> bool {
        self.parent == parent && self.first as usize == tokens && self.tokens > 0
    }
}

/// How long segments are, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentLengths {
    /// Where memory can be cut.
    pub each: u32,
    /// At least so long where one carries a state, which may be larger than its cells.
    pub with_state_min: u32,
    /// At most so long there: its bytes are in memory while they are written.
    pub with_state_max: u32,
    /// Shorter prompts are computed again sooner than they are worth writing.
    pub prompt_min: u32,
}

impl Default for SegmentLengths {
    fn default() -> Self {
        Self { each: 256, with_state_min: 256, with_state_max: 4096, prompt_min: 512 }
    }
}

/// The bounds of what is kept on disk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SegmentLimits {
    pub lengths: SegmentLengths,
    /// Names the model and all that decides how its memory is laid out.
    pub root: SegmentKey,
    /// Most bytes of all segments.
    pub most_bytes: u64,
    /// Bytes of the cells of a token.
    pub token_bytes: u64,
    /// Bytes of what does not grow with tokens.
    pub state_bytes: u64,
    /// Bytes the disk reads in a second, until that was measured here.
    pub read_bytes_per_second: f64,
}

/// Segments that a prompt begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToLoad {
    /// Tokens before the first of them, which are in memory.
    pub(super) start: u32,
    /// In order.
    pub(super) segments: Vec<Segment>,
}

/// All segments there are.
#[derive(Debug, Clone)]
pub(super) struct Segments {
    limits: SegmentLimits,
    kept: BTreeMap<SegmentKey, Entry>,
    /// Lengths of the segments that follow a key, and how many have each.
    lengths: BTreeMap<SegmentKey, BTreeMap<u32, u32>>,
    bytes: u64,
    /// Counts uses.
    clock: u64,
    read_bytes_per_second: f64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    segment: Segment,
    /// When it was last of use; never before one that follows it.
    used: u64,
}

/// Part of a new measurement in the rate that is believed.
const NEW_SHARE: f64 = 0.3;

impl Segments {
    /// What the driver found, most recently used last; of any model.
    pub(super) fn new(limits: SegmentLimits, found: &[Segment]) -> Self {
        let mut all = Self {
            limits,
            kept: BTreeMap::new(),
            lengths: BTreeMap::new(),
            bytes: 0,
            clock: 0,
            read_bytes_per_second: limits.read_bytes_per_second,
        };
        for segment in found {
            all.add(*segment);
        }
        for segment in found {
            let used = all.kept.get(&segment.key).map_or(0, |entry| entry.used);
            all.use_before(segment.parent, used);
        }
        all
    }

    pub(super) fn lengths(&self) -> SegmentLengths {
        self.limits.lengths
    }

    /// The root of this model.
    pub(super) fn root(&self) -> SegmentKey {
        self.limits.root
    }

    pub(super) fn contains(&self, key: SegmentKey) -> bool {
        self.kept.contains_key(&key)
    }

    /// One more is there.
    pub(super) fn add(&mut self, segment: Segment) {
        self.remove(segment.key);
        self.clock += 1;
        self.bytes = self.bytes.saturating_add(segment.bytes);
        *self.lengths.entry(segment.parent).or_default().entry(segment.tokens).or_default() += 1;
        self.kept.insert(segment.key, Entry { segment, used: self.clock });
        self.use_before(segment.parent, self.clock);
    }

    /// One is not there any more; `false` when it was not.
    pub(super) fn remove(&mut self, key: SegmentKey) -> bool {
        let Some(Entry { segment, .. }) = self.kept.remove(&key) else { return false };
        self.bytes = self.bytes.saturating_sub(segment.bytes);
        if let Some(lengths) = self.lengths.get_mut(&segment.parent)
            && let Some(count) = lengths.get_mut(&segment.tokens)
        {
            *count -= 1;
            lengths.retain(|_, count| *count > 0);
            if lengths.is_empty() {
                self.lengths.remove(&segment.parent);
            }
        }
        true
    }

    /// The segments that `tokens` begin with, as far as there are any, in order.
    pub(super) fn chain(&self, tokens: &[i32]) -> Vec<Segment> {
        let mut open = vec![(self.limits.root, 0_usize)];
        let mut best = (0, self.limits.root);
        while let Some((key, at)) = open.pop() {
            best = best.max((at, key));
            for &length in self.lengths.get(&key).into_iter().flat_map(BTreeMap::keys) {
                let Some(next) = tokens.get(at..at + length as usize) else { break };
                let next = key.then(next);
                if self.kept.get(&next).is_some_and(|entry| entry.segment.follows(key, at)) {
                    open.push((next, at + length as usize));
                }
            }
        }
        let mut chain: Vec<Segment> = self.up_to(best.1).collect();
        chain.reverse();
        chain
    }

    /// What is worth reading of `tokens`' beginning when memory has `known` of it, and can begin at
    /// those of a segment's ends that `offers` says. A token takes `token_time` to compute.
    pub(super) fn worth_loading(
        &self,
        tokens: &[i32],
        known: u32,
        token_time: Option<Duration>,
        offers: impl Fn(u32) -> bool,
    ) -> Option<ToLoad> {
        let chain = self.chain(tokens);
        let end = chain.last().map_or(0, Segment::end);
        let start = chain.iter().map(Segment::end).filter(|&end| end <= known && offers(end));
        let start = start.max().unwrap_or(0);
        let segments: Vec<Segment> =
            chain.into_iter().filter(|segment| segment.first >= start).collect();
        let bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
        let spared = end.checked_sub(known).filter(|&tokens| tokens > 0)?;
        let reading = bytes as f64 / self.read_bytes_per_second.max(1.0);
        let computing = token_time.map_or(f64::INFINITY, |time| time.as_secs_f64());
        (reading < computing * f64::from(spared)).then_some(ToLoad { start, segments })
    }

    /// They were of use.
    pub(super) fn touch(&mut self, segments: &[Segment]) {
        self.clock += 1;
        segments.iter().for_each(|segment| self.use_before(segment.key, self.clock));
    }

    /// What goes so that a segment of `tokens` tokens may come after `parent`. `None` where it would
    /// be its own beginning.
    pub(super) fn make_room(&mut self, tokens: u32, parent: SegmentKey) -> Option<Vec<SegmentKey>> {
        let beginning: u64 = self.up_to(parent).map(|segment| segment.bytes).sum();
        let others = self.limits.most_bytes.checked_sub(self.bytes_of(tokens))?;
        if beginning > others {
            return None;
        }
        self.clock += 1;
        self.use_before(parent, self.clock);
        Some(self.keep_within(others))
    }

    /// What goes so that no more than `most_bytes` stay: what was used longest ago, and of a prompt
    /// its end first.
    pub(super) fn keep_within(&mut self, most_bytes: u64) -> Vec<SegmentKey> {
        let mut gone = Vec::new();
        if self.bytes <= most_bytes {
            return gone;
        }
        let mut order: Vec<Entry> = self.kept.values().copied().collect();
        order.sort_unstable_by_key(|entry| {
            (entry.used, Reverse(entry.segment.first), entry.segment.key)
        });
        for Entry { segment, .. } in order {
            if self.bytes <= most_bytes {
                break;
            }
            self.remove(segment.key);
            gone.push(segment.key);
        }
        gone
    }

    /// About the bytes of one of `tokens` tokens.
    pub(super) fn bytes_of(&self, tokens: u32) -> u64 {
        let cells = u64::from(tokens).saturating_mul(self.limits.token_bytes);
        cells.saturating_add(self.limits.state_bytes)
    }

    /// Reading `bytes` took so long.
    pub(super) fn on_read(&mut self, bytes: u64, took: Duration) {
        let rate = bytes as f64 / took.as_secs_f64().max(1e-9);
        self.read_bytes_per_second += NEW_SHARE * (rate - self.read_bytes_per_second);
    }

    /// The segment that is `key` and those before it, last first. What files say of themselves may be
    /// wrong, and go round in a circle: each must end where the one after it begins.
    fn up_to(&self, key: SegmentKey) -> impl Iterator<Item = Segment> {
        let segment = |key| self.kept.get(&key).map(|entry| entry.segment);
        std::iter::successors(segment(key), move |after| {
            segment(after.parent)
                .filter(|before| before.first < after.first && before.end() == after.first)
        })
    }

    /// What lies before `key`, and itself, is of use as late as `used`.
    fn use_before(&mut self, mut key: SegmentKey, used: u64) {
        while let Some(entry) = self.kept.get_mut(&key)
            && entry.used < used
        {
            entry.used = used;
            key = entry.segment.parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: SegmentLimits = SegmentLimits {
        lengths: SegmentLengths { each: 2, with_state_min: 2, with_state_max: 4, prompt_min: 2 },
        root: SegmentKey([0; 32]),
        most_bytes: 1000,
        token_bytes: 1,
        state_bytes: 0,
        read_bytes_per_second: 1e9,
    };

    /// Three segments of two tokens each.
    fn honest() -> Vec<Segment> {
        let mut parent = LIMITS.root;
        let segment = |first: u32| {
            let key = parent.then(&[first as i32, first as i32 + 1]);
            let segment = Segment { key, parent, first, tokens: 2, bytes: 2 };
            parent = key;
            segment
        };
        [0, 2, 4].map(segment).to_vec()
    }

    #[test]
    fn what_files_wrongly_say_of_themselves_ends_nothing_and_is_not_read() {
        let prompt: Vec<i32> = (0..6).collect();
        let honest = honest();
        assert_eq!(Segments::new(LIMITS, &honest).chain(&prompt), honest);
        for (wrong, found) in [
            (Segment { parent: honest[1].key, ..honest[1] }, 1),
            (Segment { parent: honest[2].key, ..honest[0] }, 0),
            (Segment { first: 3, ..honest[1] }, 1),
            (Segment { first: u32::MAX, ..honest[2] }, 2),
            (Segment { tokens: 0, ..honest[2] }, 2),
            (Segment { first: u32::MAX, parent: honest[2].key, ..honest[2] }, 2),
        ] {
            let all = honest.iter().map(|old| if old.key == wrong.key { wrong } else { *old });
            let mut segments = Segments::new(LIMITS, &all.collect::<Vec<_>>());
            assert_eq!(segments.chain(&prompt).len(), found, "{wrong:?}");
            assert!(segments.make_room(2, honest[2].key).is_some(), "{wrong:?}");
        }
    }
}
