//! A model whose answers are known and whose cache is checked: every row must continue what the
//! changes of the cache have left, within the cells there are. Fails when the seed says so.

use crate::blocks::ExpertBlocks;
use crate::events::Events;
use crate::hash::{fingerprint, mix};
use crate::oracle::{Truth, letter};
use crate::plan::{FaultRates, Plan, VOCAB};
use motley_engine::batching::{
    BatchToken, Compute, ComputeError, ComputeFigures, Segment, SegmentKey, SegmentLengths,
    SegmentLimits, StateId,
};
use motley_sched::Phase;
use motley_sched::batch::Sharing;
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::time::Duration;

/// What an injected panic carries, so that it is told from a bug.
#[derive(Debug, Clone, Copy)]
pub struct Injected;

/// Bytes of a token on disk, and of a state.
const TOKEN_BYTES: u64 = 10;

/// A token computed: what the sequence is after it.
struct KvCell {
    state: u64,
    /// Cells alive, each counted once however many sequences hold it.
    alive: Rc<Cell<u32>>,
}

impl Drop for KvCell {
    fn drop(&mut self) {
        self.alive.set(self.alive.get() - 1);
    }
}

/// The model and its cache.
pub struct FakeModel {
    events: Rc<RefCell<Events>>,
    blocks: Box<dyn ExpertBlocks>,
    truth: Truth,
    sequences: Vec<Vec<Rc<KvCell>>>,
    /// Where memory cannot be cut: the state of each sequence after its last token, which is not
    /// the one its cells tell of after a copy or a cut.
    recurrent: Option<Vec<u64>>,
    saved: HashMap<StateId, u64>,
    /// States that could not be saved.
    unsaved: BTreeSet<StateId>,
    /// The states of the tokens of every segment on disk.
    segments: HashMap<SegmentKey, Vec<u64>>,
    prefix_bytes: Option<u64>,
    /// Cells of all sequences, or of each where they have their own.
    cells: u32,
    shared: bool,
    alive: Rc<Cell<u32>>,
    /// No step succeeds before the cache is cleared.
    lost: bool,
    logits: HashMap<usize, [f32; VOCAB]>,
    rng: fastrand::Rng,
    rates: FaultRates,
    /// Time that went into experts, reads above all.
    stalled: Duration,
}

impl FakeModel {
    pub(crate) fn new(
        plan: &Plan,
        sharing: Sharing,
        truth: Truth,
        events: Rc<RefCell<Events>>,
        blocks: Box<dyn ExpertBlocks>,
    ) -> Self {
        let shared = !matches!(sharing, Sharing::Parts | Sharing::Nothing);
        let uncut = matches!(sharing, Sharing::States { .. });
        let parts = if shared { 1 } else { u32::from(plan.options.sequences) };
        Self {
            events,
            blocks,
            truth,
            sequences: (0..plan.options.sequences).map(|_| Vec::new()).collect(),
            recurrent: uncut.then(|| vec![0; usize::from(plan.options.sequences)]),
            saved: HashMap::new(),
            unsaved: BTreeSet::new(),
            segments: HashMap::new(),
            prefix_bytes: plan.prefix_bytes.filter(|_| shared),
            cells: plan.options.context_tokens / parts,
            shared,
            alive: Rc::default(),
            lost: false,
            logits: HashMap::new(),
            rng: fastrand::Rng::with_seed(mix(plan.seed ^ 0x30de1)),
            rates: plan.faults,
            stalled: Duration::ZERO,
        }
    }

    /// Cells in use, shared ones once.
    pub(crate) fn alive(&self) -> Rc<Cell<u32>> {
        Rc::clone(&self.alive)
    }

    fn broken(&self, what: impl FnOnce() -> String) {
        self.events.borrow_mut().broken(what);
    }

    /// Puts rows into the cache; the state after each.
    fn place(&mut self, rows: &[BatchToken]) -> Vec<u64> {
        let mut states = Vec::with_capacity(rows.len());
        for row in rows {
            let sequence = &mut self.sequences[row.sequence as usize];
            if row.position as usize != sequence.len() {
                let has = sequence.len();
                self.broken(|| format!("{row:?} does not follow the {has} tokens of its sequence"));
                break;
            }
            let before = sequence.last().map_or(0, |cell| cell.state);
            let state = Truth::after(before, row.token);
            let recurrent = self.recurrent.as_mut().map(|all| &mut all[row.sequence as usize]);
            let apart = recurrent.is_some_and(|held| std::mem::replace(held, state) != before);
            self.alive.set(self.alive.get() + 1);
            sequence.push(Rc::new(KvCell { state, alive: Rc::clone(&self.alive) }));
            states.push(state);
            let used = if self.shared { self.alive.get() } else { sequence.len() as u32 };
            if used > self.cells {
                let cells = self.cells;
                self.broken(|| format!("{row:?} is one more than the {cells} cells there are"));
            }
            if apart {
                self.broken(|| format!("the state before {row:?} is of other tokens"));
            }
        }
        states
    }

    /// A failed step leaves any part of its rows behind.
    fn leave_some(&mut self, rows: &[BatchToken]) {
        let some = self.rng.usize(..=rows.len());
        self.place(&rows[..some]);
    }

    /// Runs every layer; the sum of what its experts hold for each row.
    fn layers(&mut self, states: &[u64]) -> Result<Vec<u64>, ComputeError> {
        let mut sums = vec![0_u64; states.len()];
        for layer in 0..self.truth.layers() {
            let routed: Vec<Vec<u16>> =
                states.iter().map(|&state| self.truth.routed(state, layer).collect()).collect();
            let wanted: BTreeSet<u16> = routed.iter().flatten().copied().collect();
            let (truth, mut held, mut wrong, mut twice) = (&self.truth, HashMap::new(), None, None);
            let mut show = |expert: u16, matrices: &[&[u8]]| {
                let found = matrices.iter().fold(0, |sum, bytes| mix(sum ^ fingerprint(bytes)));
                if found != truth.fingerprint(layer, expert) {
                    wrong = Some(expert);
                }
                if held.insert(expert, found).is_some() {
                    twice = Some(expert);
                }
            };
            self.blocks.run(layer, &wanted, &mut show)?;
            let left_out = wanted.iter().find(|expert| !held.contains_key(expert));
            for (expert, what) in [
                (wrong.as_ref(), "has other bytes"),
                (twice.as_ref(), "is computed twice"),
                (left_out, "is left out"),
            ] {
                if let Some(expert) = expert {
                    self.broken(|| format!("expert {expert} of layer {layer} {what}"));
                }
            }
            for (sum, experts) in sums.iter_mut().zip(&routed) {
                *sum = experts.iter().fold(*sum, |sum, e| {
                    sum.wrapping_add(held.get(e).copied().unwrap_or_default())
                });
            }
        }
        Ok(sums)
    }

    fn fault(&mut self, rows: &[BatchToken]) -> Result<(), ComputeError> {
        if self.rng.u32(..100_000) < u32::from(self.rates.panic) {
            self.leave_some(rows);
            self.events.borrow_mut().counts.panics += 1;
            std::panic::panic_any(Injected);
        }
        if self.rng.u16(..1000) < self.rates.decode {
            self.leave_some(rows);
            self.events.borrow_mut().counts.failed_steps += 1;
            let reason = "injected".to_owned();
            return Err(ComputeError { reason, model_changed: false, cache_lost: false });
        }
        if self.lost {
            let reason = "the cache is lost".to_owned();
            return Err(ComputeError { reason, model_changed: false, cache_lost: true });
        }
        Ok(())
    }
}

impl Compute for FakeModel {
    fn decode(&mut self, rows: &[BatchToken], phase: Phase) -> Result<(), ComputeError> {
        let cost = Duration::from_micros(150 + 30 * rows.len() as u64);
        {
            let mut events = self.events.borrow_mut();
            events.counts.steps += 1;
            events.say(|| format!("{phase:?} of {} rows", rows.len()));
            events.pass(cost);
        }
        self.logits.clear();
        self.fault(rows)?;
        let mut states = Vec::with_capacity(rows.len());
        let mut last: HashMap<i32, u64> = HashMap::new();
        for row in rows {
            let sequence = &self.sequences[row.sequence as usize];
            let before = last.get(&row.sequence).copied();
            let before = before.or_else(|| sequence.last().map(|cell| cell.state)).unwrap_or(0);
            let state = Truth::after(before, row.token);
            last.insert(row.sequence, state);
            states.push(state);
        }
        let begun = self.events.borrow().now();
        let sums = self.layers(&states);
        self.stalled += self.events.borrow().now() - begun;
        let sums = sums.inspect_err(|_| self.leave_some(rows))?;
        let states = self.place(rows);
        for (index, (state, sum)) in states.iter().zip(sums).enumerate() {
            if rows[index].logits {
                let mut logits = [0.0; VOCAB];
                logits[Truth::next(*state, sum) as usize] = 1.0;
                self.logits.insert(index, logits);
            }
        }
        Ok(())
    }

    fn logits(&self, index: usize) -> Option<&[f32]> {
        self.logits.get(&index).map(|logits| &logits[..])
    }

    fn vector(&self, _: i32) -> Option<&[f32]> {
        None
    }

    fn truncate(&mut self, sequence: i32, position: i32) -> bool {
        let refused = self.rng.u16(..1000) < self.rates.cut && (position > 0 || self.rng.bool());
        if refused {
            self.events.borrow_mut().counts.refused_cuts += 1;
            // llama.cpp threw, perhaps: then nothing works before the cache is cleared.
            self.lost |= self.rng.u8(..4) == 0;
            return false;
        }
        self.sequences[sequence as usize].truncate(position as usize);
        if position == 0
            && let Some(all) = &mut self.recurrent
        {
            all[sequence as usize] = 0;
        }
        true
    }

    fn copy_prefix(&mut self, from: i32, to: i32, tokens: i32) {
        let there = self.sequences[from as usize].get(..tokens as usize);
        let Some(prefix) = there.map(<[_]>::to_vec) else {
            return self.broken(|| format!("{tokens} tokens of {from} copied that are not there"));
        };
        if let Some(all) = &mut self.recurrent {
            all[to as usize] = all[from as usize];
        }
        let target = &mut self.sequences[to as usize];
        let fits = self.shared && target.is_empty();
        target.extend(prefix);
        if !fits {
            self.broken(|| format!("{tokens} tokens copied onto sequence {to}, which has some"));
        }
    }

    fn save(&mut self, sequence: i32, state: StateId) -> bool {
        let held = self.recurrent.as_ref().map(|all| all[sequence as usize]);
        let unsaved = held.is_none_or(|held| self.saved.insert(state, held).is_some());
        if unsaved {
            self.broken(|| format!("{state:?} is saved where it cannot be, or twice"));
        }
        let fails = self.rng.u16(..1000) < self.rates.cut;
        if fails {
            self.saved.remove(&state);
            self.unsaved.insert(state);
        }
        !fails
    }

    fn restore(&mut self, sequence: i32, state: StateId) -> bool {
        if self.rng.u16(..1000) < self.rates.cut || self.unsaved.contains(&state) {
            self.events.borrow_mut().counts.refused_cuts += 1;
            return false;
        }
        match (self.saved.get(&state), &mut self.recurrent) {
            (Some(&saved), Some(all)) => all[sequence as usize] = saved,
            _ => self.broken(|| format!("{state:?} is restored and is not there")),
        }
        true
    }

    fn discard(&mut self, state: StateId) {
        if self.saved.remove(&state).is_none() && !self.unsaved.contains(&state) {
            self.broken(|| format!("{state:?} is discarded and is not there"));
        }
    }

    fn on_disk(&mut self) -> Option<(SegmentLimits, Vec<Segment>)> {
        let limits = SegmentLimits {
            lengths: SegmentLengths {
                each: 8,
                with_state_min: 5,
                with_state_max: 40,
                prompt_min: 16,
            },
            root: SegmentKey([0; 32]),
            most_bytes: self.prefix_bytes?,
            token_bytes: TOKEN_BYTES,
            state_bytes: TOKEN_BYTES,
            read_bytes_per_second: 1e6,
        };
        Some((limits, Vec::new()))
    }

    fn store(&mut self, sequence: i32, segment: &Segment) -> Option<u64> {
        let held = &self.sequences[sequence as usize];
        let range = segment.first as usize..segment.end() as usize;
        let Some(states) = held.get(range).map(|cells| cells.iter().map(|cell| cell.state)) else {
            self.broken(|| format!("{segment:?} is written and not computed"));
            return None;
        };
        let states: Vec<u64> = states.collect();
        let seen = self.recurrent.as_ref().map(|all| all[sequence as usize]);
        if seen.is_some_and(|seen| Some(&seen) != states.last()) {
            self.broken(|| format!("{segment:?} is written with the state of another place"));
        }
        if self.rng.u16(..1000) < self.rates.eio {
            return None;
        }
        self.segments.insert(segment.key, states);
        Some(u64::from(segment.tokens + 1) * TOKEN_BYTES)
    }

    fn load(&mut self, sequence: i32, segment: &Segment) -> bool {
        let has = self.sequences[sequence as usize].len();
        if has != segment.first as usize {
            self.broken(|| format!("{segment:?} is read after {has} tokens"));
        }
        let fails = self.rng.u16(..1000) < self.rates.eio;
        let Some(states) = self.segments.get(&segment.key).filter(|_| !fails) else {
            self.events.borrow_mut().counts.unread_segments += 1;
            return false;
        };
        if let (Some(all), Some(last)) = (&mut self.recurrent, states.last()) {
            all[sequence as usize] = *last;
        }
        self.alive.set(self.alive.get() + states.len() as u32);
        let alive = &self.alive;
        let cell = |&state: &u64| Rc::new(KvCell { state, alive: Rc::clone(alive) });
        self.sequences[sequence as usize].extend(states.iter().map(cell));
        self.events.borrow_mut().counts.read_segments += 1;
        true
    }

    fn erase(&mut self, segment: SegmentKey) {
        self.segments.remove(&segment);
    }

    fn clear(&mut self) {
        self.lost = false;
        self.saved.clear();
        self.unsaved.clear();
        self.recurrent.iter_mut().for_each(|all| all.fill(0));
        self.sequences.iter_mut().for_each(Vec::clear);
    }

    fn vocab_size(&self) -> usize {
        VOCAB
    }

    fn is_end(&self, token: i32) -> bool {
        token == 0
    }

    fn token_bytes(&self, token: i32, _: bool) -> Cow<'_, [u8]> {
        Cow::Owned(letter(token).to_string().into_bytes())
    }

    fn figures(&self) -> ComputeFigures {
        ComputeFigures { stalled: self.stalled, ..ComputeFigures::default() }
    }
}
