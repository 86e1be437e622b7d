//! Prints MB/s and CPU time of every way to read experts from one GGUF, in interleaved rounds.
//!
//! `cargo run --release -p motley-store --example disk -- MODEL.gguf [rounds] [experts]`

#![allow(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::error::Error;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::{Duration, Instant};

use motley_model::{ExpertTensor, FileRange, ModelSpec};
use motley_store::{
    Arena, ArenaSpec, Backend, Disk, FileMode, Files, HugePages, Piece, Priority, Reader,
    ReaderOptions, Request, Tag, choose,
};
use rustix::fs::Advice;
use rustix::mm::{Advice as MapAdvice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Every range of one expert.
type Expert<'a> = Vec<(&'a ExpertTensor, FileRange)>;

const PAGE_BYTES: usize = 4096;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// One way to read.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    means: Means,
    in_flight: u32,
    mode: FileMode,
    landing: Landing,
    huge_pages: HugePages,
}

/// By which mechanism.
#[derive(Clone, Copy)]
enum Means {
    /// Plain `pread` through the page cache.
    Pread,
    /// Touching a mapping of the file.
    Faults,
    /// The same after `madvise(WILLNEED)` on the expert.
    AdvisedFaults,
    Reader(Backend),
}

#[derive(Clone, Copy, PartialEq)]
enum Landing {
    InPlace,
    Copied,
}

const fn way(name: &'static str, means: Means, in_flight: u32) -> Way {
    Way {
        name,
        means,
        in_flight,
        mode: FileMode::DirectIfPossible,
        landing: Landing::InPlace,
        huge_pages: HugePages::Ask,
    }
}

const POOL: Means = Means::Reader(Backend::Pool);
const URING: Means = Means::Reader(Backend::Uring);

const WAYS: &[Way] = &[
    way("mmap, faults", Means::Faults, 1),
    way("mmap, advised", Means::AdvisedFaults, 1),
    way("pread, cold", Means::Pread, 1),
    Way { mode: FileMode::Buffered, ..way("pool buffered", POOL, 4) },
    way("pool", POOL, 1),
    way("pool", POOL, 2),
    way("pool", POOL, 4),
    way("pool", POOL, 8),
    Way { landing: Landing::Copied, ..way("pool copied", POOL, 4) },
    Way { huge_pages: HugePages::Refuse, ..way("pool 4k pages", POOL, 4) },
    way("uring", URING, 1),
    way("uring", URING, 2),
    way("uring", URING, 4),
    way("uring", URING, 8),
    Way { landing: Landing::Copied, ..way("uring copied", URING, 4) },
    Way { huge_pages: HugePages::Refuse, ..way("uring 4k pages", URING, 4) },
    Way { mode: FileMode::Buffered, ..way("uring buffered", URING, 4) },
];

struct Figure {
    mb_per_s: f64,
    cpu_ms_per_gb: f64,
}

fn main() -> Outcome<()> {
    let mut args = std::env::args().skip(1);
    let path = PathBuf::from(args.next().ok_or("usage: disk MODEL.gguf [rounds] [experts]")?);
    let rounds: usize = args.next().map_or(Ok(5), |n| n.parse())?;
    let experts: usize = args.next().map_or(Ok(160), |n| n.parse())?;
    let (spec, _) = ModelSpec::open(&path)?;
    let mut random = 1;
    let mut figures: Vec<Vec<Figure>> = WAYS.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (way, figures) in WAYS.iter().zip(&mut figures) {
            let wanted = pick(&spec, experts, &mut random);
            figures.push(run(&path, way, &wanted)?);
        }
    }
    println!(
        "{:<22} {:>9} {:>8} {:>8} {:>8} {:>10}",
        "way", "in flight", "MB/s", "min", "max", "CPU ms/GB"
    );
    for (way, figures) in WAYS.iter().zip(&figures) {
        let mbs = sorted(figures.iter().map(|f| f.mb_per_s));
        let cpu = sorted(figures.iter().map(|f| f.cpu_ms_per_gb));
        let (min, mid, max) = (mbs[0], mbs[mbs.len() / 2], mbs[mbs.len() - 1]);
        let cpu = cpu[cpu.len() / 2];
        println!(
            "{:<22} {:>9} {mid:>8.0} {min:>8.0} {max:>8.0} {cpu:>10.0}",
            way.name, way.in_flight
        );
    }
    let files = Arc::new(Files::open(&[&path], FileMode::DirectIfPossible)?);
    let start = Instant::now();
    let choice = choose(&files, 4, Duration::from_millis(180), 1)?;
    println!(
        "choose: {:?} in {:?}, of {:?}",
        choice.chosen.backend,
        start.elapsed(),
        choice.measured
    );
    Ok(())
}

/// Experts at random, all matrices of each.
fn pick<'a>(spec: &'a ModelSpec, count: usize, random: &mut u64) -> Vec<Expert<'a>> {
    let layers: Vec<_> = spec.expert_layers().collect();
    let mut next = |below: u32| {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((*random >> 33) % u64::from(below)) as u32
    };
    let one = |_| {
        let layer = layers[next(layers.len() as u32) as usize];
        layer.ranges(next(layer.experts)).collect()
    };
    (0..count).map(one).collect()
}

fn run(path: &Path, way: &Way, wanted: &[Expert<'_>]) -> Outcome<Figure> {
    let bytes: u64 = wanted.iter().flatten().map(|(_, range)| range.len_bytes).sum();
    let file = File::open(path)?;
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
    let (elapsed, cpu_ms) = match way.means {
        Means::Pread => by_pread(&file, wanted)?,
        Means::Faults => by_faults(&file, wanted, false)?,
        Means::AdvisedFaults => by_faults(&file, wanted, true)?,
        Means::Reader(backend) => by_reader(path, way, backend, wanted)?,
    };
    Ok(Figure {
        mb_per_s: bytes as f64 / 1e6 / elapsed.as_secs_f64(),
        cpu_ms_per_gb: cpu_ms / (bytes as f64 / 1e9),
    })
}

fn by_pread(file: &File, wanted: &[Expert<'_>]) -> Outcome<(Duration, f64)> {
    let longest = wanted.iter().flatten().map(|(_, range)| range.len_bytes).max().unwrap_or(0);
    let mut buffer = vec![1; longest as usize];
    let (start, cpu) = (Instant::now(), cpu_ms());
    for (_, range) in wanted.iter().flatten() {
        file.read_exact_at(&mut buffer[..range.len_bytes as usize], range.offset)?;
    }
    Ok((start.elapsed(), cpu_ms() - cpu))
}

fn by_faults(file: &File, wanted: &[Expert<'_>], advised: bool) -> Outcome<(Duration, f64)> {
    let len = usize::try_from(file.metadata()?.len())?;
    // SAFETY: a new private mapping of a file that nobody writes to during the bench.
    let base =
        unsafe { mmap(null_mut(), len, ProtFlags::READ, MapFlags::PRIVATE, file, 0)?.cast::<u8>() };
    let (start, cpu) = (Instant::now(), cpu_ms());
    for ranges in wanted {
        for (_, range) in ranges.iter().filter(|_| advised) {
            let page = range.offset as usize / PAGE_BYTES * PAGE_BYTES;
            let len = range.len_bytes as usize + PAGE_BYTES;
            // SAFETY: WILLNEED changes nothing, whatever it is given.
            unsafe { madvise(base.add(page).cast(), len, MapAdvice::WillNeed)? };
        }
        for (_, range) in ranges {
            for offset in (range.offset..range.offset + range.len_bytes).step_by(PAGE_BYTES) {
                // SAFETY: the model's header was checked: the range lies in the file.
                black_box(unsafe { base.add(offset as usize).read_volatile() });
            }
        }
    }
    let figure = (start.elapsed(), cpu_ms() - cpu);
    // SAFETY: the whole mapping made above; nothing points into it any more.
    unsafe { munmap(base.cast(), len)? };
    Ok(figure)
}

fn by_reader(
    path: &Path,
    way: &Way,
    backend: Backend,
    wanted: &[Expert<'_>],
) -> Outcome<(Duration, f64)> {
    let files = Arc::new(Files::open(&[path], way.mode)?);
    let longest = wanted.iter().flatten().map(|(_, range)| range.len_bytes).max().unwrap_or(0);
    let spec = ArenaSpec::for_matrix(longest as usize, 4096, 96);
    let arena = Arena::new(ArenaSpec { huge_pages: way.huge_pages, ..spec })?;
    warm(&arena);
    let options = ReaderOptions { in_flight: way.in_flight, ..ReaderOptions::new(backend) };
    let reader = Reader::open(files, options)?;
    let (start, cpu) = (Instant::now(), cpu_ms());
    // A layer's misses at once, as the engine submits them: eight experts at a time.
    for (batch, experts) in wanted.chunks(8).enumerate() {
        let requests: Vec<Request> = (0u64..)
            .zip(experts)
            .map(|(n, ranges)| request(&arena, &reader, way, batch as u64 * 8 + n, ranges))
            .collect();
        reader.submit(requests);
        while let Some(completion) = reader.wait(None) {
            completion.outcome?;
        }
    }
    Ok((start.elapsed(), cpu_ms() - cpu))
}

/// Slots are reused in a running engine: their pages are there.
fn warm(arena: &Arena) {
    let mut leases: Vec<_> = std::iter::from_fn(|| arena.lease()).collect();
    for lease in &mut leases {
        lease.bytes_mut().fill(1);
    }
}

fn request(
    arena: &Arena,
    reader: &Reader,
    way: &Way,
    tag: u64,
    ranges: &[(&ExpertTensor, FileRange)],
) -> Request {
    let piece = |&(tensor, range): &(&ExpertTensor, FileRange)| {
        let landing = reader.files().landing(tensor.base_offset, tensor.stride_bytes);
        let at_bytes = if way.landing == Landing::InPlace { landing } else { landing ^ 32 };
        let slot = arena.lease().expect("as many slots as a batch needs");
        Piece { matrix: tensor.matrix, part: tensor.part, range, slot, at_bytes }
    };
    Request {
        tag: Tag(tag),
        priority: Priority::Demand,
        pieces: ranges.iter().map(piece).collect(),
    }
}

/// User and system time of this process, all threads.
fn cpu_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
