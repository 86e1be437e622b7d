//! Expert bytes in arenas, read through the store's leases and read queue from the virtual disk.
//! Decides nothing but which expert goes first when a slot is needed.

use crate::disk::VirtualDisk;
use crate::plan::ExpertsPlan;
use motley_model::{LayerExperts, Matrix};
use motley_store::{
    Arena, ArenaSpec, Completion, Disk, ExpertLease, ExpertRead, Filled, FilledExpert, HugePages,
    Priority, ReadError, Request, SteppedReader, Tag,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Layer and expert.
pub(crate) type Key = (u16, u16);

/// Arenas, the reader and which expert lies where.
pub(crate) struct ExpertMemory {
    pub(crate) layers: Vec<LayerExperts>,
    arenas: BTreeMap<Matrix, Arena>,
    pub(crate) disk: Arc<VirtualDisk>,
    pub(crate) reader: SteppedReader,
    /// With the time of the last use.
    pub(crate) filled: BTreeMap<Key, (u64, FilledExpert)>,
    pub(crate) under_way: BTreeSet<Key>,
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
    pub(crate) fn get(&mut self, key: Key) -> Option<FilledExpert> {
        self.uses += 1;
        let (used, filled) = self.filled.get_mut(&key)?;
        *used = self.uses;
        Some(filled.clone())
    }

    /// Starts reading; `false` when no slot is free.
    pub(crate) fn load(&mut self, key: Key, priority: Priority) -> bool {
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
    pub(crate) fn evict(&mut self) -> bool {
        let oldest = self.filled.iter().min_by_key(|(_, (used, _))| *used).map(|(key, _)| *key);
        oldest.is_some_and(|key| self.filled.remove(&key).is_some())
    }

    pub(crate) fn land(&mut self, completion: Completion) -> (Key, Result<(), ReadError>) {
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
