//! What arrives is what the file holds, wherever it lies and wherever it goes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use motley_model::gguf::GgmlType;
use motley_model::{ExpertTensor, FileRange, LayerExperts, Matrix, TensorPart};
use motley_store::{
    ArenaSpec, Backend, Disk, ExpertLease, ExpertRead, FileMode, Files, Priority, ProbeLimit,
    ReadError, Reader, ReaderError, ReaderOptions, Request, Tag, choose, choose_within,
};
use proptest::prelude::*;

use crate::world::*;

const FILE_BYTES: u64 = (5 << 20) + 777;

/// Offsets and lengths around every boundary that matters: blocks, chunks, the file's end.
const ODD: &[(u64, u64)] = &[
    (0, 1),
    (0, 512),
    (31, 4096),
    (511, 2),
    (32, 884_736),
    (4096, 1 << 20),
    (4095, (1 << 20) + 2),
    (1 << 20, 3 << 20),
    (7, FILE_BYTES - 7),
    (FILE_BYTES - 1, 1),
    (FILE_BYTES - 777, 777),
    (FILE_BYTES - 778, 778),
    (FILE_BYTES, 0),
    (12345, 0),
];

/// Every odd range, in place where that is possible and shifted by 32 so that it is not.
fn odd_ranges_arrive(file: &KnownFile, mode: FileMode, backend: Backend) {
    let files = file.files(mode);
    let reader = open(Arc::clone(&files), ReaderOptions::new(backend));
    let spec = ArenaSpec::for_matrix(FILE_BYTES as usize, 64 << 10, 1);
    let arena = motley_store::Arena::new(spec).expect("a small arena");
    for &(offset, len_bytes) in ODD {
        let landing = files.landing(offset, 0);
        for at_bytes in [landing, landing ^ 32] {
            let wanted = range(offset, len_bytes);
            reader.submit([demand(1, vec![piece(&arena, wanted, at_bytes)])]);
            let completion = reader.wait(None).expect("one request");
            assert_holds(&completion, &[wanted]);
        }
    }
    assert_eq!(reader.counters().requests, 2 * ODD.len() as u64);
    assert_eq!(reader.counters().retries, 0);
    assert_eq!(arena.leased_slots(), 0);
}

#[test]
fn odd_ranges_arrive_on_every_filesystem() {
    for parent in [std::env::temp_dir().as_path(), Path::new("/dev/shm")] {
        if !parent.is_dir() {
            eprintln!("skipped: no {}", parent.display());
            continue;
        }
        let file = KnownFile::inside(parent, FILE_BYTES);
        for backend in backends() {
            odd_ranges_arrive(&file, FileMode::DirectIfPossible, backend);
            odd_ranges_arrive(&file, FileMode::Buffered, backend);
        }
    }
}

#[test]
fn landing_in_place_copies_nothing() {
    let file = KnownFile::new(8 << 20);
    let files = file.files(FileMode::DirectIfPossible);
    if files.alignment() == 1 {
        return eprintln!("skipped: no direct reads here");
    }
    let (base, stride) = (32 + 5 * 96, 786_432);
    let landing = files.landing(base, stride);
    assert_eq!(landing as u64, base % files.alignment() as u64);
    assert_eq!(files.landing(base, stride + 32), 0, "skews differ: copy");
    for backend in backends() {
        let reader = open(Arc::clone(&files), ReaderOptions::new(backend));
        let spec = ArenaSpec::for_matrix(stride as usize, files.alignment(), 8);
        let arena = motley_store::Arena::new(spec).expect("a small arena");
        let wanted = |expert| range(base + expert * stride, stride);
        reader.submit((0..8).map(|e| demand(e, vec![piece(&arena, wanted(e), landing)])));
        for completion in drain(&reader) {
            assert_holds(&completion, &[wanted(completion.tag.0)]);
        }
        let counters = reader.counters();
        assert_eq!((counters.reads, counters.copied_reads), (8, 0));
        assert_eq!(counters.bytes, 8 * stride);
        assert!(counters.device_bytes >= counters.bytes && counters.busy > Duration::ZERO);
    }
}

#[test]
fn many_experts_of_three_matrices_with_eight_reads_in_flight() {
    let file = KnownFile::new(24 << 20);
    for backend in backends() {
        let reader = file.reader(ReaderOptions { in_flight: 8, ..ReaderOptions::new(backend) });
        let arena = arena(300_000, 72);
        let ranges = |tag: u64| [0, 8 << 20, 16 << 20].map(|b| range(b + tag * 288_032, 288_032));
        let request = |tag| demand(tag, ranges(tag).map(|r| piece(&arena, r, 0)).into());
        reader.submit((0..24).map(request));
        let completions = drain(&reader);
        let mut tags: Vec<u64> = completions.iter().map(|c| c.tag.0).collect();
        tags.sort_unstable();
        assert_eq!(tags, (0..24).collect::<Vec<_>>());
        for completion in &completions {
            assert_holds(completion, &ranges(completion.tag.0));
        }
        assert_eq!(arena.leased_slots(), 72, "filled slots are held by their completions");
        drop(completions);
        assert_eq!(arena.leased_slots(), 0);
    }
}

fn tensor(matrix: Matrix, base_offset: u64, stride_bytes: u64) -> ExpertTensor {
    let (part, ty) = (TensorPart::Weight, GgmlType::Q4_0);
    ExpertTensor { tensor: 0, matrix, part, ty, file: 0, base_offset, stride_bytes }
}

#[test]
fn an_expert_is_asked_for_whole() {
    let tensors = vec![tensor(Matrix::GateUp, 1056, 73_728), tensor(Matrix::Down, 800_032, 4_640)];
    let layer = LayerExperts { layer: 3, experts: 8, used: 2, tensors };
    let file = KnownFile::new(1 << 20);
    for backend in backends() {
        let reader = file.reader(ReaderOptions::new(backend));
        let (wide, small) = (arena(80_000, 1), arena(8192, 1));
        let wanted =
            |expert| ExpertRead { tag: Tag(1), priority: Priority::Demand, layer: &layer, expert };
        let of = |t: &ExpertTensor| Some(if t.matrix == Matrix::Down { &small } else { &wide });
        let lease = ExpertLease::from_arenas(&layer.tensors, of).expect("room for one");
        let lease =
            Request::for_expert(wanted(8), lease, reader.files()).expect_err("no such expert");
        let request = Request::for_expert(wanted(7), lease, reader.files()).expect("the last one");
        let ranges: Vec<FileRange> = layer.ranges(7).map(|(_, range)| range).collect();
        reader.submit([request]);
        let completion = reader.wait(None).expect("one request");
        assert_holds(&completion, &ranges);
        let filled = completion.outcome.expect("just checked");
        assert!(filled.get(Matrix::Gate, TensorPart::Weight).is_none());
        let down = filled.get(Matrix::Down, TensorPart::Weight).expect("a down matrix");
        assert_eq!(down.at_bytes(), 0, "strides of 4640 differ in skew: copied");

        assert!(wide.lease().is_none(), "held by the filled expert");
        drop(filled);
        let short: ExpertLease = wide
            .lease()
            .map(|slot| (Matrix::GateUp, TensorPart::Weight, slot))
            .into_iter()
            .collect();
        assert_eq!(
            Request::for_expert(wanted(0), short, reader.files()).map_err(|l| l.len()).err(),
            Some(1)
        );
    }
}

#[test]
fn shards_are_read_by_their_number() {
    let (first, second) = (KnownFile::new(9000), KnownFile::new(50_000));
    let files = Files::open(&[&first.path, &second.path], FileMode::default()).expect("both exist");
    let files = Arc::new(files);
    for backend in backends() {
        let reader = open(Arc::clone(&files), ReaderOptions::new(backend));
        let arena = arena(50_000, 2);
        let wanted = FileRange { file: 1, offset: 20_000, len_bytes: 30_000 };
        reader.submit([demand(1, vec![piece(&arena, wanted, 0)])]);
        assert_holds(&reader.wait(None).expect("one request"), &[wanted]);
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_leases() {
    let file = KnownFile::new(10_000);
    let arena = arena(4096, 1);
    let cases = [
        (FileRange { file: 1, offset: 0, len_bytes: 1 }, 0),
        (range(9_999, 2), 0),
        (range(u64::MAX, 2), 0),
        (range(0, 4096), 1),
        (range(0, 1), usize::MAX),
    ];
    for backend in backends() {
        let reader = file.reader(ReaderOptions::new(backend));
        for (wanted, at_bytes) in cases {
            reader.submit([demand(1, vec![piece(&arena, wanted, at_bytes)])]);
            let failed = reader.wait(None).expect("an answer").outcome.expect_err("refused");
            let known = matches!(
                failed.error,
                ReadError::NoSuchFile { .. }
                    | ReadError::BeyondEnd { .. }
                    | ReadError::DoesNotFit { .. }
            );
            assert!(known, "{:?}", failed.error);
            assert_eq!(failed.request.pieces.len(), 1);
        }
        assert_eq!((reader.counters().reads, reader.counters().errors), (0, 5));
    }
}

#[test]
fn the_number_in_flight_has_limits() {
    let files = KnownFile::new(1).files(FileMode::Buffered);
    for in_flight in [0, 65] {
        let options = ReaderOptions { in_flight, ..ReaderOptions::new(Backend::Pool) };
        let refused = Reader::open(Arc::clone(&files), options).err();
        assert!(matches!(refused, Some(ReaderError::InFlight { .. })), "{refused:?}");
    }
}

#[test]
fn a_backend_is_chosen_in_time_also_on_files_too_small_to_measure() {
    for (len_bytes, measurable) in [(1000, false), (16 << 20, true)] {
        let file = KnownFile::new(len_bytes);
        let files = file.files(FileMode::default());
        let choice = choose(&files, 2, Duration::from_millis(30), 1).expect("a backend works");
        assert_eq!(choice.measured.len(), backends().len());
        assert_eq!(choice.chosen.mb_per_s > 0.0, measurable);
        let arena = arena(1000, 1);
        choice.reader.submit([demand(7, vec![piece(&arena, range(3, 900), 0)])]);
        assert_holds(&choice.reader.wait(None).expect("one request"), &[range(3, 900)]);
    }
}

#[test]
fn probing_reads_no_more_than_its_limit() {
    let files = KnownFile::new(16 << 20).files(FileMode::default());
    let limit = ProbeLimit { time: Duration::from_secs(9), bytes: 24 << 20 };
    let choice = choose_within(&files, 2, limit, 1).expect("a backend works");
    let read: u64 = choice.measured.iter().map(|candidate| candidate.bytes).sum();
    assert!(read > 0 && read <= limit.bytes, "{read}");
}

/// Whole pages, so that the next slot follows without a gap.
const SLOT_BYTES: usize = 735 * 4096;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_range_lands_anywhere_and_touches_no_neighbour(
        ranges in prop::collection::vec((0..FILE_BYTES, 0..3_000_000u64, 0..9000usize), 1..4),
        at_the_end: bool,
        in_flight in 1..9u32,
        buffered: bool,
    ) {
        let mode = if buffered { FileMode::Buffered } else { FileMode::DirectIfPossible };
        let file = KnownFile::new(FILE_BYTES);
        for backend in backends() {
            let options = ReaderOptions { in_flight, ..ReaderOptions::new(backend) };
            let reader = open(file.files(mode), options);
            let arena = arena(SLOT_BYTES, 2 * ranges.len() as u32 + 1);
            let mut neighbours = vec![arena.lease().expect("a free slot")];
            let mut pieces = Vec::new();
            let wanted: Vec<FileRange> =
                ranges.iter().map(|&(at, len, _)| range(at, len.min(FILE_BYTES - at))).collect();
            for (&wanted, &(_, _, at_bytes)) in wanted.iter().zip(&ranges) {
                let last = SLOT_BYTES - wanted.len_bytes as usize;
                pieces.push(piece(&arena, wanted, if at_the_end { last } else { at_bytes }));
                neighbours.push(arena.lease().expect("a free slot"));
            }
            neighbours.iter_mut().for_each(|slot| slot.bytes_mut().fill(0xa5));
            reader.submit([demand(1, pieces)]);
            assert_holds(&reader.wait(None).expect("one request"), &wanted);
            for slot in &mut neighbours {
                prop_assert!(slot.bytes_mut().iter().all(|&byte| byte == 0xa5));
            }
        }
    }
}
