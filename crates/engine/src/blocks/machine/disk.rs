//! Expert bytes of one session that are read from disk: arenas, the reader, and which expert lies
//! where. Does what the executor says; chooses nothing.

use super::units::{Arrivals, Disk, DiskDone, Landed, UnitFailed};
use crate::blocks::gates::GatesError;
use crate::blocks::options::StreamingOptions;
use crate::blocks::resident::ResidentExperts;
use motley_model::{LayerExperts, Matrix, ModelSpec, OpenedFile, TensorPart, Unweighed};
use motley_sched::Purpose;
use motley_store::{
    Arena, ArenaError, ArenaSpec, ChooseError, Completion, Counters, Disk as _, ExpertLease,
    ExpertRead, FaultPlan, FileMode, Files, FilesError, Filled, FilledExpert, Priority, ReadError,
    ReadSpeed, Reader, ReaderOptions, Request, Tag, choose,
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
    /// What an expert adds is known only once it is computed.
    #[error("--skip-cold cannot tell which experts count little: {0}; leave it out")]
    Unweighed(#[from] Unweighed),
}

/// The experts of one model and the memory some of them are in.
pub(crate) struct Experts {
    /// Matrices only: biases and scales are dense weights to llama.cpp.
    layers: Vec<Option<LayerExperts>>,
    arenas: BTreeMap<Matrix, Arena>,
    reader: Arc<Reader>,
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
        let (filled, changed, reader) = (HashMap::new(), false, Arc::new(reader));
        Ok(Self { layers, arenas, reader, probed, disk, filled, resident, changed })
    }

    /// Which experts are in memory, readable while it changes.
    pub(crate) fn resident(&self) -> Arc<ResidentExperts> {
        Arc::clone(&self.resident)
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

impl Disk for Experts {
    fn load(&mut self, key: ExpertKey, purpose: Purpose) -> Result<(), UnitFailed> {
        let layer = self.layers.get(usize::from(key.layer)).and_then(Option::as_ref);
        let layer = layer.ok_or_else(|| UnitFailed(format!("the model has no expert {key}")))?;
        let arenas = &self.arenas;
        let lease = ExpertLease::from_arenas(&layer.tensors, |tensor| arenas.get(&tensor.matrix));
        let lease =
            lease.ok_or_else(|| UnitFailed(format!("no slot for expert {}", key.expert)))?;
        let priority = match purpose {
            Purpose::Demand => Priority::Demand,
            Purpose::Guess => Priority::Prefetch,
        };
        let wanted = ExpertRead { tag: tag(key), priority, layer, expert: u32::from(key.expert) };
        let request = Request::for_expert(wanted, lease, self.reader.files());
        let misplaced = |_| UnitFailed(format!("expert {key} does not fit its slots"));
        self.reader.submit([request.map_err(misplaced)?]);
        Ok(())
    }

    fn poll(&mut self) -> Option<Landed> {
        let completion = self.reader.poll()?;
        Some(self.land(completion))
    }

    fn is_under_way(&self) -> bool {
        self.reader.under_way() > 0
    }

    fn arrivals(&self) -> Arc<dyn Arrivals> {
        Arc::new(ReaderArrivals(Arc::clone(&self.reader)))
    }

    fn bytes(&self, key: ExpertKey) -> Option<FilledExpert> {
        self.filled.get(&key).cloned()
    }

    fn release(&mut self, key: ExpertKey) {
        self.filled.remove(&key);
        self.resident.set(key, false);
    }

    /// Of fewer slots, what stays moves down first, so that whole huge pages come free.
    fn set_usable(&mut self, slots: u32) {
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

    fn done(&self) -> DiskDone {
        DiskDone {
            counters: self.reader.counters().since(&self.probed),
            arena_bytes: self.arenas.values().map(Arena::occupied_bytes).sum(),
            changed: self.changed,
        }
    }
}

/// Waits for the reader.
struct ReaderArrivals(Arc<Reader>);

impl Arrivals for ReaderArrivals {
    fn wait(&self) {
        self.0.wait_until_ready();
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
