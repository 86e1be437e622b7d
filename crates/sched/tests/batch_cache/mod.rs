//! What llama.cpp's cache and the disk would hold, carried out change by change and checked.

use motley_sched::batch::{
    Change, Planner, Segment, SegmentKey, SegmentLengths, SegmentLimits, StateId, Step,
};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// What llama.cpp's cache would hold: tokens of each sequence, each with the cell it is in.
#[derive(Default)]
pub(crate) struct Cache {
    pub(crate) sequences: HashMap<u16, Vec<(i32, u64)>>,
    next_cell: u64,
    /// Of a memory that cannot be cut: the tokens each sequence's state has seen.
    states: HashMap<u16, Vec<i32>>,
    pub(crate) saved: HashMap<StateId, Vec<i32>>,
    pub(crate) disk: Disk,
}

/// What is on disk: the tokens of every segment with those before it, and its bytes.
#[derive(Default)]
pub(crate) struct Disk {
    segments: HashMap<SegmentKey, (Vec<i32>, u64)>,
    most_bytes: u64,
    /// Every so many reads and writes one fails; never with 0.
    fails_every: u32,
    tries: u32,
}

impl Disk {
    const ROOT: SegmentKey = SegmentKey([7; 32]);
    const TOKEN_BYTES: u64 = 10;
    const STATE_BYTES: u64 = 30;

    pub(crate) fn new(most_bytes: u64, fails_every: u32) -> Self {
        Self { most_bytes, fails_every, ..Self::default() }
    }

    pub(crate) fn limits(&self) -> SegmentLimits {
        SegmentLimits {
            lengths: SegmentLengths {
                each: 8,
                with_state_min: 5,
                with_state_max: 25,
                prompt_min: 16,
            },
            root: Self::ROOT,
            most_bytes: self.most_bytes,
            token_bytes: Self::TOKEN_BYTES,
            state_bytes: Self::STATE_BYTES,
            read_bytes_per_second: 1e5,
        }
    }

    fn fails(&mut self) -> bool {
        self.tries += 1;
        self.fails_every > 0 && self.tries.is_multiple_of(self.fails_every)
    }

    fn store(&mut self, segment: Segment, held: &[i32], planner: &mut Planner) {
        assert!(held.len() >= segment.end() as usize, "what is written is computed");
        let tokens = held[..segment.end() as usize].to_vec();
        assert_eq!(segment.key, segment.parent.then(&tokens[segment.first as usize..]));
        if self.fails() {
            return planner.on_unstored(segment.key);
        }
        let bytes = u64::from(segment.tokens) * Self::TOKEN_BYTES + Self::STATE_BYTES;
        assert!(self.segments.insert(segment.key, (tokens, bytes)).is_none(), "written once");
        planner.on_stored(Segment { bytes, ..segment });
        let all: u64 = self.segments.values().map(|(_, bytes)| bytes).sum();
        assert!(all <= self.most_bytes, "{all} bytes of {}", self.most_bytes);
    }
}

impl Cache {
    /// `uncut`: states matter, because they cannot be cut.
    pub(crate) fn apply(&mut self, step: &Step, planner: &mut Planner, uncut: bool) {
        for change in &step.changes {
            match *change {
                Change::Drop { sequence } => {
                    drop((self.sequences.remove(&sequence), self.states.remove(&sequence)));
                }
                Change::Copy { from, to, tokens } => {
                    self.states.insert(to, self.states[&from].clone());
                    let prefix = self.sequences[&from][..tokens as usize].to_vec();
                    assert!(self.sequences.insert(to, prefix).is_none_or(|old| old.is_empty()));
                }
                Change::Cut { sequence, tokens } => {
                    let held = self.sequences.get_mut(&sequence).expect("it holds a prefix");
                    assert!(held.len() >= tokens as usize);
                    held.truncate(tokens as usize);
                    self.states.entry(sequence).or_default().truncate(tokens as usize);
                }
                Change::Save { sequence, state } => {
                    assert_eq!(self.states[&sequence].len(), self.sequences[&sequence].len());
                    assert!(self.saved.insert(state, self.states[&sequence].clone()).is_none());
                }
                Change::Restore { sequence, state } => {
                    let seen = self.saved[&state].clone();
                    assert!(self.sequences[&sequence].len() >= seen.len());
                    self.states.insert(sequence, seen);
                }
                Change::Discard { state } => {
                    assert!(self.saved.remove(&state).is_some(), "{state:?} is there");
                }
                Change::Store { sequence, segment } => {
                    let held: Vec<i32> =
                        self.sequences[&sequence].iter().map(|&(token, _)| token).collect();
                    assert!(!uncut || held.len() == segment.end() as usize, "the state is there");
                    self.disk.store(segment, &held, planner);
                }
                Change::Load { sequence, segment } => {
                    self.load(sequence, &segment, planner);
                }
                Change::Erase { segment } => drop(self.disk.segments.remove(&segment)),
            }
        }
        for part in &step.parts {
            let held = self.sequences.entry(part.sequence).or_default();
            assert_eq!(held.len(), part.first as usize, "positions follow each other");
            let tokens = planner.tokens(part.sequence);
            for &token in &tokens[part.first as usize..][..part.tokens as usize] {
                self.next_cell += 1;
                held.push((token, self.next_cell));
            }
            let known: Vec<i32> = held.iter().map(|&(token, _)| token).collect();
            assert_eq!(known, tokens[..known.len()], "the cache holds the request's tokens");
            let seen = self.states.entry(part.sequence).or_default();
            seen.extend(&tokens[part.first as usize..][..part.tokens as usize]);
            if uncut {
                assert_eq!(*seen, known, "the state has seen the sequence's tokens");
            }
        }
    }

    fn load(&mut self, sequence: u16, segment: &Segment, planner: &mut Planner) {
        let held = self.sequences.entry(sequence).or_default();
        assert_eq!(held.len(), segment.first as usize, "segments follow each other");
        let tokens = self.disk.segments[&segment.key].0.clone();
        assert_eq!(tokens.len(), segment.end() as usize);
        if self.disk.fails() {
            return planner.on_unloaded(sequence, segment);
        }
        for &token in &tokens[segment.first as usize..] {
            self.next_cell += 1;
            held.push((token, self.next_cell));
        }
        self.states.insert(sequence, tokens);
        planner.on_loaded(segment, Duration::from_millis(1));
    }

    pub(crate) fn cells(&self) -> usize {
        self.cells_of(|_| true)
    }

    /// Cells of those sequences, shared ones once.
    pub(crate) fn cells_of(&self, which: impl Fn(u16) -> bool) -> usize {
        let held = self.sequences.iter().filter(|(sequence, _)| which(**sequence));
        held.flat_map(|(_, held)| held).map(|&(_, cell)| cell).collect::<HashSet<_>>().len()
    }
}
