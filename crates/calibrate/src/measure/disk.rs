//! Reading expert-sized ranges of a file: many in flight, and one alone.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use motley_cost::calibration::DiskCost;
use motley_cost::statistics::median;
use motley_cost::{FitError, TransferCost, TransferSample};
use motley_model::{FileRange, Matrix, TensorPart};
use motley_store::read::IN_FLIGHT_DEFAULT;
use motley_store::{
    Arena, ArenaError, ArenaSpec, Backend, ChooseError, Disk, FileMode, Files, FilesError, Piece,
    Priority, ProbeLimit, ReadError, Reader, Request, Tag, choose_within,
};
use tempfile::NamedTempFile;

use super::clock::Steps;

/// Sizes of reads that are alone; an expert's matrix lies between.
const SIZES_BYTES: [u64; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// File written where none is given: larger than what a disk keeps in its own cache for long.
const PROBE_FILE_BYTES: usize = 128 << 20;

/// Why a disk could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The file cannot be opened.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// No way to read works.
    #[error(transparent)]
    Choose(#[from] ChooseError),
    /// No memory to read into.
    #[error(transparent)]
    Memory(#[from] ArenaError),
    /// No file could be written in the folder.
    #[error("{}: no file of {PROBE_FILE_BYTES} bytes can be written there", path.display())]
    Make { path: PathBuf, source: std::io::Error },
    /// Smaller than the largest probing read.
    #[error("{}: too small to measure a disk with", path.display())]
    Small { path: PathBuf },
    /// A read failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Too few reads fitted into the limit.
    #[error("{}: too few reads to draw a line through", path.display())]
    Fit {
        path: PathBuf,
        /// Why they cannot be fitted.
        source: FitError,
    },
}

/// Measures the disk below `path`: a file of some size, or a folder in which one is written
/// and removed again. Reads no more than the limit's bytes, a few reads of each size apart.
pub(super) fn measure(
    path: &Path,
    limit: ProbeLimit,
    seed: u64,
    steps: &mut Steps<'_>,
) -> Result<DiskCost, DiskError> {
    steps.report("disk: many reads", 0, 3);
    let written = if path.is_dir() { Some(write_probe(path)?) } else { None };
    let file = written.as_ref().map_or(path, |file| file.path());
    let files = Arc::new(Files::open(&[file], FileMode::DirectIfPossible)?);
    if files.len_bytes(0).is_none_or(|len| len < *SIZES_BYTES.last().unwrap_or(&0)) {
        return Err(DiskError::Small { path: file.into() });
    }
    let half = ProbeLimit { time: limit.time / 2, bytes: limit.bytes / 2 };
    let choice = choose_within(&files, IN_FLIGHT_DEFAULT, half, seed)?;
    steps.report("disk: single reads", 1, 3);
    let mut alone = Alone { files, reader: choice.reader, random: seed | 1 };
    let samples = alone.samples(half)?;
    let fit = TransferCost::fit(&samples)
        .map_err(|source| DiskError::Fit { path: file.into(), source })?;
    Ok(DiskCost {
        what: what(path),
        direct: choice.chosen.direct,
        backend: backend_name(choice.chosen.backend).into(),
        in_flight: choice.chosen.in_flight,
        gb_per_s: choice.chosen.mb_per_s / 1e3,
        latency_us: fit.model.latency_us,
        alone_gb_per_s: 1e-3 / fit.model.per_byte_us.max(1e-9),
        residuals: fit.residuals,
    })
}

fn write_probe(folder: &Path) -> Result<NamedTempFile, DiskError> {
    let fail = |source| DiskError::Make { path: folder.into(), source };
    let mut file = NamedTempFile::new_in(folder).map_err(fail)?;
    // Not zeros: some disks keep those without writing them.
    let piece: Vec<u8> =
        (0..1_u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for _ in 0..PROBE_FILE_BYTES / piece.len() {
        file.write_all(&piece).map_err(fail)?;
    }
    file.as_file().sync_all().map_err(fail)?;
    Ok(file)
}

fn what(path: &Path) -> String {
    let real = path.canonicalize().unwrap_or_else(|_| path.into());
    match motley_host::disk::of_path(Path::new("/"), &real) {
        None => String::new(),
        Some(disk) => match disk.device {
            Some(device) => format!("{} on {device}", disk.filesystem),
            None => disk.filesystem,
        },
    }
}

fn backend_name(backend: Backend) -> &'static str {
    match backend {
        Backend::Uring => "uring",
        Backend::Pool => "threads",
    }
}

/// Reads one at a time.
struct Alone {
    files: Arc<Files>,
    reader: Reader,
    random: u64,
}

impl Alone {
    fn samples(&mut self, limit: ProbeLimit) -> Result<Vec<TransferSample>, DiskError> {
        let mut samples = Vec::new();
        for bytes in SIZES_BYTES {
            let spec = ArenaSpec::for_matrix(bytes as usize, self.files.alignment(), 1);
            let arena = Arena::new(spec)?;
            let until = Instant::now() + limit.time / SIZES_BYTES.len() as u32;
            let most = (limit.bytes / SIZES_BYTES.len() as u64 / bytes).max(1) as usize;
            let mut times: Vec<f64> = Vec::new();
            while Instant::now() < until && times.len() < most || times.is_empty() {
                match self.read(&arena, bytes)? {
                    Some(us) => times.push(us),
                    None => break,
                }
            }
            if !times.is_empty() {
                samples.push(TransferSample { bytes, took_us: median(&times).unwrap_or(0.0) });
            }
        }
        Ok(samples)
    }

    /// Time of one read somewhere in the file; `None` when nothing can be asked for.
    fn read(&mut self, arena: &Arena, bytes: u64) -> Result<Option<f64>, ReadError> {
        let places = self.files.len_bytes(0).map_or(0, |len| len / bytes);
        let Some(slot) = arena.lease().filter(|_| places > 0) else { return Ok(None) };
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let offset = (self.random >> 33) % places * bytes;
        let range = FileRange { file: 0, offset, len_bytes: bytes };
        let piece =
            Piece { matrix: Matrix::Gate, part: TensorPart::Weight, range, slot, at_bytes: 0 };
        let request = Request { tag: Tag(0), priority: Priority::Demand, pieces: vec![piece] };
        let begin = Instant::now();
        self.reader.submit([request]);
        let Some(completion) = self.reader.wait(None) else { return Ok(None) };
        let us = begin.elapsed().as_secs_f64() * 1e6;
        completion.outcome.map(|_| Some(us)).map_err(|failed| failed.error)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_is_measured_and_a_small_one_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        let mut quiet = |_: &str, _: f64| {};
        let mut steps = Steps::new(&mut quiet);
        std::fs::write(&file, vec![7_u8; 8 << 20]).unwrap();
        let limit = ProbeLimit { time: Duration::from_millis(100), bytes: 64 << 20 };
        let cost = measure(&file, limit, 1, &mut steps).unwrap();
        assert!(cost.gb_per_s > 0.0 && cost.alone_gb_per_s > 0.0 && cost.latency_us >= 0.0);
        assert_eq!(cost.residuals.samples, SIZES_BYTES.len());
        std::fs::write(&file, [0; 4096]).unwrap();
        let error = measure(&file, limit, 1, &mut steps).unwrap_err();
        assert!(matches!(error, DiskError::Small { .. }), "{error}");
    }
}
