//! Expert bytes of one session: arenas, the disk, and which expert lies where. Does
//! what the drive loop says; chooses nothing.

use crate::blocks::gates::GatesError;
use crate::blocks::options::StreamingOptions;
use crate::blocks::resident::ResidentExperts;
use motley_model::{LayerExperts, Matrix, ModelSpec, OpenedFile, TensorPart};
use motley_store::{
    Arena, ArenaError, ArenaSpec, ChooseError, Completion, Counters, Disk, ExpertLease, ExpertRead,
    FaultPlan, FileMode, Files, FilesError, Filled, FilledExpert, Priority, ReadError, ReadSpeed,
    Reader, ReaderOptions, Request, Tag, choose,
};
use motley_trace::ExpertKey;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Reads in flight: four saturate the drives measured (docs/decisions/0004).
pub(crate) const READS_IN_FLIGHT: u32 = 4;
/// Time to find out which way of reading is faster here.
const PROBE_TIME: Duration = Duration::from_millis(150);

/// Why expert bytes cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ExpertsError {
    /// A model file cannot be opened.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The address space for the slots was refused.
    #[error(transparent)]
    Arena(#[from] ArenaError),
    /// No way to read works.
    #[error(transparent)]
    Reader(#[from] ChooseError),
    /// The routers cannot be read.
    #[error(transparent)]
    Gates(#[from] GatesError),
}

/// A load that has ended: the expert, and why it failed if it did.
pub(crate) struct Landed {
    pub(crate) key: ExpertKey,
    pub(crate) error: Option<String>,
}

/// The experts of one model and the memory some of them are in.
pub(crate) struct Experts {
    /// Matrices only: biases and scales are dense weights to llama.cpp.
    layers: Vec<Option<LayerExperts>>,
    arenas: BTreeMap<Matrix, Arena>,
    reader: Reader,
    /// What finding out about the disk has read.
    probed: Counters,
    disk: ReadSpeed,
    filled: HashMap<ExpertKey, FilledExpert>,
    /// The keys of `filled`, for others to read.
    resident: Arc<ResidentExperts>,
    /// Whether a read found a file changed.
    changed: bool,
}

impl Experts {
    /// Room for `slots` experts; the disk is measured for a moment.
    pub(crate) fn open(
        spec: &ModelSpec,
        opened: &[OpenedFile],
        slots: u32,
        options: &StreamingOptions,
    ) -> Result<Self, ExpertsError> {
        let direct = options.direct_reads;
        let mode = if direct { FileMode::DirectIfPossible } else { FileMode::Buffered };
        let files = Arc::new(Files::of(opened, mode)?);
        let layers = weights_only(spec);
        let mut arenas = BTreeMap::new();
        for (matrix, bytes) in matrix_bytes(&layers) {
            let shape = ArenaSpec::for_matrix(bytes as usize, files.alignment(), slots);
            arenas.insert(matrix, Arena::new(shape)?);
        }
        let choice = choose(&files, READS_IN_FLIGHT, PROBE_TIME, 0)?;
        let disk = choice.chosen;
        let reader = match &options.faults {
            None => choice.reader,
            Some(plan) => faulty(choice.reader, &files, plan)?,
        };
        let probed = reader.counters();
        let resident = Arc::new(ResidentExperts::new(layers.len(), spec.experts as usize));
        let (filled, changed) = (HashMap::new(), false);
        Ok(Self { layers, arenas, reader, probed, disk, filled, resident, changed })
    }

    /// Which experts are in memory, readable while it changes.
    pub(crate) fn resident(&self) -> Arc<ResidentExperts> {
        Arc::clone(&self.resident)
    }

    /// Starts reading an expert; `false` when no slot is free or the model has no such expert.
    pub(crate) fn load(&mut self, key: ExpertKey, priority: Priority) -> bool {
        let Some(Some(layer)) = self.layers.get(usize::from(key.layer)) else { return false };
        let arenas = &self.arenas;
        let lease = ExpertLease::from_arenas(&layer.tensors, |tensor| arenas.get(&tensor.matrix));
        let Some(lease) = lease else { return false };
        let wanted = ExpertRead { tag: tag(key), priority, layer, expert: u32::from(key.expert) };
        match Request::for_expert(wanted, lease, self.reader.files()) {
            Ok(request) => self.reader.submit([request]),
            Err(_) => return false,
        }
        true
    }

    /// Whether a load has not been taken note of.
    pub(crate) fn under_way(&self) -> bool {
        self.reader.under_way() > 0
    }

    /// Waits for the next load to end; `None` when none is under way.
    pub(crate) fn wait(&mut self) -> Option<Landed> {
        let completion = self.reader.wait(None)?;
        Some(self.land(completion))
    }

    /// A load that has ended already.
    pub(crate) fn poll(&mut self) -> Option<Landed> {
        let completion = self.reader.poll()?;
        Some(self.land(completion))
    }

    /// The bytes of an expert that has been loaded.
    pub(crate) fn get(&self, key: ExpertKey) -> Option<&FilledExpert> {
        self.filled.get(&key)
    }

    /// Gives an expert's slots back (once nobody computes with them).
    pub(crate) fn release(&mut self, key: ExpertKey) {
        self.filled.remove(&key);
        self.resident.set(key, false);
    }

    /// Lets `slots` be used from now on. Of fewer slots, what stays moves down first, so
    /// that whole huge pages come free.
    pub(crate) fn set_usable(&mut self, slots: u32) {
        let above = |filled: &FilledExpert| filled.iter().any(|(_, _, slot)| slot.index() >= slots);
        let mut high: Vec<ExpertKey> =
            self.filled.iter().filter(|(_, filled)| above(filled)).map(|(key, _)| *key).collect();
        high.sort_unstable();
        for key in high {
            if let Some(filled) = self.filled.remove(&key) {
                let settle = |(matrix, part, slot): (Matrix, TensorPart, Filled)| {
                    (matrix, part, slot.settle().unwrap_or_else(|unmoved| unmoved))
                };
                self.filled.insert(key, filled.into_slots().into_iter().map(settle).collect());
            }
        }
        for arena in self.arenas.values() {
            arena.set_usable(slots);
        }
    }

    /// Whether a read found that a file is not what was opened any more.
    pub(crate) fn changed(&self) -> bool {
        self.changed
    }

    /// Memory of the slots in use.
    pub(crate) fn occupied_bytes(&self) -> u64 {
        self.arenas.values().map(Arena::occupied_bytes).sum()
    }

    /// What the disk has done for experts.
    pub(crate) fn counters(&self) -> Counters {
        self.reader.counters().since(&self.probed)
    }

    /// What the disk was measured to do.
    pub(crate) fn disk(&self) -> &ReadSpeed {
        &self.disk
    }

    fn land(&mut self, completion: Completion) -> Landed {
        let key = ExpertKey::new((completion.tag.0 >> 16) as u16, completion.tag.0 as u16);
        let error = match completion.outcome {
            Ok(filled) => {
                self.filled.insert(key, filled);
                self.resident.set(key, true);
                None
            }
            Err(failed) => {
                self.changed |= matches!(failed.error, ReadError::Changed { .. });
                Some(failed.error.to_string())
            }
        };
        Landed { key, error }
    }
}

/// The same reader with faults injected.
fn faulty(reader: Reader, files: &Arc<Files>, plan: &FaultPlan) -> Result<Reader, ChooseError> {
    let options = ReaderOptions { faults: Some(plan.clone()), ..reader.options().clone() };
    Reader::open(Arc::clone(files), options).map_err(ChooseError::NoBackend)
}

fn tag(key: ExpertKey) -> Tag {
    Tag(u64::from(key.layer) << 16 | u64::from(key.expert))
}

fn weights_only(spec: &ModelSpec) -> Vec<Option<LayerExperts>> {
    let mut layers = spec.layers.clone();
    for layer in layers.iter_mut().flatten() {
        layer.tensors.retain(|tensor| tensor.part == TensorPart::Weight);
    }
    layers
}

/// The largest matrix of each kind over all layers: quantisation may differ by layer.
fn matrix_bytes(layers: &[Option<LayerExperts>]) -> BTreeMap<Matrix, u64> {
    let mut largest = BTreeMap::new();
    for tensor in layers.iter().flatten().flat_map(|layer| &layer.tensors) {
        let bytes = largest.entry(tensor.matrix).or_insert(0);
        *bytes = tensor.stride_bytes.max(*bytes);
    }
    largest
}
