//! Demand before prefetch; waiting and dropping amid the work.

use std::time::Duration;

use motley_store::{Backend, FaultPlan, Reader};

use crate::world::*;

/// One lane, and every read late, so that what is submitted together is there together.
fn slow(file: &KnownFile, backend: Backend, delay_us: u64) -> Reader {
    let faults = FaultPlan { delay_per_mille: 1000, delay_us, ..FaultPlan::default() };
    file.reader(faulty(backend, 1, faults))
}

fn tags(reader: &Reader) -> Vec<u64> {
    drain(reader).iter().map(|completion| completion.tag.0).collect()
}

#[test]
fn demand_is_served_before_prefetch() {
    let file = KnownFile::new(100_000);
    for backend in backends() {
        let reader = slow(&file, backend, 1000);
        let arena = arena(1000, 4);
        let one = |offset| vec![piece(&arena, range(offset, 1000), 0)];
        reader.submit([
            prefetch(1, one(0)),
            demand(2, one(1)),
            prefetch(3, one(2)),
            demand(4, one(3)),
        ]);
        assert_eq!(tags(&reader), [2, 4, 1, 3]);
    }
}

#[test]
fn a_demand_overtakes_a_prefetch_between_its_chunks() {
    let file = KnownFile::new(8 << 20);
    for backend in backends() {
        let reader = slow(&file, backend, 20_000);
        let (large, small) = (arena(8 << 20, 1), arena(1000, 1));
        reader.submit([prefetch(1, vec![piece(&large, range(0, 8 << 20), 0)])]);
        reader.submit([demand(2, vec![piece(&small, range(5, 1000), 0)])]);
        assert_eq!(tags(&reader), [2, 1]);
    }
}

#[test]
fn waiting_ends_in_time_and_when_nothing_is_under_way() {
    let file = KnownFile::new(1000);
    for backend in backends() {
        let reader = slow(&file, backend, 100_000);
        assert!(reader.wait(None).is_none() && reader.poll().is_none());
        let arena = arena(1000, 1);
        reader.submit([demand(1, vec![piece(&arena, range(0, 1000), 0)])]);
        assert!(reader.wait(Some(Duration::from_millis(1))).is_none());
        assert_holds(&reader.wait(None).expect("it arrives"), &[range(0, 1000)]);
    }
}

#[test]
fn a_reader_dropped_amid_its_work_returns_every_slot() {
    let file = KnownFile::new(8 << 20);
    for backend in backends() {
        let reader = slow(&file, backend, 2000);
        let arena = arena(4 << 20, 8);
        reader.submit((0..8).map(|n| demand(n, vec![piece(&arena, range(n, 4 << 20), 0)])));
        assert_eq!(arena.leased_slots(), 8);
        drop(reader);
        assert_eq!(arena.leased_slots(), 0);
    }
}
