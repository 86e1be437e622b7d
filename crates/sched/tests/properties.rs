//! What must hold whatever is routed, whatever fails and whoever decides. An auditor with buffers
//! of its own drives the scheduler and checks every action against them.

mod auditor;

use auditor::{Case, Outcome, run};
use proptest::prelude::*;

fn case() -> impl Strategy<Value = Case> {
    let shape = (1u16..5, 1u16..24, 1u16..9, 1u32..20);
    let policy = (0usize..12, 0usize..6, 0usize..3, 0.0..1.2f64);
    let machine = (0usize..4, 0.5..20.0f64, 0.5..60.0f64, 0.5..80.0f64);
    (any::<u64>(), shape, policy, machine, 0.0..0.3f64).prop_map(
        |(seed, shape, policy, machine, fails)| {
            let (layers, experts, top_k, tokens) = shape;
            let (strategy, prefetcher, cache, share) = policy;
            let (regime, fast_us, home_us, load_us) = machine;
            Case {
                seed,
                layers,
                experts,
                top_k: top_k.min(experts),
                tokens,
                strategy,
                prefetcher,
                together: false,
                cache,
                cache_share: share,
                regime,
                fast_us,
                home_us,
                load_us,
                fails: 0.0,
                slow: 1.0 + fails,
                passes: 4,
                cancels: 0.0,
                tiers: 1,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The auditor panics on a pair computed twice or not at all, on a computation without its
    /// bytes, on a buffer used twice and on more buffers than there are; see `auditor`.
    #[test]
    fn every_pair_once_with_its_bytes_within_capacity(case in case()) {
        let outcome = run(&case);
        prop_assert_eq!(outcome.lost, 0);
        prop_assert_eq!(outcome.pairs_computed, outcome.pairs_routed);
    }

    /// The same when units take everything that is ready in one launch.
    #[test]
    fn units_may_take_several_at_once(case in case()) {
        let outcome = run(&Case { together: true, ..case });
        prop_assert_eq!(outcome.lost, 0);
        prop_assert_eq!(outcome.pairs_computed, outcome.pairs_routed);
    }

    /// Layers are given up half-way; the ones after them hold to the same rules.
    #[test]
    fn a_cancelled_layer_leaves_no_trace(case in case()) {
        let case = Case { cancels: 0.5, passes: 8, together: case.seed % 4 > 1, ..case };
        let outcome = run(&case);
        prop_assert_eq!(outcome.lost, 0);
        prop_assert_eq!(outcome.pairs_computed, outcome.pairs_routed);
    }

    /// Machines of up to six memories, one below or beside the other.
    #[test]
    fn several_memories_hold_to_the_same_rules(case in case(), tiers in 2u16..6) {
        let cancels = if case.seed.is_multiple_of(5) { 0.3 } else { 0.0 };
        let together = case.seed % 4 > 1;
        let outcome = run(&Case { tiers, cancels, together, ..case });
        prop_assert_eq!(outcome.lost, 0);
        prop_assert_eq!(outcome.pairs_computed, outcome.pairs_routed);
        for (took, bound) in outcome.layers.iter().filter(|_| !together) {
            prop_assert!(took >= bound, "{} is below {}", took, bound);
        }
    }

    #[test]
    fn no_layer_is_shorter_than_the_analytic_bound(case in case()) {
        let outcome = run(&case);
        for (took, bound) in &outcome.layers {
            prop_assert!(took >= bound, "{} is below {}", took, bound);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_actions(case in case()) {
        prop_assert_eq!(run(&case), run(&case));
    }
}

/// 1,000 seeds with failing and slow transfers and cancelled layers: no deadlock,
/// nothing is lost.
#[test]
fn faults_neither_stop_nor_lose_anything() {
    let mut failed = 0;
    for seed in 0..1000u64 {
        let pick =
            |bits: u32, below: u64| (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> bits) % below;
        let case = Case {
            seed,
            layers: 3,
            experts: 16,
            top_k: 1 + pick(8, 6) as u16,
            tokens: 1 + pick(12, 12) as u32,
            strategy: pick(16, 12) as usize,
            prefetcher: pick(20, 6) as usize,
            together: pick(40, 2) == 1,
            cache: pick(24, 3) as usize,
            cache_share: pick(28, 100) as f64 / 100.0,
            regime: pick(36, 4) as usize,
            fast_us: 2.0,
            home_us: 15.0,
            load_us: 20.0,
            fails: 0.3,
            slow: 5.0,
            passes: 6,
            cancels: 0.1,
            tiers: 1 + pick(44, 5) as u16,
        };
        let Outcome { pairs_routed, pairs_computed, lost, failed_loads, .. } = run(&case);
        assert_eq!((pairs_computed, lost), (pairs_routed, 0), "{case:?}");
        failed += failed_loads;
    }
    assert!(failed > 1000, "the faults did happen: {failed}");
}

/// Without a home unit an expert that never arrives is an error, not a hang.
#[test]
fn an_expert_that_never_arrives_is_reported() {
    let case = Case {
        seed: 7,
        layers: 1,
        experts: 4,
        top_k: 1,
        tokens: 1,
        strategy: 0,
        prefetcher: 0,
        together: false,
        cache: 0,
        cache_share: 0.5,
        regime: 1,
        fast_us: 1.0,
        home_us: 1.0,
        load_us: 1.0,
        fails: 1.0,
        slow: 1.0,
        passes: 1,
        cancels: 0.0,
        tiers: 1,
    };
    let outcome = run(&case);
    assert_eq!(outcome.lost, 1);
    assert_eq!(outcome.failed_loads, 24, "as many attempts as the limit allows");
}
