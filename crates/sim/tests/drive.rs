//! Whole drives in virtual time: what they add up to, that they repeat, and that faults lose
//! nothing.

use motley_cost::{ComputeCost, Nanos, TransferCost};
use motley_sched::cache::lru::Lru;
use motley_sched::cache::{Capacity, ExpertCache};
use motley_sched::prefetch::{NextLayer, NoPrefetch, Prefetcher};
use motley_sched::strategy::{OnDemand, TimelineStrategy};
use motley_sched::{
    Costs, Homes, Layout, Scheduler, SchedulerLimits, SchedulerParts, Strategy, TierParts,
};
use motley_sim::faults::Faults;
use motley_sim::gantt::{GanttError, Window, gantt, stacked};
use motley_sim::predictions::{LayersAhead, PredictionParams};
use motley_sim::spans::{RowNames, Spans};
use motley_sim::synth::{Synth, SynthParams};
use motley_sim::{DenseCost, Outcome, World, drive};

const BYTES: u64 = 2_000_000;

fn synth(decode_tokens: u32) -> Synth {
    let params = SynthParams {
        model: "test".into(),
        layers: 4,
        experts: 16,
        k: 4,
        prompt_tokens: 32,
        decode_tokens,
        zipf_skew: 0.5,
        repeat: 0.3,
        recall: 0.3,
        layer_correlation: 0.5,
        weight_tilt: 0.3,
    };
    Synth::new(params, 3).expect("within the limits")
}

fn hybrid() -> Costs {
    let unit = ComputeCost { launch_us: 5.0, per_token_us: 30.0, floor_us: 150.0 };
    let home =
        Homes { units: 1, layout: Layout::Whole, unit, entry_us: 0.0, entry_per_token_us: 0.0 };
    Costs::one_tier(
        ComputeCost { launch_us: 10.0, per_token_us: 0.2, floor_us: 5.0 },
        TransferCost::new(10.0, 12.0),
        Some(home),
        BYTES,
    )
}

fn scheduler(
    costs: Costs,
    share: f64,
    strategy: Box<dyn Strategy>,
    prefetcher: Box<dyn Prefetcher>,
) -> Scheduler {
    let grid = motley_trace::ExpertGrid { layers: 4, experts: 16 };
    let cache = ExpertCache::new(grid, Capacity::global_share(grid, share), Box::new(Lru::new()));
    let limits = SchedulerLimits { load_attempts: 24, ..SchedulerLimits::default() };
    Scheduler::new(SchedulerParts {
        costs,
        tiers: vec![TierParts { cache, prefetcher, limits }],
        strategy,
    })
}

fn dense() -> DenseCost {
    DenseCost { layer_us: 100.0, layer_per_token_us: 1.0, pass_us: 50.0 }
}

fn full(share: f64, faults: Faults, seed: u64, spans: Option<&mut Spans>) -> Outcome {
    let strategy = Box::new(TimelineStrategy::default());
    let mut scheduler = scheduler(hybrid(), share, strategy, Box::new(NextLayer::default()));
    let layers = LayersAhead { prompts: 1, decode: 3 };
    let predictions = PredictionParams { layers, accuracy: 0.8, seed: 1 };
    let mut world =
        World::new(hybrid(), dense()).with_faults(faults, seed).with_predictions(predictions);
    drive(&mut synth(40), &mut scheduler, &mut world, spans).expect("a drive to its end")
}

/// Beyond RAM, without a cache that could hold a token's experts, every expert comes over the
/// link: the time per token is what the bytes need.
#[test]
fn a_disk_without_a_cache_runs_at_the_speed_of_its_bytes() {
    let link = TransferCost::new(0.0, 1.2);
    let costs = Costs::one_tier(ComputeCost::constant(1.0), link, None, BYTES);
    let mut scheduler =
        scheduler(costs.clone(), 0.0, Box::new(OnDemand::default()), Box::new(NoPrefetch));
    let mut world = World::new(costs, DenseCost::default());
    let outcome = drive(&mut synth(50), &mut scheduler, &mut world, None).expect("a drive");
    let bytes_per_token = (4 * 4 * BYTES) as f64;
    let expected = 1.2e9 / bytes_per_token;
    let ratio = outcome.decode.tokens_per_s() / expected;
    assert!((0.97..=1.0).contains(&ratio), "{ratio} of the disk's {expected} tok/s");
    assert_eq!(outcome.hit_rate(), 0.0);
    assert!(outcome.share_of_wall(outcome.demand_busy) > 0.97);
}

#[test]
fn everything_resident_needs_no_link() {
    let mut spans = Spans::default();
    let outcome = full(1.0, Faults::default(), 0, Some(&mut spans));
    let again = full(1.0, Faults::default(), 0, None);
    assert_eq!(outcome, again, "the same seed gives the same outcome");
    // Only first touches are loaded.
    assert!(outcome.counts.demand_loads + outcome.counts.guessed_loads <= 64);
    assert_eq!(outcome.decode.tokens, 40);
    assert_eq!(outcome.prefill.tokens, 32);
}

#[test]
fn a_larger_cache_is_not_slower() {
    let speed = |share| full(share, Faults::default(), 0, None).decode.tokens_per_s();
    let speeds = [0.1, 0.25, 0.5, 1.0].map(speed);
    assert!(speeds.is_sorted(), "{speeds:?}");
}

#[test]
fn a_thousand_seeds_of_faults_lose_nothing() {
    let faults = Faults {
        load_fails: 0.2,
        link_slows: 0.1,
        slow_loads: 5,
        link_factor: 8.0,
        unit_stalls: 0.1,
        unit_factor: 4.0,
    };
    let calm = full(0.25, Faults::default(), 0, None);
    for seed in 0..1000 {
        let outcome = full(0.25, faults, seed, None);
        assert_eq!(outcome.counts.lookups, calm.counts.lookups);
        assert_eq!((outcome.decode.tokens, outcome.prefill.tokens), (40, 32));
        let computed = outcome.counts.tier_computes + outcome.counts.home_computes;
        assert_eq!(computed, outcome.counts.lookups, "whole experts, each once");
        assert!(outcome.counts.failed_loads > 0);
    }
}

#[test]
fn the_timeline_opens_in_a_trace_viewer_and_as_a_picture() {
    let mut spans = Spans::default();
    let outcome = full(0.25, Faults::default(), 0, Some(&mut spans));
    let rows = RowNames::default();
    let chrome = spans.to_chrome_trace(&rows);
    let events = chrome["traceEvents"].as_array().expect("a list of events");
    let complete = events.iter().filter(|event| event["ph"] == "X");
    assert_eq!(complete.count(), spans.iter().count());
    assert!(spans.iter().all(|span| span.begins <= span.ends && span.ends <= outcome.wall));
    let (from, to) = spans.window_of(2, 3).expect("layer 2 has been visited");
    assert!(spans.window_of(2, 1000).is_none());
    let svg = gantt(&spans, &Window { title: "layer 2", from, to, rows }).expect("a picture");
    assert!(svg.contains("fast unit") && svg.contains("microseconds"));
    let window = |title| Window { title, from, to, rows };
    let two = stacked(&[(&spans, window("above")), (&spans, window("below"))]).expect("a picture");
    assert!(two.contains("above") && two.contains("below"));
    assert_eq!(two.matches("</svg>").count(), 1, "one document");
    assert!(two.trim_end().ends_with("</svg>"));
    let far = Window { title: "", from: outcome.wall + Nanos(1), to: Nanos::NEVER, rows };
    assert!(matches!(gantt(&spans, &far), Err(GanttError::Empty { .. })));
}

/// Two home units never work on one expert at once, and no unit on two: spans of a row do not
/// overlap.
#[test]
fn rows_of_the_timeline_do_not_overlap() {
    let mut spans = Spans::default();
    full(0.25, Faults::default(), 0, Some(&mut spans));
    let mut rows: std::collections::BTreeMap<String, Nanos> = Default::default();
    for span in spans.iter() {
        use motley_sim::spans::SpanKind;
        let row = match span.kind {
            SpanKind::Dense { .. } => "dense".to_string(),
            SpanKind::Load { .. } => "link".into(),
            SpanKind::Compute { unit, .. } => format!("{unit:?}"),
        };
        let free = rows.entry(row.clone()).or_default();
        assert!(span.begins >= *free, "{row} at {}", span.begins);
        *free = span.ends;
    }
    assert_eq!(rows.len(), 4);
}
