//! A disk that fails: one retry, then a clean error with the leases; nothing hangs.

use std::error::Error;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Seek, Write};
use std::path::Path;
use std::time::Duration;

use motley_store::{FaultPlan, ReadError, ReaderOptions};
use proptest::prelude::*;

use crate::world::*;

const FILE_BYTES: u64 = 4 << 20;

#[test]
fn an_error_that_persists_is_reported_once_with_the_leases() {
    let file = KnownFile::new(FILE_BYTES);
    for backend in backends() {
        let plan = FaultPlan { eio_per_mille: 1000, ..FaultPlan::default() };
        let reader = file.reader(faulty(backend, 4, plan));
        let arena = arena(100_000, 3);
        let pieces = [0, 1, 2].map(|n| piece(&arena, range(n * 500_000, 100_000), 0));
        reader.submit([demand(1, pieces.into())]);
        let failed = reader.wait(None).expect("an answer").outcome.expect_err("every read fails");
        let ReadError::Io { source, path, .. } = &failed.error else { panic!("{failed:?}") };
        assert_eq!((source.raw_os_error(), path), (Some(5), &file.path));
        assert!(failed.source().is_some_and(|e| e.to_string().contains("failed twice")));
        assert_eq!(failed.request.pieces.len(), 3);
        assert_eq!(arena.leased_slots(), 3);
        drop(failed);
        assert_eq!(arena.leased_slots(), 0);
        assert_eq!((reader.counters().errors, reader.counters().bytes), (1, 0));
        assert!(reader.counters().retries >= 1);
    }
}

#[test]
fn one_error_is_healed_by_the_retry() {
    let file = KnownFile::new(FILE_BYTES);
    for backend in backends() {
        let plan = FaultPlan { seed: 1, eio_per_mille: 300, ..FaultPlan::default() };
        let reader = file.reader(faulty(backend, 4, plan));
        let arena = arena(4096, 200);
        let wanted = |n: u64| range(n * 20_000, 4000);
        reader.submit((0..200).map(|n| demand(n, vec![piece(&arena, wanted(n), 0)])));
        let completions = drain(&reader);
        let right = completions.iter().filter(|completion| completion.outcome.is_ok());
        right.clone().for_each(|completion| assert_holds(completion, &[wanted(completion.tag.0)]));
        // 200 · 0.3 fail once, 200 · 0.09 twice; the seed makes it these.
        let counters = reader.counters();
        assert_eq!(right.count() as u64, 200 - counters.errors);
        assert!((45..75).contains(&counters.retries), "{counters:?}");
        assert!((8..30).contains(&counters.errors), "{counters:?}");
    }
}

#[test]
fn a_short_read_that_persists_says_how_short() {
    let file = KnownFile::new(FILE_BYTES);
    for backend in backends() {
        let plan = FaultPlan { short_per_mille: 1000, ..FaultPlan::default() };
        let reader = file.reader(faulty(backend, 1, plan));
        let arena = arena(4096, 1);
        reader.submit([demand(1, vec![piece(&arena, range(4096, 4096), 0)])]);
        let failed =
            reader.wait(None).expect("an answer").outcome.expect_err("every read is short");
        let ReadError::Short { got_bytes, len_bytes, .. } = failed.error else {
            panic!("{failed:?}")
        };
        drop(failed);
        assert_eq!((got_bytes, len_bytes), (2048, 4096));

        // Half of the aligned superset is longer than the range, and does not reach it, whatever the
        // alignment: the range lies at the end of a block of the largest one.
        reader.submit([demand(2, vec![piece(&arena, range((64 << 10) - 12, 12), 0)])]);
        let failed = reader.wait(None).expect("an answer").outcome.expect_err("short again");
        assert!(matches!(failed.error, ReadError::Short { got_bytes: 6, .. }), "{failed:?}");
    }
}

#[test]
fn a_truncated_file_fails_its_requests_and_the_reader_lives() {
    for backend in backends() {
        let file = KnownFile::new(FILE_BYTES);
        let reader = file.reader(ReaderOptions::new(backend));
        let arena = arena(1 << 20, 4);
        let writer = OpenOptions::new().write(true).open(&file.path).expect("our own file");
        writer.set_len(FILE_BYTES / 2 + 100).expect("a shorter file");
        reader.submit((0..4).map(|n| demand(n, vec![piece(&arena, range(n << 20, 1 << 20), 0)])));
        for completion in drain(&reader) {
            let error = completion.outcome.expect_err("the file has changed").error;
            assert!(matches!(error, ReadError::Changed { .. }), "the cause is named: {error:?}");
        }
        assert_eq!((reader.counters().errors, arena.leased_slots()), (4, 0));
    }
}

#[test]
fn a_file_truncated_during_reads_never_yields_wrong_bytes() {
    for backend in backends() {
        let file = KnownFile::new(FILE_BYTES);
        let plan = FaultPlan { delay_per_mille: 1000, delay_us: 2000, ..FaultPlan::default() };
        let reader = file.reader(faulty(backend, 2, plan));
        let arena = arena(256 << 10, 16);
        let wanted = |n: u64| range(n << 18, 256 << 10);
        reader.submit((0..16).map(|n| demand(n, vec![piece(&arena, wanted(n), 0)])));
        let writer = OpenOptions::new().write(true).open(&file.path).expect("our own file");
        let mut completions: Vec<_> = reader.wait(None).into_iter().collect();
        writer.set_len(0).expect("an empty file");
        completions.extend(drain(&reader));
        assert_eq!(completions.len(), 16);
        for completion in &completions {
            match &completion.outcome {
                Ok(_) => assert_holds(completion, &[wanted(completion.tag.0)]),
                Err(failed) => assert_eq!(failed.request.pieces.len(), 1),
            }
        }
        assert!(completions.iter().any(|completion| completion.outcome.is_err()));
    }
}

#[test]
fn bytes_overwritten_in_place_are_refused_and_a_file_replaced_by_rename_stays() {
    for backend in backends() {
        let file = KnownFile::new(FILE_BYTES);
        let arena = arena(4096, 1);
        let ask = || demand(1, vec![piece(&arena, range(0, 4096), 0)]);
        let reader = file.reader(ReaderOptions::new(backend));

        let aside = file.path.with_extension("new");
        std::fs::write(&aside, vec![0; FILE_BYTES as usize]).expect("room on the disk");
        replace(&aside, &file.path);
        reader.submit([ask()]);
        assert_holds(&reader.wait(None).expect("one request"), &[range(0, 4096)]);

        let reader = file.reader(ReaderOptions::new(backend));
        std::thread::sleep(Duration::from_millis(20));
        let mut writer = OpenOptions::new().write(true).open(&file.path).expect("our own file");
        writer.rewind().and_then(|()| writer.write_all(b"other")).expect("a write");
        // Windows may leave the time as it was until the writer closes; a model's own files have none there.
        let _writer = (!cfg!(windows)).then_some(writer);
        reader.submit([ask()]);
        let failed = reader.wait(None).expect("an answer").outcome.expect_err("another model");
        assert!(matches!(failed.error, ReadError::Changed { .. }), "{failed:?}");
    }
}

/// Puts a file in the place of another that is open: by one rename, on Windows since its version 10.
/// Wine 8 has not learnt that; there, as on older ones, the open file has to go aside first.
fn replace(new: &Path, old: &Path) {
    let Err(error) = std::fs::rename(new, old) else { return };
    assert!(cfg!(windows) && error.kind() == ErrorKind::PermissionDenied, "{error}");
    std::fs::rename(old, old.with_extension("old")).expect("an open file can be renamed");
    std::fs::rename(new, old).expect("the same directory");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn under_faults_every_request_ends_once_right_or_with_its_leases(
        seed: u64,
        eio_per_mille in 0..400u16,
        short_per_mille in 0..400u16,
        in_flight in 1..9u32,
    ) {
        let plan =
            FaultPlan { seed, eio_per_mille, short_per_mille, delay_per_mille: 100, delay_us: 200 };
        let file = KnownFile::new(FILE_BYTES);
        for backend in backends() {
            let reader = file.reader(faulty(backend, in_flight, plan.clone()));
            let arena = arena(200_000, 40);
            let wanted = |tag: u64| [range(tag * 100_032, 200_000), range(tag * 32, 70_000)];
            let request = |tag| demand(tag, wanted(tag).map(|r| piece(&arena, r, 0)).into());
            reader.submit((0..20).map(request));
            let completions = drain(&reader);
            let mut tags: Vec<u64> = completions.iter().map(|c| c.tag.0).collect();
            tags.sort_unstable();
            prop_assert_eq!(tags, (0..20).collect::<Vec<_>>());
            for completion in &completions {
                match &completion.outcome {
                    Ok(_) => assert_holds(completion, &wanted(completion.tag.0)),
                    Err(failed) => prop_assert_eq!(failed.request.pieces.len(), 2),
                }
            }
            prop_assert_eq!(arena.leased_slots(), 40);
            drop(completions);
            prop_assert_eq!(arena.leased_slots(), 0);
        }
    }
}
