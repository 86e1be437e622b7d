//! One model and answers of it, for tests of what a prompt costs the second time.

use motley_engine::batching::{Ask, Event};
use motley_engine::{Batching, Engine, EngineOptions, Runtime, ThreadSet, ThreadSets};
use std::path::Path;
use std::sync::Arc;

/// The model at `model`, computed by one thread.
pub(crate) fn engine(runtime: Runtime, model: &Path) -> Arc<Engine> {
    let options = EngineOptions {
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        repack: false,
        ..EngineOptions::default()
    };
    Arc::new(Engine::load(runtime, model, &options, &mut |_| true).expect("it loads"))
}

/// What is said to `prompt`, and how many of its tokens were not computed.
pub(crate) fn answer(batching: &Batching, prompt: &[i32], max_tokens: usize) -> (Vec<i32>, usize) {
    let ask = Ask {
        prompt: prompt.into(),
        max_tokens,
        candidates: Some(0),
        ignore_end: true,
        ..Ask::default()
    };
    let mut events = batching.submit(ask).unwrap();
    let mut tokens = Vec::new();
    loop {
        match events.blocking_recv().expect("an answer ends with its end") {
            Event::Piece(piece) => tokens.extend(piece.token.map(|token| token.said.token)),
            Event::Done(done) => return (tokens, done.reused_tokens),
            Event::Failed(reason) => panic!("{reason}"),
            Event::Late | Event::Vector(_) => panic!("no answer"),
        }
    }
}
