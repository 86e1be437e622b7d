//! Vectors and scores of texts: those of the bare engine, whatever is computed beside them.

#![allow(clippy::disallowed_methods, reason = "a test may wait")]

use motley_engine::batching::{Ask, Event};
use motley_engine::{
    BatchOptions, Batching, Engine, EngineOptions, Runtime, Seam, SubmitError, ThreadSet,
    ThreadSets,
};
use motley_model::Pooling;
use motley_testkit::fixtures::synthetic_of;
use motley_testkit::synth::{Arch, Preset, Request};
use std::process::Command;
use std::sync::Arc;

/// Tokens of a step; the last text has more.
const STEP_TOKENS: u32 = 64;
/// Set for a process that computes without Motley's seam: which model it takes.
const BARE: &str = "MOTLEY_TEST_BARE";

/// Of vectors that differ by rounding alone, as sums do that are made in another order.
const ALIKE: f64 = 0.9995;

fn texts() -> [String; 4] {
    let short = ["Gold", "The opposite of hot is cold.", "A village by the sea, long ago."];
    let [a, b, c] = short.map(str::to_owned);
    [a, b, c, "Water boils at a hundred degrees. ".repeat(20)]
}

/// A model of that kind; `None` without the files it is made from.
fn engine(arch: Arch, pooling: Pooling, seam: Seam) -> Option<Arc<Engine>> {
    let preset = Request::of_preset(Preset::Test(arch));
    let model = synthetic_of(&Request { pooling: Some(pooling), ..preset })?;
    let options = EngineOptions {
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        repack: false,
        ..EngineOptions::default()
    };
    let runtime = Runtime::start(seam).expect("the only runtime here");
    Some(Arc::new(Engine::load(runtime, &model, &options, &mut |_| true).expect("it loads")))
}

fn start(engine: &Arc<Engine>, exact: bool) -> Batching {
    let options = BatchOptions {
        context_tokens: 4096,
        sequences: 8,
        step_tokens: STEP_TOKENS,
        exact,
        ..BatchOptions::default()
    };
    let options = options.for_texts(engine.spec().embedding.expect("made for texts"));
    Batching::start(Arc::clone(engine), &options, None, None).unwrap()
}

/// Vectors of all texts that fit, asked for at once.
fn vectors(batching: &Batching) -> Vec<Vec<f32>> {
    let most = batching.longest() as usize - 1;
    let tokens = texts().map(|text| batching.engine().text_tokens(&text, usize::MAX).unwrap());
    let fit = tokens.into_iter().filter(|tokens| tokens.len() <= most);
    let asked = |tokens: Vec<i32>| batching.submit(ask(tokens)).unwrap();
    let answers: Vec<_> = fit.map(asked).collect();
    let vector = |mut events: tokio::sync::mpsc::Receiver<Event>| match events.blocking_recv() {
        Some(Event::Vector(vector)) => vector,
        other => panic!("{other:?}"),
    };
    answers.into_iter().map(vector).collect()
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt()
}

fn ask(tokens: Vec<i32>) -> Ask {
    Ask { prompt: tokens.into(), embeds: true, ..Ask::default() }
}

/// What this very test prints in a process of its own that has no seam.
fn bare_vectors(test: &str, arch: Arch, pooling: Pooling) -> Vec<Vec<f32>> {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(BARE, format!("{arch} {}", pooling.name()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let line = said.lines().find_map(|line| line.strip_prefix("vectors "));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{said}{output:?}"))).unwrap()
}

fn check_bare(test: &str, arch: Arch, pooling: Pooling) {
    let is_bare = std::env::var_os(BARE).is_some();
    let seam = if is_bare { Seam::Absent } else { Seam::Registered };
    let Some(engine) = engine(arch, pooling, seam) else { return };
    let found = vectors(&start(&engine, true));
    if is_bare {
        println!("vectors {}", serde_json::to_string(&found).unwrap());
        return;
    }
    assert_eq!(found, bare_vectors(test, arch, pooling), "bit for bit");
    let beside = vectors(&start(&engine, false));
    assert_eq!(beside.len(), found.len());
    for (one, other) in found.iter().zip(&beside) {
        assert!(cosine(one, other) > ALIKE, "{} beside others", cosine(one, other));
    }
    assert!(found.windows(2).all(|pair| pair[0] != pair[1]), "of other texts other vectors");
    if pooling == Pooling::Rank {
        let is_whole = |scores: &Vec<f32>| (scores.iter().sum::<f32>() - 1.0).abs() < 1e-5;
        assert!(found.iter().all(|scores| scores.len() == 2 && is_whole(scores)), "{found:?}");
    }
}

#[test]
fn the_last_rows_are_the_bare_engines() {
    check_bare("the_last_rows_are_the_bare_engines", Arch::Qwen3moe, Pooling::Last);
}

#[test]
fn means_are_the_bare_engines() {
    check_bare("means_are_the_bare_engines", Arch::Qwen3moe, Pooling::Mean);
}

#[test]
fn scores_are_the_bare_engines() {
    check_bare("scores_are_the_bare_engines", Arch::Qwen3, Pooling::Rank);
}

#[test]
fn a_text_in_pieces_has_the_vector_of_the_whole() {
    let Some(engine) = engine(Arch::Qwen3moe, Pooling::Last, Seam::Registered) else { return };
    let embedding = engine.spec().embedding.unwrap();
    let of = |step_tokens| {
        let options = BatchOptions { context_tokens: 4096, step_tokens, ..BatchOptions::default() };
        let batching =
            Batching::start(Arc::clone(&engine), &options.for_texts(embedding), None, None);
        vectors(&batching.unwrap()).pop().unwrap()
    };
    let (whole, pieces) = (of(512), of(32));
    assert!(cosine(&whole, &pieces) > ALIKE, "{}", cosine(&whole, &pieces));
}

#[test]
fn a_text_whose_mean_needs_all_of_it_fits_a_step() {
    let Some(engine) = engine(Arch::Qwen3moe, Pooling::Mean, Seam::Registered) else { return };
    let batching = start(&engine, false);
    let of = |tokens: u32| batching.submit(ask(vec![1; tokens as usize]));
    assert!(matches!(of(STEP_TOKENS + 1), Err(SubmitError::Refused(_))));
    let vector = of(STEP_TOKENS).unwrap().blocking_recv();
    assert!(matches!(vector, Some(Event::Vector(_))), "{vector:?}");
}

#[test]
fn who_makes_vectors_does_not_answer_and_the_reverse() {
    let Some(engine) = engine(Arch::Qwen3moe, Pooling::Last, Seam::Registered) else { return };
    let answer = Ask { prompt: [1].into(), max_tokens: 1, ..Ask::default() };
    assert_eq!(start(&engine, false).submit(answer).err(), Some(SubmitError::MakesVectors));
    let answers = Batching::start(Arc::clone(&engine), &BatchOptions::default(), None, None);
    assert_eq!(answers.unwrap().submit(ask(vec![1])).err(), Some(SubmitError::MakesNoVectors));
}
