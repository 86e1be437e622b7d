//! Prompts that begin alike, on models whose memory cannot be cut (recurrent layers): what was
//! computed before is gone on from, and the answer is that of a prompt computed whole.

#[path = "support/answers.rs"]
mod answers;

use answers::{answer, engine};
use motley_engine::{BatchOptions, Batching, Engine, Runtime, Seam};
use motley_testkit::synth::Arch;
use std::sync::Arc;

const HYBRIDS: [Arch; 2] = [Arch::Qwen35moe, Arch::Granitehybrid];
const ANSWER_TOKENS: usize = 12;

fn start(engine: &Arc<Engine>, sequences: u16, saved_states: u16) -> Batching {
    let options =
        BatchOptions { context_tokens: 4096, sequences, saved_states, ..BatchOptions::default() };
    Batching::start(Arc::clone(engine), &options, None, None).unwrap()
}

/// A message of so many tokens that are alike only for a like `kind`, with its end.
fn message(kind: i32, tokens: i32, end: i32) -> Vec<i32> {
    (0..tokens).map(|at| 300 + (at * 37 + kind * 1009) % 40_000).chain([end]).collect()
}

#[test]
fn a_prompt_that_grows_or_is_edited_costs_what_is_new() {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    for arch in HYBRIDS {
        let Some(model) = motley_testkit::fixtures::synthetic(arch) else { return };
        let engine = engine(runtime, &model);
        let end = engine.tokenize("<|im_end|>").unwrap()[0];
        let system = message(0, 150, end);
        let first = [system.clone(), message(1, 90, end), vec![400, 401]].concat();
        for sequences in [1, 3] {
            let batching = start(&engine, sequences, 4);
            let (said, reused) = answer(&batching, &first, ANSWER_TOKENS);
            assert_eq!((said.len(), reused), (ANSWER_TOKENS, 0), "{arch}");
            let grown = [&first[..], &said, &[end], &message(2, 80, end), &[400]].concat();
            let edited = [&first[..200], &message(3, 70, end), &[400, 401]].concat();
            let other = [&system[..], &message(4, 60, end), &[400]].concat();
            let whole = |prompt: &[i32]| answer(&start(&engine, 1, 0), prompt, ANSWER_TOKENS);
            for (prompt, known) in [
                (&grown, first.len() + said.len() - 1),
                (&edited, system.len()),
                (&other, system.len()),
                // With one sequence the other chat took its place.
                (&edited, if sequences == 1 { system.len() } else { edited.len() - 2 }),
            ] {
                let (said, reused) = answer(&batching, prompt, ANSWER_TOKENS);
                assert_eq!(reused, known, "{arch}, {sequences} sequences");
                assert_eq!((said, 0), whole(prompt), "{arch}, {sequences} sequences");
            }
        }
    }
}
