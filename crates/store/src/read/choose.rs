//! Which backend is faster on this disk: each reads a little of the real files, within a time
//! limit. Reports figures; a caller that knows better opens a reader directly.

use std::sync::Arc;
use std::time::{Duration, Instant};

use motley_model::{FileRange, Matrix, TensorPart};

use super::disk::Disk;
use super::files::Files;
use super::priority::Priority;
use super::reader::{Backend, Reader, ReaderError, ReaderOptions};
use super::request::{Piece, Request, Tag};
use crate::arena::{Arena, ArenaError, ArenaSpec};

/// Bytes of one probing read, near an expert's matrix.
const PROBE_BYTES: u64 = 768 << 10;

/// Rounds in which the candidates take turns, so that a burst of other work hits all of them.
const ROUNDS: u32 = 3;

/// A candidate must be so much faster than an earlier one to be taken instead.
const CLEARLY_FASTER: f64 = 1.10;

/// What one backend reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadSpeed {
    pub backend: Backend,
    pub in_flight: u32,
    /// Whether all files were read past the page cache.
    pub direct: bool,
    pub bytes: u64,
    /// Median over the rounds, 10⁶ bytes per second.
    pub mb_per_s: f64,
}

/// The reader to use, and why.
pub struct Choice {
    /// Opened and idle.
    pub reader: Reader,
    pub chosen: ReadSpeed,
    /// All candidates that could be opened.
    pub measured: Vec<ReadSpeed>,
}

/// Why nothing could be chosen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChooseError {
    /// No backend can be opened; the reason of the last.
    #[error("no backend can read the model's files")]
    NoBackend(#[source] ReaderError),
    /// No memory for the probe.
    #[error("no memory to probe the disk")]
    Memory(#[from] ArenaError),
}

/// Measures every backend on `files` for `budget` in all (and the time the last reads take),
/// and opens the faster one; the first of [`Backend::ALL`] when they are alike or the files are
/// too small to measure.
pub fn choose(
    files: &Arc<Files>,
    in_flight: u32,
    budget: Duration,
    seed: u64,
) -> Result<Choice, ChooseError> {
    choose_within(files, in_flight, ProbeLimit { time: budget, bytes: u64::MAX }, seed)
}

/// What probing may take, all backends together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeLimit {
    /// Time, without the time the last reads take.
    pub time: Duration,
    /// Bytes read.
    pub bytes: u64,
}

/// As [`choose`], and reads no more than the limit's bytes.
pub fn choose_within(
    files: &Arc<Files>,
    in_flight: u32,
    limit: ProbeLimit,
    seed: u64,
) -> Result<Choice, ChooseError> {
    let (mut candidates, refused) = open_all(files, in_flight);
    let slots = in_flight.saturating_mul(2);
    let spec = ArenaSpec::for_matrix(PROBE_BYTES as usize, files.alignment(), slots);
    let parts = ROUNDS * Backend::ALL.len() as u32;
    let probe = Probe {
        files,
        arena: Arena::new(spec)?,
        slice: limit.time / parts,
        slice_bytes: limit.bytes / u64::from(parts),
    };
    let mut random = seed;
    for _ in 0..ROUNDS {
        for candidate in &mut candidates {
            probe.run(candidate, &mut random);
        }
    }
    let measured: Vec<ReadSpeed> = candidates.iter().map(Candidate::measured).collect();
    let best = measured.iter().enumerate().reduce(|best, next| {
        if next.1.mb_per_s > best.1.mb_per_s * CLEARLY_FASTER { next } else { best }
    });
    match (best.map(|(index, chosen)| (index, *chosen)), refused) {
        (Some((index, chosen)), _) => {
            Ok(Choice { reader: candidates.swap_remove(index).reader, chosen, measured })
        }
        (None, Some(error)) => Err(ChooseError::NoBackend(error)),
        (None, None) => unreachable!("a backend either opens or says why not"),
    }
}

struct Candidate {
    reader: Reader,
    bytes: u64,
    /// Per round.
    mb_per_s: Vec<f64>,
}

struct Probe<'a> {
    files: &'a Files,
    arena: Arena,
    /// Time of one round of one candidate.
    slice: Duration,
    /// Bytes of one round of one candidate.
    slice_bytes: u64,
}

fn open_all(files: &Arc<Files>, in_flight: u32) -> (Vec<Candidate>, Option<ReaderError>) {
    let mut opened = Vec::new();
    let mut refused = None;
    for backend in Backend::ALL {
        let options = ReaderOptions { in_flight, ..ReaderOptions::new(backend) };
        match Reader::open(Arc::clone(files), options) {
            Ok(reader) => opened.push(Candidate { reader, bytes: 0, mb_per_s: Vec::new() }),
            Err(error) => refused = Some(error),
        }
    }
    (opened, refused)
}

impl Probe<'_> {
    /// Reads at random places until the slice is over; failed reads count for nothing.
    fn run(&self, candidate: &mut Candidate, random: &mut u64) {
        let before = candidate.reader.counters();
        let start = Instant::now();
        let mut left_bytes = self.slice_bytes;
        loop {
            let open = start.elapsed() < self.slice;
            while open
                && left_bytes >= PROBE_BYTES
                && let Some(request) = self.request(random)
            {
                candidate.reader.submit([request]);
                left_bytes -= PROBE_BYTES;
            }
            if candidate.reader.wait(None).is_none() {
                break;
            }
        }
        let bytes = candidate.reader.counters().bytes - before.bytes;
        candidate.bytes += bytes;
        candidate.mb_per_s.push(bytes as f64 / 1e6 / start.elapsed().as_secs_f64());
    }

    /// `None` when all slots are out, or the file is too small.
    fn request(&self, random: &mut u64) -> Option<Request> {
        let places = self.files.len_bytes(0)? / PROBE_BYTES;
        let slot = self.arena.lease().filter(|_| places > 0)?;
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let offset = (*random >> 33) % places * PROBE_BYTES;
        let range = FileRange { file: 0, offset, len_bytes: PROBE_BYTES };
        let piece =
            Piece { matrix: Matrix::Gate, part: TensorPart::Weight, range, slot, at_bytes: 0 };
        let tag = Tag(u64::from(piece.slot.index()));
        Some(Request { tag, priority: Priority::Demand, pieces: vec![piece] })
    }
}

impl Candidate {
    fn measured(&self) -> ReadSpeed {
        let mut rounds = self.mb_per_s.clone();
        rounds.sort_by(f64::total_cmp);
        ReadSpeed {
            backend: self.reader.options().backend,
            in_flight: self.reader.options().in_flight,
            direct: self.reader.files().all_direct(),
            bytes: self.bytes,
            mb_per_s: rounds[rounds.len() / 2],
        }
    }
}
