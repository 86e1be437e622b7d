//! Sessions of one engine on threads of their own: they take turns on its thread pools, and each
//! says what it says alone.

use motley_engine::{
    Engine, EngineOptions, Loading, Runtime, Seam, SessionOptions, ThreadSet, ThreadSets,
};
use motley_testkit::synth::Arch;
use std::thread;

/// Prompts of different lengths, so that one session computes a prompt while another decodes.
const SESSIONS: [i32; 2] = [3, 17];
const DECODED: i32 = 8;

/// The two pools are different ones: a session that changes between them pauses the other.
fn engine(loading: Loading) -> Option<Engine> {
    let model = motley_testkit::fixtures::synthetic(Arch::Qwen3moe)?;
    let threads = ThreadSets { prefill: ThreadSet::anywhere(2), decode: ThreadSet::anywhere(1) };
    let options = EngineOptions {
        loading,
        repack: false,
        threads,
        yields_cores: false,
        ..EngineOptions::default()
    };
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    Some(Engine::load(runtime, &model, &options, &mut |_| true).expect("the model loads"))
}

fn logits(engine: &Engine, prompt: i32) -> Vec<Vec<f32>> {
    let shape = SessionOptions { context_tokens: 256, chunk_tokens: 64, ..Default::default() };
    let mut session = engine.session(&shape).expect("a session");
    session.prefill(&(100..100 + prompt).collect::<Vec<_>>()).expect("a prompt");
    let mut all = vec![session.logits().to_vec()];
    for token in 0..DECODED {
        session.decode(200 + token).expect("a token");
        all.push(session.logits().to_vec());
    }
    all
}

fn together_as_alone(loading: Loading) {
    let Some(engine) = engine(loading) else { return };
    let alone = SESSIONS.map(|prompt| logits(&engine, prompt));
    for _ in 0..2 {
        let together = thread::scope(|scope| {
            let engine = &engine;
            let started = SESSIONS.map(|prompt| scope.spawn(move || logits(engine, prompt)));
            started.map(|session| session.join().expect("no panic"))
        });
        assert!(together == alone, "neighbours change what a session says");
    }
}

#[test]
fn mapped_sessions_on_threads_say_what_they_say_alone() {
    together_as_alone(Loading::Mapped);
}

#[test]
fn streamed_sessions_on_threads_say_what_they_say_alone() {
    together_as_alone(Loading::OnDemand);
}
