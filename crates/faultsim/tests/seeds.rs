//! Two thousand seeds of the engine's own parts: right or an error, and always an end.

use motley_faultsim::{Report, run};

const SEEDS: u64 = 2_000;

#[test]
fn two_thousand_seeds_break_no_rule() {
    let mut report = Report::default();
    (0..SEEDS).for_each(|seed| report.add(&run(seed, false)));
    let counts = &report.counts;
    println!("{report:#?}");
    let shown: Vec<_> = report.failures.iter().take(5).collect();
    assert!(shown.is_empty(), "cargo xtask seeds --seed {} --verbose: {shown:?}", shown[0].0);
    let kinds = [
        counts.eio,
        counts.short_reads,
        counts.late_reads,
        counts.changed_files,
        counts.failed_steps,
        counts.failed_copies,
        counts.failed_launches,
        counts.refused_cuts,
        counts.panics,
        counts.resizes,
        counts.unread_segments,
        counts.clients_left,
        counts.slow_clients,
    ];
    assert!(kinds.iter().all(|&kind| kind > 0), "every kind of fault is met: {counts:?}");
    assert!(counts.read_segments > SEEDS / 10, "hardly any prompt is read: {counts:?}");
    assert!(counts.answered_right_under_faults > SEEDS, "too unkind: {counts:?}");
}

#[test]
fn a_seed_replays_exactly() {
    for seed in [3, 77, 1234] {
        let (first, second) = (run(seed, true), run(seed, true));
        assert_eq!(first.trace, second.trace);
        assert_eq!(first.counts, second.counts);
    }
}
