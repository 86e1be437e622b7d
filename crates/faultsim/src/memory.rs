//! Expert bytes in arenas, read through the store's leases and read queue from the virtual disk. Does
//! what the drive loop says.

use crate::disk::VirtualDisk;
use crate::plan::ExpertsPlan;
use motley_engine::blocks::machine::{Arrivals, Landed, UnitFailed};
use motley_model::{LayerExperts, Matrix};
use motley_sched::Purpose;
use motley_store::{
    Arena, ArenaSpec, Completion, Disk, ExpertLease, ExpertRead, Filled, FilledExpert, HugePages,
    Priority, ReadError, Request, SteppedReader, Tag,
};
use motley_trace::ExpertKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Arenas, the reader and which expert lies where.
pub(crate) struct ExpertMemory {
    pub(crate) layers: Vec<LayerExperts>,
    arenas: BTreeMap<Matrix, Arena>,
    pub(crate) disk: Arc<VirtualDisk>,
    pub(crate) reader: SteppedReader,
    filled: BTreeMap<ExpertKey, FilledExpert>,
    /// Whether a read found the file changed.
    pub(crate) changed: bool,
    /// What broke a rule, the first.
    pub(crate) violation: Option<String>,
    slots_least: u32,
    slots_most: u32,
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
            changed: false,
            violation: None,
            slots_least: plan.slots_least,
            slots_most: plan.slots_most,
        })
    }

    fn load(&mut self, key: ExpertKey, purpose: Purpose) -> Result<(), UnitFailed> {
        let layer = &self.layers[usize::from(key.layer)];
        let arenas = &self.arenas;
        let lease = ExpertLease::from_arenas(&layer.tensors, |tensor| arenas.get(&tensor.matrix));
        let lease = lease.ok_or_else(|| UnitFailed(format!("no slot for {key}")))?;
        let tag = Tag(u64::from(key.layer) << 16 | u64::from(key.expert));
        let priority = match purpose {
            Purpose::Demand => Priority::Demand,
            Purpose::Guess => Priority::Prefetch,
        };
        let read = ExpertRead { tag, priority, layer, expert: u32::from(key.expert) };
        let request = Request::for_expert(read, lease, &*self.disk);
        self.reader.submit([request.map_err(|_| UnitFailed(format!("no such expert {key}")))?]);
        Ok(())
    }

    fn land(&mut self, completion: Completion) -> Landed {
        let key = ExpertKey::new((completion.tag.0 >> 16) as u16, completion.tag.0 as u16);
        let error = match completion.outcome {
            Ok(filled) => {
                self.filled.insert(key, filled);
                None
            }
            Err(failed) => {
                self.changed |= matches!(failed.error, ReadError::Changed { .. });
                Some(failed.error.to_string())
            }
        };
        Landed { key, error }
    }

    /// Lets `slots` be used from now on, as the engine does: what stays moves down.
    fn resize(&mut self, slots: u32) {
        for filled in self.filled.values_mut() {
            let settled = filled.clone().into_slots();
            *filled = std::iter::empty().collect();
            let settle = |slot: Filled| slot.settle().unwrap_or_else(|unmoved| unmoved);
            *filled = settled.into_iter().map(|(m, p, slot)| (m, p, settle(slot))).collect();
        }
        for arena in self.arenas.values() {
            arena.set_usable(slots);
            let most = u64::from(slots.max(arena.leased_slots())) * arena.stride_bytes() as u64;
            if arena.occupied_bytes() > most {
                let held = arena.occupied_bytes();
                self.violation.get_or_insert(format!("{held} bytes above a ceiling of {most}"));
            }
        }
    }

    /// Fewest and most slots.
    pub(crate) fn slot_range(&self) -> (u32, u32) {
        (self.slots_least, self.slots_most)
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

/// The memory as the drive loop and the events share it; everything is on one thread.
#[derive(Clone)]
pub(crate) struct SharedMemory(Arc<Mutex<ExpertMemory>>);

impl SharedMemory {
    pub(crate) fn new(memory: ExpertMemory) -> Self {
        Self(Arc::new(Mutex::new(memory)))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ExpertMemory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl motley_engine::blocks::machine::Disk for SharedMemory {
    fn load(&mut self, key: ExpertKey, purpose: Purpose) -> Result<(), UnitFailed> {
        self.lock().load(key, purpose)
    }

    fn poll(&mut self) -> Option<Landed> {
        let mut memory = self.lock();
        let completion = memory.reader.poll()?;
        Some(memory.land(completion))
    }

    fn is_under_way(&self) -> bool {
        self.lock().reader.under_way() > 0
    }

    fn arrivals(&self) -> Arc<dyn Arrivals> {
        Arc::new(Nobody)
    }

    fn bytes(&self, key: ExpertKey) -> Option<FilledExpert> {
        self.lock().filled.get(&key).cloned()
    }

    fn release(&mut self, key: ExpertKey) {
        self.lock().filled.remove(&key);
    }

    fn set_usable(&mut self, slots: u32) {
        self.lock().resize(slots);
    }
}

/// Nobody waits: events say when reads end.
struct Nobody;

impl Arrivals for Nobody {
    fn wait(&self) {}
}
