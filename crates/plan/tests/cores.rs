//! Searches for cores on made machines: never a choice twice, always an end, always an answer.

use motley_machine::{CoreCluster, CoreRole};
use motley_plan::cores::{
    Aecs, CorePool, CoreSearch, CoreSet, Exhaustive, Freedom, Measurement, Objective, Verdict,
    carry_out,
};
use proptest::prelude::*;
use std::collections::HashSet;

fn pool(cores: &[u32], freedom: Freedom) -> CorePool {
    let roles = [CoreRole::Prime, CoreRole::Performance, CoreRole::Performance];
    let cluster = |(i, cores): (usize, &u32)| CoreCluster {
        name: format!("c{i}"),
        device: "cpu".into(),
        role: roles.get(i).copied().unwrap_or(CoreRole::Efficiency),
        cores: *cores,
        max_ghz: 3.5 - 0.4 * i as f64,
        power_scale: 1.0,
        capacity: None,
    };
    CorePool { clusters: cores.iter().enumerate().map(cluster).collect(), freedom }
}

fn aecs(pool: &CorePool) -> Aecs {
    Aecs::new(pool.clone(), None, Objective::default())
}

/// A speed without energy.
fn speed(tokens_per_s: f64) -> Measurement {
    Measurement { tokens_per_s, joules_per_token: None }
}

#[test]
fn two_equal_cores_without_a_meter() {
    let pool = pool(&[2], Freedom::Affinity);
    let choose = |one: f64, two: f64| {
        let measure = |set: &CoreSet| speed(if set.cores() == 1 { one } else { two });
        carry_out(&mut aecs(&pool), measure).unwrap()
    };
    // The second core nearly doubles the speed: both.
    assert_eq!(choose(20.0, 38.0).chosen.cores(), 2);
    // It brings 4 %: one is cheaper and within ε.
    let near = choose(20.0, 20.8);
    assert_eq!((near.chosen.cores(), near.fastest.cores(), near.measured), (1, 2, 2));
    // The second core makes it slower (a busy neighbour, a spinning barrier): one.
    let collapse = choose(50.0, 0.7);
    assert_eq!((collapse.chosen.cores(), collapse.candidates.len()), (1, 1));
    assert!(!collapse.energy_measured);
    // Nothing moves at all: still an answer.
    assert_eq!(choose(0.0, f64::NAN).chosen.cores(), 1);
}

#[test]
fn the_verdicts_say_why() {
    let pool = pool(&[1, 2], Freedom::Affinity);
    let measure = |set: &CoreSet| Measurement {
        tokens_per_s: [0.0, 10.0, 19.0, 20.0][set.cores() as usize],
        joules_per_token: Some(0.1 * f64::from(set.per_cluster[0] * 2 + set.per_cluster[1])),
    };
    let selection = carry_out(&mut aecs(&pool), measure).unwrap();
    assert_eq!(selection.chosen.per_cluster, [0, 2]);
    assert!(selection.energy_measured);
    let of = |set: &[u32]| {
        let mut found = selection.candidates.iter();
        found.find(|(tried, _)| tried.set.per_cluster == set).map(|(_, verdict)| *verdict)
    };
    assert!(matches!(of(&[1, 2]), Some(Verdict::Dearer { .. })));
    assert!(matches!(of(&[1, 0]), Some(Verdict::TooSlow { speed }) if speed == 0.5));
    assert!(matches!(of(&[0, 2]), Some(Verdict::Chosen { .. })));
}

fn numbers() -> impl Strategy<Value = f64> {
    prop_oneof![9 => 0.1..100.0f64, 1 => Just(f64::NAN), 1 => Just(-1.0), 1 => Just(0.0)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_choice_is_measured_twice_and_the_search_ends(
        cores in prop::collection::vec(1u32..7, 1..5),
        threads in any::<bool>(),
        speeds in prop::collection::vec(numbers(), 1..40),
        joules in prop::collection::vec(prop::option::of(numbers()), 1..40),
    ) {
        let freedom = if threads { Freedom::Threads } else { Freedom::Affinity };
        let pool = pool(&cores, freedom);
        let mut search = aecs(&pool);
        let mut seen = HashSet::new();
        while let Some(set) = search.next_to_measure().cloned() {
            let at = seen.len();
            prop_assert!(set.cores() > 0);
            prop_assert!(set.per_cluster.iter().zip(&cores).all(|(taken, has)| taken <= has));
            prop_assert!(seen.insert(set));
            search.report(Measurement {
                tokens_per_s: speeds[at % speeds.len()],
                joules_per_token: joules[at % joules.len()],
            });
        }
        // Stage 1 adds one core at a time; pairs of clusters bound the tree.
        let considered = pool.considered() as u32;
        let pairs = considered * (considered - 1) / 2;
        let bound = cores[..considered as usize].iter().sum::<u32>() + (2 + pairs) * (1 + pairs);
        prop_assert!(seen.len() as u32 <= bound, "{} measured", seen.len());
        let selection = search.selection().expect("the search is over");
        prop_assert!(seen.contains(&selection.chosen));
        prop_assert_eq!(selection.measured, seen.len());
        let chosen = selection.candidates.iter().filter(|(_, v)| matches!(v, Verdict::Chosen { .. }));
        prop_assert_eq!(chosen.count(), 1);
    }

    #[test]
    fn without_noise_no_allowed_candidate_is_cheaper(
        cores in prop::collection::vec(1u32..4, 1..4),
        speeds in prop::collection::vec(1.0..100.0f64, 64),
        joules in prop::collection::vec(0.1..1.0f64, 64),
    ) {
        let pool = pool(&cores, Freedom::Affinity);
        let objective = Objective { alpha: 0.0, ..Objective::default() };
        let mut search = Exhaustive::new(&pool, None, objective).unwrap();
        let choices = search.choices();
        let mut at = 0;
        let selection = carry_out(&mut search, |_| {
            at += 1;
            Measurement { tokens_per_s: speeds[at % 64], joules_per_token: Some(joules[at % 64]) }
        }).unwrap();
        prop_assert_eq!(at, choices);
        let top = selection.candidates.iter().map(|(t, _)| t.measured.tokens_per_s).fold(0.0, f64::max);
        let chosen = selection.candidates.iter().find(|(t, _)| t.set == selection.chosen).unwrap();
        for (tried, _) in &selection.candidates {
            let fair = tried.measured.tokens_per_s >= 0.92 * top;
            prop_assert!(!fair || tried.measured.joules_per_token >= chosen.0.measured.joules_per_token);
        }
    }
}
