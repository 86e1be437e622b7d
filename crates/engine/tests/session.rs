//! Sessions on a real (small) model: cutting back, cancelling, running out of room.

use motley_engine::{
    Engine, EngineOptions, Finish, Generation, Runtime, Sampling, Seam, Session, SessionError,
    SessionOptions, ThreadSet, ThreadSets, tune,
};
use motley_ggml::DecodeError;
use motley_plan::cores::{Aecs, NodeShare, Objective};
use motley_testkit::synth::Arch;
use std::ops::ControlFlow;

fn engine() -> Option<Engine> {
    let model = motley_testkit::fixtures::synthetic(Arch::Qwen3moe)?;
    let options = EngineOptions {
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        ..EngineOptions::default()
    };
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    Some(Engine::load(runtime, &model, &options, &mut |_| true).expect("the model loads"))
}

fn session(engine: &Engine, context_tokens: u32) -> Session {
    engine.session(&SessionOptions { context_tokens, ..SessionOptions::default() }).unwrap()
}

#[test]
fn a_session_cut_back_goes_on_as_if_never_further() {
    let Some(engine) = engine() else { return };
    let tokens = engine.tokenize("The quick brown fox jumps over the lazy dog").unwrap();
    let mut straight = session(&engine, 256);
    straight.prefill(&tokens[..6]).unwrap();
    straight.decode(tokens[6]).unwrap();
    let mut cut = session(&engine, 256);
    cut.prefill(&tokens[..6]).unwrap();
    cut.decode(11).unwrap();
    assert!(cut.truncate(6));
    cut.decode(tokens[6]).unwrap();
    assert_eq!(cut.len(), 7);
    assert!(cut.logits() == straight.logits());
}

#[test]
fn experts_divided_among_memory_nodes_give_the_same_bits() {
    let Some(model) = motley_testkit::fixtures::synthetic(Arch::Qwen3moe) else { return };
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let logits = |nodes: Vec<NodeShare>| {
        let options = EngineOptions {
            threads: ThreadSets::both(ThreadSet::anywhere(2)),
            yields_cores: false,
            nodes,
            ..EngineOptions::default()
        };
        let engine = Engine::load(runtime, &model, &options, &mut |_| true).expect("it loads");
        let mut session = session(&engine, 512);
        session.prefill(&(1..300).collect::<Vec<_>>()).unwrap();
        let prompt = session.logits().to_vec();
        session.decode(11).unwrap();
        (prompt, session.logits().to_vec())
    };
    // One memory as two: the first half of the CPUs is near the one, the rest near the other.
    let near = |cpus: std::ops::Range<usize>| NodeShare { id: 0, cpus: cpus.collect(), part: 0.5 };
    let whole = logits(Vec::new());
    assert!(logits(vec![near(0..1), near(1..4096)]) == whole, "divided by CPUs");
    assert!(logits(vec![near(0..0), near(0..0)]) == whole, "by threads: no CPU is near");
    let absent = |id| NodeShare { id, ..near(0..1) };
    assert!(logits(vec![absent(900), absent(901)]) == whole, "memory that cannot be bound");
}

#[test]
fn other_threads_go_on_in_the_same_cache() {
    let Some(engine) = engine() else { return };
    let tokens = engine.tokenize("The quick brown fox jumps over the lazy dog").unwrap();
    let mut straight = session(&engine, 256);
    straight.prefill(&tokens).unwrap();
    let mut switched = session(&engine, 256);
    switched.prefill(&tokens).unwrap();
    for threads in [2, 1, 2, 1] {
        switched.set_threads(&ThreadSets::both(ThreadSet::anywhere(threads))).unwrap();
        straight.decode(11).unwrap();
        switched.decode(11).unwrap();
        let pairs = switched.logits().iter().zip(straight.logits());
        let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-3, "{apart} on {threads} threads");
    }
    assert_eq!(switched.len(), straight.len());
}

#[test]
fn tuning_measures_each_choice_and_leaves_the_session_where_it_was() {
    let Some(engine) = engine() else { return };
    let mut session = session(&engine, 256);
    session.prefill(&engine.tokenize("The quick brown fox").unwrap()).unwrap();
    let before = session.len();
    let cores = motley_engine::threads::cores::machine_cores();
    let mut search = Aecs::new(cores.pool.clone(), None, Objective::default());
    let mut reported = 0;
    let tuned =
        tune(&mut session, &cores, &mut search, &mut |_, _| reported += 1).unwrap().unwrap();
    assert_eq!((session.len(), tuned.selection.measured), (before, reported));
    assert!(tuned.selection.candidates.iter().all(|(tried, _)| tried.measured.tokens_per_s > 0.0));
    assert!(tuned.sets.decode.threads >= 1 && tuned.took_s > 0.0);
}

#[test]
fn a_cancelled_prefill_leaves_the_session_usable() {
    let Some(engine) = engine() else { return };
    let tokens: Vec<i32> = (0..400).collect();
    let mut session = session(&engine, 512);
    session.cancel().cancel();
    let error = session.prefill(&tokens).unwrap_err();
    assert!(matches!(error, SessionError::Decode(DecodeError::Cancelled)), "{error}");
    assert!(session.is_empty());
    session.prefill(&tokens).unwrap();
    assert_eq!(session.len(), 400);
    assert_eq!(session.stats().seam.delegated, 0);
}

#[test]
fn a_prompt_longer_than_the_context_is_refused_before_any_work() {
    let Some(engine) = engine() else { return };
    let mut session = session(&engine, 256);
    let error = session.prefill(&[1; 300]).unwrap_err();
    assert!(matches!(error, SessionError::TooLong { tokens: 300, context_tokens: 256 }));
    assert_eq!(session.stats().seam.blocks, 0);
}

#[test]
fn the_same_seed_draws_the_same_tokens() {
    let Some(engine) = engine() else { return };
    let draw = |seed| {
        let sampling = Sampling { temperature: 1.0, seed, ..Sampling::default() };
        let generation = Generation { sampling, max_tokens: 12, ignore_end: true };
        let mut tokens = Vec::new();
        let prompt = engine.tokenize("Tell me").unwrap();
        let finish = session(&engine, 256)
            .generate(&prompt, &generation, &mut |token| {
                tokens.push(token);
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(finish, Finish::Length);
        tokens
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
}

#[test]
fn the_caller_can_stop_after_any_token() {
    let Some(engine) = engine() else { return };
    let generation = Generation { sampling: Sampling::default(), max_tokens: 50, ignore_end: true };
    let mut seen = 0;
    let finish = session(&engine, 256)
        .generate(&[1, 2, 3], &generation, &mut |_| {
            seen += 1;
            if seen == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!((finish, seen), (Finish::Stopped, 3));
}
