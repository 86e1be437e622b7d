//! One virtual model file: known bytes by offset, and a disk that fails as the seed says. Knows
//! nothing of time; late reads are `events`' affair.

use crate::counts::Counts;
use crate::hash::{fingerprint, mix};
use crate::plan::{ExpertsPlan, FaultRates};
use motley_model::gguf::GgmlType;
use motley_model::{ExpertTensor, LayerExperts, Matrix, TensorPart};
use motley_store::{Alignment, Disk, FileFacts};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The errno of a failing disk.
const EIO: i32 = 5;

/// Bytes before the first expert: a header, and no friend of alignment.
const HEADER_BYTES: u64 = 1_000;

/// The file.
pub struct VirtualDisk {
    path: PathBuf,
    len_bytes: u64,
    direct: Option<Alignment>,
    state: Mutex<State>,
}

struct State {
    rng: fastrand::Rng,
    rates: FaultRates,
    changed: bool,
    counts: Counts,
    violation: Option<String>,
}

impl VirtualDisk {
    /// The file of `plan`'s experts and where they lie in it.
    pub fn new(seed: u64, plan: &ExpertsPlan, rates: FaultRates) -> (Self, Vec<LayerExperts>) {
        let mut end = HEADER_BYTES;
        let mut tensor = |matrix, stride_bytes: u64| {
            let base_offset = end;
            end += stride_bytes * u64::from(plan.experts) + 32;
            let (part, ty) = (TensorPart::Weight, GgmlType::F32);
            ExpertTensor { tensor: 0, matrix, part, ty, file: 0, base_offset, stride_bytes }
        };
        let layers = (0..plan.layers).map(|layer| LayerExperts {
            layer: u32::from(layer),
            experts: u32::from(plan.experts),
            used: u32::from(plan.used),
            tensors: vec![
                tensor(Matrix::GateUp, plan.matrix_bytes[0]),
                tensor(Matrix::Down, plan.matrix_bytes[1]),
            ],
        });
        let layers = layers.collect();
        let state = State {
            rng: fastrand::Rng::with_seed(mix(seed ^ 0xd15c)),
            rates,
            changed: false,
            counts: Counts::default(),
            violation: None,
        };
        let disk = Self {
            path: PathBuf::from("virtual.gguf"),
            // The last bytes are no whole block.
            len_bytes: end,
            direct: plan.direct,
            state: Mutex::new(state),
        };
        (disk, layers)
    }

    /// Somebody writes into the file: from now on it holds other bytes.
    pub fn change(&self) {
        let mut state = self.state();
        state.changed = true;
        state.counts.changed_files += 1;
    }

    /// From now on nothing fails.
    pub fn heal(&self) {
        self.state().rates = FaultRates::default();
    }

    /// Faults injected so far.
    pub fn counts(&self) -> Counts {
        self.state().counts.clone()
    }

    /// What a reader did that no reader may.
    pub fn violation(&self) -> Option<String> {
        self.state().violation.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_alignment(&self, state: &mut State, direct: bool, offset: u64, memory: &[u8]) {
        let Some(wanted) = self.direct.filter(|_| direct) else { return };
        let aligned = (memory.as_ptr() as usize).is_multiple_of(wanted.memory)
            && memory.len().is_multiple_of(wanted.offset)
            && offset.is_multiple_of(wanted.offset as u64);
        if !aligned {
            let at = memory.as_ptr();
            let words = format!("a direct read of {} bytes at {offset} to {at:p}", memory.len());
            state.violation.get_or_insert(format!("{words} is not aligned to {wanted:?}"));
        }
    }
}

impl Disk for VirtualDisk {
    fn facts(&self, index: usize) -> Option<FileFacts<'_>> {
        let path: &Path = &self.path;
        (index == 0).then_some(FileFacts { path, len_bytes: self.len_bytes, direct: self.direct })
    }

    fn read_at(&self, _: usize, direct: bool, offset: u64, memory: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state();
        self.check_alignment(&mut state, direct, offset, memory);
        let there = self.len_bytes.saturating_sub(offset).min(memory.len() as u64) as usize;
        let draw = state.rng.u16(..1000);
        let (eio, short) = (state.rates.eio, state.rates.short);
        let got = match draw {
            _ if draw < eio => {
                state.counts.eio += 1;
                // What a failed read leaves in memory is anything.
                memory.fill(0xee);
                return Err(io::Error::from_raw_os_error(EIO));
            }
            _ if draw < eio + short => {
                state.counts.short_reads += 1;
                memory.fill(0xdd);
                state.rng.usize(..there.max(1))
            }
            _ => there,
        };
        let salt = if state.changed { 0xbad } else { 0 };
        fill(&mut memory[..got], offset, salt);
        Ok(got)
    }

    fn unchanged(&self, _: usize) -> bool {
        !self.state().changed
    }

    fn forget(&self, _: usize, _: u64, _: usize) {}
}

/// The fingerprint of expert `expert` as the file was when it was opened.
pub fn true_fingerprint(layer: &LayerExperts, expert: u32) -> u64 {
    let mut bytes = Vec::new();
    layer.ranges(expert).fold(0, |sum, (_, range)| {
        bytes.resize(range.len_bytes as usize, 0);
        fill(&mut bytes, range.offset, 0);
        mix(sum ^ fingerprint(&bytes))
    })
}

fn fill(memory: &mut [u8], offset: u64, salt: u64) {
    let mut at = 0;
    while at < memory.len() {
        let place = offset + at as u64;
        let word = mix((place / 8) ^ (salt << 40)).to_le_bytes();
        let from = (place % 8) as usize;
        let len = (8 - from).min(memory.len() - at);
        memory[at..at + len].copy_from_slice(&word[from..from + len]);
        at += len;
    }
}
