//! How many tokens of a prompt are computed at once, on ready machines.

#[path = "support/calibrated.rs"]
mod calibrated;
mod support;

use calibrated::measured;
use motley_plan::cores::MachineCores;
use motley_plan::decide::facts::{described_gpus, described_memory};
use motley_plan::{Asked, Facts, ModelNeeds, decide};
use support::{QWEN3, spec};

#[test]
fn a_long_prompt_is_read_in_longer_chunks_where_weights_travel_and_has_room_for_an_answer() {
    let of = |machine: &str, prompt_tokens| {
        let machine = motley_machine::find(machine).unwrap();
        let facts = Facts {
            model: &ModelNeeds::of(&spec(QWEN3)),
            measured: Some(&measured(&machine, &[(2, 15.0)])),
            profile: None,
            memory: described_memory(&machine),
            gpus: &described_gpus(&machine),
            cores: &MachineCores::described(&machine),
            tuned: None,
            layouts: &[],
            machine: &machine,
        };
        let memory_bytes = Some(8 << 30);
        decide(&facts, &Asked { prompt_tokens, memory_bytes, ..Asked::default() }).unwrap()
    };
    // Experts come from disk and go to a GPU, once for each chunk.
    let [long, usual] = [8192, 1024].map(|prompt| of("laptop-8gb-gpu", prompt));
    assert_eq!((long.session.chunk_tokens, usual.session.chunk_tokens), (2048, 1024));
    assert!(long.session.context_tokens >= 8192 + 256);
    assert!(long.prefill.tokens_per_s > 1.5 * usual.prefill.tokens_per_s);
    // Two cores compute longer than the disk takes.
    assert_eq!(of("two-core-24gb", 8192).session.chunk_tokens, 512);
}
