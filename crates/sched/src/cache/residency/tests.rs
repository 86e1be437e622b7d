//! Slots, leases and ranks by hand.

use super::super::lru::Lru;
use super::*;

const GRID: ExpertGrid = ExpertGrid { layers: 2, experts: 4 };

fn key(layer: u16, expert: u16) -> ExpertKey {
    ExpertKey::new(layer, expert)
}

fn cache(capacity: Capacity) -> ExpertCache {
    ExpertCache::new(GRID, capacity, Box::new(Lru::new()))
}

fn put(cache: &mut ExpertCache, key: ExpertKey) -> Option<ExpertKey> {
    let admitted = cache.admit(key).expect("a slot");
    cache.release(admitted.lease);
    admitted.evicted
}

#[test]
fn the_least_recent_leaves_a_full_global_pool() {
    let mut cache = cache(Capacity::Global { slots: 2 });
    assert_eq!(put(&mut cache, key(0, 0)), None);
    assert_eq!(put(&mut cache, key(1, 0)), None);
    let routed = Routed { layer: 0, tokens: 1, experts: &[0], ..Routed::default() };
    cache.on_visit(&routed);
    assert_eq!(put(&mut cache, key(1, 1)), Some(key(1, 0)));
    assert!(cache.contains(key(0, 0)) && !cache.contains(key(1, 0)));
    assert_eq!(cache.resident(), 2);
}

#[test]
fn a_smaller_pool_sends_the_lowest_away_and_a_larger_one_has_room_again() {
    let mut cache = cache(Capacity::Global { slots: 3 });
    put(&mut cache, key(0, 0));
    put(&mut cache, key(0, 1));
    let held = cache.lease(key(0, 0)).expect("resident");
    assert_eq!(cache.set_usable(2), [], "a free slot goes first");
    assert_eq!(cache.set_usable(0), [(key(0, 1), SlotId(1))], "the leased one stays");
    assert_eq!((cache.usable(), cache.resident()), (1, 1));
    assert!(cache.admit(key(1, 1)).is_err());
    cache.release(held);
    assert_eq!(cache.set_usable(0), [(key(0, 0), SlotId(0))]);
    assert_eq!(cache.set_usable(9), [], "never more than the capacity");
    assert_eq!(cache.usable(), 3);
    (0..3).for_each(|expert| assert_eq!(put(&mut cache, key(1, expert)), None));
}

#[test]
fn a_follower_ranks_as_the_first_does() {
    let mut first = cache(Capacity::Global { slots: 1 });
    let mut follower = ExpertCache::following(GRID, Capacity::Global { slots: 2 });
    (0..2).for_each(|expert| assert_eq!(put(&mut follower, key(0, expert)), None));
    let routed = Routed { layer: 0, tokens: 1, experts: &[0], ..Routed::default() };
    first.on_visit(&routed);
    follower.on_visit(&routed);
    follower.follow(&first, 0);
    assert_eq!(put(&mut follower, key(1, 0)), Some(key(0, 1)));
}

#[test]
fn layers_do_not_take_each_others_slots() {
    let mut cache = cache(Capacity::PerLayer { slots: vec![1, 1] });
    put(&mut cache, key(0, 0));
    assert_eq!(put(&mut cache, key(1, 0)), None);
    assert_eq!(put(&mut cache, key(1, 1)), Some(key(1, 0)));
    assert_eq!(cache.slot(key(0, 0)), Some(SlotId(0)));
    assert_eq!(cache.slot(key(1, 1)), Some(SlotId(1)));
}

#[test]
fn a_leased_expert_stays() {
    let mut cache = cache(Capacity::Global { slots: 1 });
    let held = cache.admit(key(0, 0)).expect("a slot").lease;
    let again = cache.lease(key(0, 0)).expect("resident");
    assert_eq!(cache.admit(key(0, 1)), Err(AdmitError::Leased { key: key(0, 1) }));
    assert!(!cache.evict(key(0, 0)));
    cache.release(held);
    assert_eq!(cache.leases(key(0, 0)), 1);
    cache.release(again);
    assert_eq!(put(&mut cache, key(0, 1)), Some(key(0, 0)));
}

#[test]
fn resident_and_slotless_experts_are_refused_by_name() {
    let mut full = cache(Capacity::Global { slots: 1 });
    put(&mut full, key(0, 0));
    assert_eq!(full.admit(key(0, 0)), Err(AdmitError::Resident { key: key(0, 0) }));
    let mut none = cache(Capacity::Global { slots: 0 });
    assert_eq!(none.admit(key(0, 0)), Err(AdmitError::Leased { key: key(0, 0) }));
}

#[test]
fn the_next_to_leave_is_the_lowest_of_a_full_pool() {
    let mut cache = cache(Capacity::PerLayer { slots: vec![2, 1] });
    put(&mut cache, key(0, 0));
    assert_eq!(cache.next_to_leave(0), None, "a slot is free");
    put(&mut cache, key(0, 1));
    let routed = Routed { layer: 0, tokens: 1, experts: &[0], ..Routed::default() };
    cache.on_visit(&routed);
    let lowest = cache.ranks().get(key(0, 1));
    assert_eq!(cache.next_to_leave(0), Some(lowest));
    let held = cache.lease(key(0, 1)).expect("resident");
    assert_eq!(cache.next_to_leave(0), Some(cache.ranks().get(key(0, 0))), "the other is held");
    cache.release(held);
    assert_eq!(cache.next_to_leave(1), None, "the other layer's pool has room");
}
