//! Tokens guessed ahead change no answer: eight architectures say the same with and without guesses,
//! greedily and drawn by a seed, over two turns of a conversation, with experts in memory and from
//! disk. Weights are floats, so that a pass of several tokens rounds as one of a single token does
//! but for the last bits. Weights are random too, and such a model never repeats itself; a bonus for
//! tokens that were said has it do so, more and less.
//!
//! How many guesses are computed is a matter of time, but the first of a session: that one is made as
//! soon as something is found, by what is believed before anything was measured. So a text of one token
//! has right guesses on any machine, and texts that hardly repeat have wrong ones.

#[path = "support/mod.rs"]
mod support;

use motley_engine::{
    Engine, EngineOptions, Finish, Generation, Loading, Runtime, Sampling, Seam, Session,
    SessionOptions, Speculate, ThreadSet, ThreadSets,
};
use motley_model::gguf::GgmlType;
use motley_testkit::fixtures::synthetic;
use motley_testkit::synth::Arch;
use motley_trace::SpeculationRecord;
use std::ops::ControlFlow;
use std::path::Path;
use support::as_floats;

/// Tokens of each of the two answers: with the prompts more than any window of these models, and enough
/// that a first guess can be afforded where experts come from disk.
const ANSWER_TOKENS: usize = 28;
const SHAPE: SessionOptions = SessionOptions {
    context_tokens: 512,
    chunk_tokens: 64,
    kv: motley_model::KvType::F16,
    windows: false,
    precise_attention: true,
    scores: false,
    speculate: Speculate::Off,
};

/// What was said, and what came of guesses.
#[derive(Debug, PartialEq)]
struct Said {
    turns: [Vec<i32>; 2],
    /// Tokens kept, computed in prompts and decoded.
    counts: (u32, u64, u64),
}

fn load(runtime: Runtime, model: &Path, loading: Loading) -> Engine {
    let options = EngineOptions {
        loading,
        repack: false,
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        yields_cores: false,
        ..EngineOptions::default()
    };
    Engine::load(runtime, model, &options, &mut |_| true).expect("the model loads")
}

/// The model of `arch` with floats for everything, loaded, and the folder it is in.
fn floats(runtime: Runtime, arch: Arch, loading: Loading) -> Option<(Engine, tempfile::TempDir)> {
    let model = synthetic(arch)?;
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("floats.gguf");
    as_floats(&model, &copy, |tensor| tensor.ty != GgmlType::F32);
    Some((load(runtime, &copy, loading), folder))
}

/// A prompt that repeats itself, so that there is something to guess by.
fn prompt() -> Vec<i32> {
    (0..120).map(|at| 40 + (at % 15) * 7).collect()
}

fn answer(session: &mut Session, prompt: &[i32], sampling: Sampling) -> Vec<i32> {
    let generation = Generation { sampling, max_tokens: ANSWER_TOKENS, ignore_end: true };
    let mut tokens = Vec::new();
    let finish = session.generate(prompt, &generation, &mut |token| {
        tokens.push(token);
        ControlFlow::Continue(())
    });
    assert_eq!(finish.expect("it answers"), Finish::Length);
    tokens
}

fn said(engine: &Engine, speculate: Speculate, sampling: Sampling) -> (Said, SpeculationRecord) {
    let options = SessionOptions { speculate, ..SHAPE };
    let mut session = engine.session(&options).expect("a session");
    let first = answer(&mut session, &prompt(), sampling);
    // The token said last was not computed; the second turn quotes the first answer.
    let second = [&first[ANSWER_TOKENS - 1..], &[9, 8], &first[..20]].concat();
    let second = answer(&mut session, &second, sampling);
    let stats = session.stats();
    let counts = (session.len(), stats.prefill_tokens, stats.decode_tokens);
    let record = engine.record(&session).speculation.unwrap_or_default();
    (Said { turns: [first, second], counts }, record)
}

fn sum(a: SpeculationRecord, b: SpeculationRecord) -> SpeculationRecord {
    SpeculationRecord {
        passes: a.passes + b.passes,
        guessed: a.guessed + b.guessed,
        accepted: a.accepted + b.accepted,
        draft: None,
    }
}

/// Says with guesses what it says without, greedily and drawn; what became of all guesses.
fn says_the_same(engine: &Engine, name: &str) -> SpeculationRecord {
    let greedy = Sampling::default();
    // The last token of the prompt, again and again.
    let one = Sampling { repeat_window: 1, presence_penalty: -1000.0, ..greedy };
    let repeating = Sampling { frequency_penalty: -2.0, ..greedy };
    // Of the tokens that were said, more and more often the same ones.
    let drawn = Sampling {
        temperature: 1.5,
        seed: 5,
        presence_penalty: -12.0,
        frequency_penalty: -0.25,
        ..greedy
    };
    let of = |(way, sampling): (&str, Sampling)| {
        let (plain, none) = said(engine, Speculate::Off, sampling);
        let (guessed, record) = said(engine, Speculate::Auto, sampling);
        println!("{name}, {way}: {record}");
        assert_eq!(none, SpeculationRecord::default());
        assert_eq!(guessed, plain, "{name}, {way}");
        let decoded = record.passes + record.accepted;
        assert_eq!(decoded, guessed.counts.2, "every decoded token is a pass's or a right guess");
        record
    };
    let made = [("one token", one), ("repeating", repeating), ("drawn", drawn)].map(of);
    assert!(made[0].accepted > 0, "{name}: some are right: {}", made[0]);
    made.into_iter().fold(SpeculationRecord::default(), sum)
}

#[test]
fn eight_architectures_say_the_same_with_and_without_guesses() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let mut made = SpeculationRecord::default();
    for arch in Arch::DISTINCT {
        let Some((engine, _folder)) = floats(runtime, arch, Loading::Mapped) else { return };
        made = sum(made, says_the_same(&engine, arch.name()));
    }
    assert!(made.guessed > made.accepted, "some are wrong: {made}");
}

#[test]
fn experts_from_disk_say_the_same_too() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let loaded = floats(runtime, Arch::Qwen3moe, Loading::OnDemand);
    let Some((engine, _folder)) = loaded else { return };
    assert!(engine.streams());
    says_the_same(&engine, "from disk");
}

#[test]
fn a_model_that_cannot_take_tokens_back_computes_them_one_by_one() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let loaded = floats(runtime, Arch::Qwen35moe, Loading::Mapped);
    let Some((engine, _folder)) = loaded else { return };
    assert!(!engine.keeps_every_position());
    let (plain, _) = said(&engine, Speculate::Off, Sampling::default());
    let (asked, record) = said(&engine, Speculate::Auto, Sampling::default());
    assert_eq!((asked, record), (plain, SpeculationRecord::default()));
}

#[test]
fn an_answer_stopped_within_a_pass_leaves_what_one_by_one_leaves() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let loaded = floats(runtime, Arch::Qwen3moe, Loading::Mapped);
    let Some((engine, _folder)) = loaded else { return };
    for stop_at in [1, 20, 41, 50] {
        let stopped = |speculate| {
            let mut session = engine.session(&SessionOptions { speculate, ..SHAPE }).unwrap();
            let sampling = Sampling { frequency_penalty: -2.0, ..Sampling::default() };
            let generation = Generation { sampling, max_tokens: 200, ignore_end: true };
            let mut seen = 0;
            let finish = session.generate(&prompt(), &generation, &mut |_| {
                seen += 1;
                if seen == stop_at { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert_eq!(finish.unwrap(), Finish::Stopped);
            let logits = session.logits().to_vec();
            (session.len(), session.stats().decode_tokens, logits)
        };
        let (plain, guessed) = (stopped(Speculate::Off), stopped(Speculate::Auto));
        assert_eq!((plain.0, plain.1), (guessed.0, guessed.1));
        let apart = plain.2.iter().zip(&guessed.2).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(!plain.2.is_empty() && apart < 1e-2, "{apart} after {stop_at}");
    }
}
