//! Properties of replay and of synthetic routing: Belady bounds every policy, one seed gives one result,
//! what it draws is valid and has the statistics asked for.

use motley_sched::Named;
use motley_sched::cache::belady::Belady;
use motley_sched::cache::popularity::Popularity;
use motley_sched::cache::{CachePolicy, ExpertCache, PolicyChoice};
use motley_sim::fit::{Statistics, synthesize};
use motley_sim::holdout::Layout;
use motley_sim::replay::{HitCount, ReplayCounts, replay};
use motley_sim::synth::{Synth, SynthParams};
use motley_trace::{Phase, Summary, Trace, Visit, VisitSource};
use proptest::prelude::*;

fn params() -> impl Strategy<Value = SynthParams> {
    let shape = (1_u16..5, 2_u16..12, 0_u32..20, 1_u32..40);
    let knobs = (0.0..2.0_f64, 0.0..0.9_f64, 0.0..1.0_f64, 0.0..1.0_f64, 0.0..0.5_f64);
    (shape, 1_u16..4, knobs).prop_map(|((layers, experts, prompt, decode), k, knobs)| SynthParams {
        model: "synthetic".into(),
        layers,
        experts,
        k: k.min(experts),
        prompt_tokens: prompt,
        decode_tokens: decode,
        zipf_skew: knobs.0,
        repeat: knobs.1,
        recall: knobs.2,
        layer_correlation: knobs.3,
        weight_tilt: knobs.4,
    })
}

fn layout() -> impl Strategy<Value = Layout> {
    prop_oneof![Just(Layout::PerLayer), Just(Layout::Global)]
}

fn run(trace: &Trace, layout: Layout, share: f64, policy: Box<dyn CachePolicy>) -> ReplayCounts {
    let grid = trace.header.grid();
    let mut cache = ExpertCache::new(grid, layout.capacity(grid, share), policy);
    replay(&mut trace.source(), &mut cache, 0).expect("a trace in memory")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_policy_hits_more_than_belady(
        params in params(),
        seed in any::<u64>(),
        layout in layout(),
        share in 0.0..1.0_f64,
    ) {
        let trace = synthesize(&params, seed).expect("valid");
        let bound = run(&trace, layout, share, Box::new(Belady::new(&trace).expect("short")));
        let summary = Summary::collect(&mut trace.source()).expect("in memory");
        let popularity = Popularity::new(trace.header.grid(), &summary.popularity);
        let online = PolicyChoice::ALL.iter().map(|choice| choice.build(&trace.header));
        for policy in online.into_iter().chain([Box::new(popularity) as Box<dyn CachePolicy>]) {
            let name = policy.name();
            let counts = run(&trace, layout, share, policy);
            prop_assert_eq!(overall(&counts).needed, overall(&bound).needed);
            prop_assert!(overall(&counts).hits <= overall(&bound).hits, "{} beats Belady", name);
        }
    }

    #[test]
    fn one_seed_gives_one_trace_and_one_result(
        params in params(),
        seed in any::<u64>(),
        layout in layout(),
        share in 0.0..1.0_f64,
    ) {
        let trace = synthesize(&params, seed).expect("valid");
        prop_assert_eq!(&trace, &synthesize(&params, seed).expect("valid"));
        for choice in PolicyChoice::ALL {
            let once = run(&trace, layout, share, choice.build(&trace.header));
            prop_assert_eq!(once, run(&trace, layout, share, choice.build(&trace.header)));
        }
    }

    #[test]
    fn synthetic_visits_are_valid_and_complete(params in params(), seed in any::<u64>()) {
        let mut synth = Synth::new(params.clone(), seed).expect("valid");
        let mut visit = Visit::default();
        let mut tokens = vec![0; usize::from(params.layers)];
        let mut last_pass = 0;
        while synth.read_visit(&mut visit).expect("synthetic") {
            prop_assert_eq!(visit.check(synth.header()), Ok(()));
            prop_assert!(visit.pass >= last_pass);
            last_pass = visit.pass;
            tokens[usize::from(visit.layer)] += visit.tokens() as u32;
        }
        let expected = params.prompt_tokens + params.decode_tokens;
        prop_assert!(tokens.iter().all(|&count| count == expected));
    }
}

fn typical() -> SynthParams {
    SynthParams {
        model: "synthetic".into(),
        layers: 8,
        experts: 64,
        k: 4,
        prompt_tokens: 600,
        decode_tokens: 300,
        zipf_skew: 0.5,
        repeat: 0.1,
        recall: 0.3,
        layer_correlation: 0.5,
        weight_tilt: 0.0,
    }
}

fn statistics(params: SynthParams) -> Statistics {
    Statistics::of(&synthesize(&params, 7).expect("valid"))
}

#[test]
fn each_parameter_moves_its_statistic() {
    let base = statistics(typical());
    let skewed = statistics(SynthParams { zipf_skew: 1.2, ..typical() });
    assert!(skewed.imbalance > 1.5 * base.imbalance, "{skewed:?} {base:?}");
    let repeated = statistics(SynthParams { repeat: 0.6, ..typical() });
    assert!(repeated.token_reuse > base.token_reuse + 0.3, "{repeated:?} {base:?}");
    let recalled = statistics(SynthParams { recall: 0.9, ..typical() });
    assert!(recalled.working_set < 0.9 * base.working_set, "{recalled:?} {base:?}");
    let correlated = statistics(SynthParams { layer_correlation: 0.9, ..typical() });
    assert!(correlated.layer_lift > base.layer_lift + 0.1, "{correlated:?} {base:?}");
}

#[test]
fn a_long_prompt_comes_in_chunks_before_decoding() {
    let trace = synthesize(&typical(), 1).expect("valid");
    assert_eq!(trace.passes(Phase::Prefill), 2);
    assert_eq!(trace.passes(Phase::Decode), 300);
    assert_eq!(trace.visits[0].tokens(), 512);
    assert_eq!(trace.visits[8].tokens(), 88);
    assert_eq!(trace.visits[16].phase, Phase::Decode);
}

#[test]
fn lru_below_one_tokens_working_set_hits_nothing() {
    let trace = synthesize(&SynthParams { prompt_tokens: 0, ..typical() }, 3).expect("valid");
    // 8 layers × 4 experts are needed per token; 5 % of 512 experts are 26 slots.
    let lru = run(&trace, Layout::Global, 0.05, PolicyChoice::Lru.build(&trace.header));
    assert_eq!(overall(&lru).hits, 0);
    let blend = run(&trace, Layout::Global, 0.05, PolicyChoice::ALL[4].build(&trace.header));
    assert!(overall(&blend).rate() > 0.1, "{blend:?}");
}

#[test]
fn a_cache_of_everything_misses_each_expert_once() {
    let trace = synthesize(&typical(), 5).expect("valid");
    let summary = Summary::collect(&mut trace.source()).expect("in memory");
    for choice in PolicyChoice::ALL {
        let counts = overall(&run(&trace, Layout::PerLayer, 1.0, choice.build(&trace.header)));
        assert_eq!(counts.needed - counts.hits, summary.first_choices, "{choice}");
    }
}

/// Prefill and decode together.
fn overall(counts: &ReplayCounts) -> HitCount {
    let mut sum = counts.prefill;
    sum.add(counts.decode);
    sum
}
