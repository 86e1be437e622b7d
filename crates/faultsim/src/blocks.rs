//! Expert bytes for the model: what it asks of them, and reading them on demand through the
//! store's arenas, leases and read queue. The engine's drive loop is to take `OnDemand`'s place.

use crate::disk::VirtualDisk;
use crate::events::Events;
use crate::plan::ExpertsPlan;
use motley_engine::batching::ComputeError;
use motley_model::{LayerExperts, Matrix};
use motley_store::{
    Arena, ArenaSpec, Completion, Disk, ExpertLease, ExpertRead, Filled, FilledExpert, HugePages,
    Priority, ReadError, Request, SteppedReader, Tag,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

/// Layer and expert.
pub type Key = (u16, u16);

/// All that the model asks of expert bytes: the seam where a drive loop joins.
pub trait ExpertBlocks {
    /// Brings the bytes of `experts` of `layer` and shows each once, in any order. Other things
    /// may happen meanwhile; what was shown is good only during the call of `show`.
    fn run(
        &mut self,
        layer: u16,
        experts: &BTreeSet<u16>,
        show: &mut dyn FnMut(u16, &FilledExpert),
    ) -> Result<(), ComputeError>;
}

/// Arenas, the reader and which expert lies where.
pub(crate) struct ExpertMemory {
    layers: Vec<LayerExperts>,
    arenas: BTreeMap<Matrix, Arena>,
    pub(crate) disk: Arc<VirtualDisk>,
    pub(crate) reader: SteppedReader,
    /// With the time of the last use.
    filled: BTreeMap<Key, (u64, FilledExpert)>,
    under_way: BTreeSet<Key>,
    uses: u64,
    pub(crate) slots_least: u32,
    pub(crate) slots_most: u32,
}

impl ExpertMemory {
    pub(crate) fn new(
        plan: &ExpertsPlan,
        disk: VirtualDisk,
        layers: Vec<LayerExperts>,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let disk = Arc::new(disk);
        let matrices = [(Matrix::GateUp, 0), (Matrix::Down, 1)];
        let mut arenas = BTreeMap::new();
        for (matrix, at) in matrices {
            let bytes = plan.matrix_bytes[at] as usize;
            let spec = ArenaSpec {
                huge_pages: HugePages::Refuse,
                ..ArenaSpec::for_matrix(bytes, disk.alignment(), plan.slots_most)
            };
            arenas.insert(matrix, Arena::new(spec)?);
        }
        let reader = SteppedReader::new(Arc::clone(&disk) as _, plan.reads_in_flight)?;
        Ok(Self {
            layers,
            arenas,
            disk,
            reader,
            filled: BTreeMap::new(),
            under_way: BTreeSet::new(),
            uses: 0,
            slots_least: plan.slots_least,
            slots_most: plan.slots_most,
        })
    }

    /// The bytes of an expert that is there.
    fn get(&mut self, key: Key) -> Option<FilledExpert> {
        self.uses += 1;
        let (used, filled) = self.filled.get_mut(&key)?;
        *used = self.uses;
        Some(filled.clone())
    }

    /// Starts reading; `false` when no slot is free.
    fn load(&mut self, key: Key, priority: Priority) -> bool {
        let layer = &self.layers[usize::from(key.0)];
        let arenas = &self.arenas;
        let lease = ExpertLease::from_arenas(&layer.tensors, |tensor| arenas.get(&tensor.matrix));
        let Some(lease) = lease else { return false };
        let tag = Tag(u64::from(key.0) << 16 | u64::from(key.1));
        let read = ExpertRead { tag, priority, layer, expert: u32::from(key.1) };
        let Ok(request) = Request::for_expert(read, lease, &*self.disk) else { return false };
        self.reader.submit([request]);
        self.under_way.insert(key);
        true
    }

    /// Gives the slots of the expert back that was not used for longest; `false` if none is there.
    fn evict(&mut self) -> bool {
        let oldest = self.filled.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| *key);
        oldest.is_some_and(|key| self.filled.remove(&key).is_some())
    }

    fn land(&mut self, completion: Completion) -> (Key, Result<(), ReadError>) {
        let key = ((completion.tag.0 >> 16) as u16, completion.tag.0 as u16);
        self.under_way.remove(&key);
        self.uses += 1;
        let outcome = completion.outcome.map_err(|failed| failed.error);
        (key, outcome.map(|filled| drop(self.filled.insert(key, (self.uses, filled)))))
    }

    /// Lets `slots` be used from now on, as the engine does: what goes is dropped, what stays
    /// moves down.
    pub(crate) fn resize(&mut self, slots: u32) -> Result<(), String> {
        while self.filled.len() + self.under_way.len() > slots as usize && self.evict() {}
        for (_, filled) in self.filled.values_mut() {
            let settled = filled.clone().into_slots();
            *filled = std::iter::empty().collect();
            let settle = |slot: Filled| slot.settle().unwrap_or_else(|unmoved| unmoved);
            *filled = settled.into_iter().map(|(m, p, slot)| (m, p, settle(slot))).collect();
        }
        for arena in self.arenas.values() {
            let beyond = arena.set_usable(slots);
            let most = u64::from(slots.max(arena.leased_slots())) * arena.stride_bytes() as u64;
            if arena.occupied_bytes() > most || beyond > self.under_way.len() as u32 {
                return Err(format!("{} bytes above a ceiling of {most}", arena.occupied_bytes()));
            }
        }
        Ok(())
    }

    /// Gives everything back; what is still held then has leaked.
    pub(crate) fn close(&mut self) -> Result<(), String> {
        self.filled.clear();
        let leased: u32 = self.arenas.values().map(Arena::leased_slots).sum();
        match (leased, self.reader.under_way()) {
            (0, 0) => Ok(()),
            (slots, reads) => Err(format!("{slots} slots and {reads} reads are still held")),
        }
    }

    /// Takes what has landed.
    pub(crate) fn drain(&mut self) {
        while let Some(completion) = self.reader.poll() {
            let _ = self.land(completion);
        }
    }
}

/// Experts read when they are needed, with guesses for what may come.
pub struct OnDemand {
    events: Rc<RefCell<Events>>,
    guesses_per_mille: u16,
}

impl OnDemand {
    pub(crate) fn new(events: Rc<RefCell<Events>>, guesses_per_mille: u16) -> Self {
        Self { events, guesses_per_mille }
    }

    /// Starts loads as far as slots go; those whose bytes are there already are shown.
    fn start(
        &mut self,
        layer: u16,
        missing: &mut Vec<u16>,
        awaited: &mut BTreeSet<Key>,
        show: &mut dyn FnMut(u16, &FilledExpert),
    ) {
        let mut events = self.events.borrow_mut();
        while let Some(&expert) = missing.last() {
            let key = (layer, expert);
            if let Some(filled) = events.experts.get(key) {
                show(expert, &filled);
            } else if !events.experts.under_way.contains(&key)
                && !events.experts.load(key, Priority::Demand)
            {
                if events.experts.evict() {
                    continue;
                }
                break;
            } else {
                awaited.insert(key);
            }
            missing.pop();
        }
        events.disk_turn();
    }

    /// The next load that ends; other things happen meanwhile. `None` when none is under way.
    fn wait(&mut self) -> Option<(Key, Result<(), ReadError>)> {
        let mut events = self.events.borrow_mut();
        loop {
            if let Some(completion) = events.experts.reader.poll() {
                return Some(events.experts.land(completion));
            }
            if events.experts.reader.under_way() == 0 || !events.step() {
                return None;
            }
        }
    }

    fn guess(&mut self, layer: u16) {
        let mut events = self.events.borrow_mut();
        if events.rng.u16(..1000) >= self.guesses_per_mille {
            return;
        }
        let (layers, expert) = (events.experts.layers.len() as u16, events.rng.u16(..));
        let next = (layer + 1) % layers;
        let experts = events.experts.layers[usize::from(next)].experts as u16;
        let key = (next, expert % experts);
        let known = events.experts.filled.contains_key(&key);
        if !known && !events.experts.under_way.contains(&key) {
            events.experts.load(key, Priority::Prefetch);
            events.disk_turn();
        }
    }
}

impl ExpertBlocks for OnDemand {
    fn run(
        &mut self,
        layer: u16,
        experts: &BTreeSet<u16>,
        show: &mut dyn FnMut(u16, &FilledExpert),
    ) -> Result<(), ComputeError> {
        let mut missing: Vec<u16> = experts.iter().copied().collect();
        let mut awaited = BTreeSet::new();
        loop {
            self.start(layer, &mut missing, &mut awaited, show);
            if missing.is_empty() && awaited.is_empty() {
                self.guess(layer);
                return Ok(());
            }
            let Some((key, outcome)) = self.wait() else {
                let reason = "waits for a read that never ends".to_owned();
                self.events.borrow_mut().broken(|| reason.clone());
                return Err(ComputeError { reason, model_changed: false, cache_lost: false });
            };
            if !awaited.remove(&key) {
                continue;
            }
            match outcome {
                // Shown at once: a resize may take it away again.
                Ok(()) => missing.push(key.1),
                Err(error) => {
                    let model_changed = matches!(error, ReadError::Changed { .. });
                    let reason = error.to_string();
                    return Err(ComputeError { reason, model_changed, cache_lost: false });
                }
            }
        }
    }
}
