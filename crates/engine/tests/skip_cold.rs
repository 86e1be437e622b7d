//! Experts left out in place of being read (`--skip-cold`): nothing changes where memory has room for
//! all; where it has not, pairs are left out and counted, less is read, and the result is near.

use motley_engine::{
    Engine, EngineOptions, Loading, PrefetchChoice, Runtime, Seam, SessionOptions, SessionStats,
    StreamingOptions, ThreadSet, ThreadSets,
};
use motley_machine::Regime;
use motley_plan::budget::Budget;
use motley_sched::cache::PolicyChoice;
use motley_sched::strategy::StrategyChoice;
use motley_sched::{Rules, SkipCold};
use motley_testkit::synth::Arch;
use std::path::Path;

const PROMPT: i32 = 12;
const DECODED: i32 = 48;

/// All logits, and what was counted, with room for `part` of the experts.
fn logits(model: &Path, part: Option<f64>, skip: Option<&str>) -> (Vec<Vec<f32>>, SessionStats) {
    let shape = SessionOptions { context_tokens: 256, chunk_tokens: 64, ..Default::default() };
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let (spec, files) = motley_model::ModelSpec::open(model).expect("a model");
    let budget = Budget::of(&spec, shape.shape());
    let slots = |part: f64| (f64::from(budget.experts) * part) as u32;
    let skip_cold = skip.map(|part| part.parse::<SkipCold>().expect("a part"));
    // Nothing is guessed: what is read does not hang on how long reading takes.
    let rules = Rules::of(StrategyChoice::OnDemand, PolicyChoice::Lru, PrefetchChoice::None);
    assert_eq!(rules.skip_cold, Rules::default_for(Regime::BeyondRam).skip_cold, "off");
    let rules = Rules { skip_cold, ..rules };
    let options = EngineOptions {
        loading: Loading::OnDemand,
        repack: false,
        memory_bytes: part.map(|part| budget.bytes_with(slots(part))),
        streaming: StreamingOptions { rules, ..StreamingOptions::default() },
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        ..EngineOptions::default()
    };
    let engine =
        Engine::load_opened(runtime, (spec, files), &options, &mut |_| true).expect("it loads");
    let mut session = engine.session(&shape).expect("a session");
    session.prefill(&(100..100 + PROMPT).collect::<Vec<_>>()).expect("a prompt");
    let mut all = vec![session.logits().to_vec()];
    for token in 0..DECODED {
        session.decode(200 + token).expect("a token");
        all.push(session.logits().to_vec());
    }
    let record = engine.record(&session);
    assert_eq!(record.streaming.and_then(|s| s.skip_cold).is_some(), skip.is_some());
    (all, session.stats())
}

fn left_out(stats: &SessionStats) -> (f64, f64) {
    stats.prefill.plus(&stats.decode).left_out()
}

/// Kullback-Leibler divergence of the second from the first, mean over tokens.
fn divergence(first: &[Vec<f32>], second: &[Vec<f32>]) -> f64 {
    let log_softmax = |logits: &[f32]| -> Vec<f64> {
        let most = logits.iter().copied().fold(f32::MIN, f32::max);
        let sum: f64 = logits.iter().map(|l| f64::from(l - most).exp()).sum();
        logits.iter().map(|l| f64::from(l - most) - sum.ln()).collect()
    };
    let one = |(first, second): (&Vec<f32>, &Vec<f32>)| -> f64 {
        let (first, second) = (log_softmax(first), log_softmax(second));
        first.iter().zip(&second).map(|(a, b)| a.exp() * (a - b)).sum()
    };
    first.iter().zip(second).map(one).sum::<f64>() / first.len() as f64
}

fn check(model: &Path) {
    let (whole, _) = logits(model, None, None);
    let (roomy, stats) = logits(model, None, Some("1"));
    assert!(roomy == whole, "with room for all, nothing changes");
    assert_eq!(left_out(&stats), (0.0, 0.0));

    let (small, read) = logits(model, Some(0.5), None);
    assert!(small == whole, "a small budget alone changes nothing either");
    let mut before = (0.0, 0.0, 0.0);
    for part in ["0.1", "0.7", "1"] {
        let (skipped, stats) = logits(model, Some(0.5), Some(part));
        let (pairs, weight) = left_out(&stats);
        let far = divergence(&whole, &skipped);
        assert!(
            weight <= pairs * part.parse::<f64>().expect("a number"),
            "{part}: {pairs} {weight}"
        );
        assert!((0.0..1.0).contains(&far), "{part}: {far}");
        assert_eq!(far > 0.0, pairs > 0.0, "{part}: {far}, {pairs} left out");
        assert!(pairs >= before.0 && weight >= before.1, "{part}: {pairs} {weight} {before:?}");
        before = (pairs, weight, far);
        let bytes = |stats: &SessionStats| stats.stream.expect("it streams").disk.bytes;
        assert_eq!(
            bytes(&stats) < bytes(&read),
            pairs > 0.0,
            "{part}: what is left out is not read"
        );
    }
    assert!(before.0 > 0.01, "something is left out: {before:?}");
}

#[test]
fn what_is_left_out_is_counted_and_near() {
    let Some(model) = motley_testkit::fixtures::trained("f16") else { return };
    check(&model);
}

#[test]
fn a_router_that_does_not_make_weights_sum_to_one_is_left_as_it_is() {
    let Some(model) = motley_testkit::fixtures::synthetic(Arch::Olmoe) else { return };
    check(&model);
}
