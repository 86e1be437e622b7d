//! Properties of the cache under every policy and any order of operations: capacity is never
//! exceeded, a lease never outlives its slot, slots are never shared.

use std::collections::HashMap;

use motley_sched::Named;
use motley_sched::cache::popularity::Popularity;
use motley_sched::cache::{
    AdmitError, CachePolicy, Capacity, ExpertCache, Lease, PolicyChoice, Routed, SlotId,
};
use motley_trace::record::FORMAT_VERSION;
use motley_trace::{ExpertGrid, ExpertKey, TraceHeader};
use proptest::prelude::*;

const GRID: ExpertGrid = ExpertGrid { layers: 3, experts: 6 };

/// One thing a driver may do to a cache.
#[derive(Clone, Debug)]
enum Operation {
    Visit {
        layer: u16,
        experts: Vec<u16>,
        tokens: u32,
        scored: bool,
    },
    Admit(ExpertKey),
    Lease(ExpertKey),
    Evict(ExpertKey),
    /// Gives back one of the leases held, whichever this number falls on.
    Release(usize),
}

fn key() -> impl Strategy<Value = ExpertKey> {
    (0..GRID.layers, 0..GRID.experts).prop_map(|(layer, expert)| ExpertKey::new(layer, expert))
}

fn operation() -> impl Strategy<Value = Operation> {
    let experts = proptest::sample::subsequence((0..GRID.experts).collect::<Vec<_>>(), 1..4);
    let visit = (0..GRID.layers, experts, 1_u32..3, any::<bool>()).prop_map(
        |(layer, experts, tokens, scored)| Operation::Visit { layer, experts, tokens, scored },
    );
    prop_oneof![
        2 => visit,
        4 => key().prop_map(Operation::Admit),
        2 => key().prop_map(Operation::Lease),
        1 => key().prop_map(Operation::Evict),
        3 => any::<usize>().prop_map(Operation::Release),
    ]
}

fn capacity() -> impl Strategy<Value = Capacity> {
    prop_oneof![
        (0_u32..10).prop_map(|slots| Capacity::Global { slots }),
        proptest::collection::vec(0_u32..5, usize::from(GRID.layers))
            .prop_map(|slots| Capacity::PerLayer { slots }),
    ]
}

fn policy() -> impl Strategy<Value = usize> {
    0..PolicyChoice::ALL.len() + 1
}

/// The online policies by number, then popularity.
fn build(policy: usize) -> Box<dyn CachePolicy> {
    let header = TraceHeader {
        version: FORMAT_VERSION,
        model: "m".into(),
        layers: GRID.layers,
        experts: GRID.experts,
        k: 2,
    };
    match PolicyChoice::ALL.get(policy) {
        Some(choice) => choice.build(&header),
        None => Box::new(Popularity::new(GRID, &[vec![5, 4, 3, 2, 1, 0], vec![1; 6]])),
    }
}

fn perform(cache: &mut ExpertCache, leases: &mut Vec<Lease>, operation: &Operation) {
    match operation {
        Operation::Visit { layer, experts, tokens, scored } => {
            let scores: &[f32] = if *scored { &[0.3, 0.1, 0.2, 0.2, 0.1, 0.1] } else { &[] };
            let routed =
                Routed { layer: *layer, tokens: *tokens, experts, scores, ..Routed::default() };
            cache.on_visit(&routed);
        }
        Operation::Admit(key) => {
            let resident = cache.contains(*key);
            match cache.admit(*key) {
                Ok(admitted) => leases.push(admitted.lease),
                Err(error) => {
                    assert_eq!(matches!(error, AdmitError::Resident { .. }), resident);
                }
            }
        }
        Operation::Lease(key) => leases.extend(cache.lease(*key)),
        Operation::Evict(key) => {
            let leased = cache.leases(*key) > 0;
            assert!(!(cache.evict(*key) && leased), "a leased expert was evicted");
        }
        Operation::Release(index) if !leases.is_empty() => {
            let lease = leases.swap_remove(index % leases.len());
            cache.release(lease);
        }
        Operation::Release(_) => {}
    }
}

fn check(cache: &ExpertCache, leases: &[Lease]) {
    let keys = (0..GRID.layers)
        .flat_map(|layer| (0..GRID.experts).map(move |expert| ExpertKey::new(layer, expert)));
    let held: HashMap<SlotId, ExpertKey> =
        keys.filter_map(|key| cache.slot(key).map(|slot| (slot, key))).collect();
    assert_eq!(held.len() as u32, cache.resident(), "two experts share a slot");
    assert!(cache.resident() <= cache.capacity().total(), "capacity exceeded");
    if let Capacity::PerLayer { slots } = cache.capacity() {
        for (layer, &slots) in slots.iter().enumerate() {
            let here = held.values().filter(|key| usize::from(key.layer) == layer).count();
            assert!(here <= slots as usize, "layer {layer} exceeds its slots");
        }
    }
    for lease in leases {
        assert_eq!(cache.slot(lease.key()), Some(lease.slot()), "a lease outlived its slot");
        assert!(!cache.ranks().is_candidate(lease.key()), "a leased expert may leave");
    }
    for key in held.values() {
        let count = leases.iter().filter(|lease| lease.key() == *key).count() as u32;
        assert_eq!(cache.leases(*key), count);
        assert_eq!(cache.ranks().is_candidate(*key), count == 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn capacity_and_leases_hold_under_any_operations(
        policy in policy(),
        capacity in capacity(),
        operations in proptest::collection::vec(operation(), 1..60),
    ) {
        let mut cache = ExpertCache::new(GRID, capacity, build(policy));
        let mut leases = Vec::new();
        for operation in &operations {
            perform(&mut cache, &mut leases, operation);
            check(&cache, &leases);
        }
        leases.drain(..).for_each(|lease| cache.release(lease));
        check(&cache, &leases);
    }

    #[test]
    fn the_victim_is_the_lowest_ranked_candidate(
        policy in policy(),
        capacity in capacity(),
        operations in proptest::collection::vec(operation(), 1..60),
        newcomer in key(),
    ) {
        let mut cache = ExpertCache::new(GRID, capacity, build(policy));
        let mut leases = Vec::new();
        operations.iter().for_each(|operation| perform(&mut cache, &mut leases, operation));
        let per_layer = matches!(cache.capacity(), Capacity::PerLayer { .. });
        if let Ok(Some(victim)) = cache.victim_for(newcomer) {
            let rank = cache.ranks().get(victim);
            for layer in (0..GRID.layers).filter(|layer| !per_layer || *layer == newcomer.layer) {
                for expert in 0..GRID.experts {
                    let other = ExpertKey::new(layer, expert);
                    if cache.ranks().is_candidate(other) {
                        prop_assert!(cache.ranks().get(other) >= rank);
                    }
                }
            }
            prop_assert_eq!(cache.admit(newcomer).map(|new| new.evicted), Ok(Some(victim)));
        }
    }
}
