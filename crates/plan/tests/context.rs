//! How long a KV cache is when nobody says, on ready machines and for models of several sizes.

mod support;

use motley_machine::Machine;
use motley_model::KvType;
use motley_plan::cores::MachineCores;
use motley_plan::decide::asked::DEFAULT_CONTEXT_TOKENS;
use motley_plan::decide::facts::{described_gpus, described_memory};
use motley_plan::{
    Asked, DecideError, Decision, Facts, MachineMemory, ModelNeeds, Outputs, decide,
};
use proptest::prelude::*;
use support::{Numbers, QWEN3, spec};

const GIB: u64 = 1 << 30;
const CPU_ONLY: &str = "two-core-24gb";
/// What the models of these tests were trained for.
const TRAINED: u32 = 32_768;

fn decided(machine: &Machine, memory: Option<MachineMemory>, asked: &Asked) -> Decision {
    try_decide(machine, memory, asked, QWEN3).unwrap()
}

fn try_decide(
    machine: &Machine,
    memory: Option<MachineMemory>,
    asked: &Asked,
    numbers: Numbers,
) -> Result<Decision, DecideError> {
    let (model, cores) = (ModelNeeds::of(&spec(numbers)), MachineCores::described(machine));
    let facts = Facts {
        model: &model,
        machine,
        measured: None,
        profile: None,
        memory,
        gpus: &described_gpus(machine),
        cores: &cores,
        tuned: None,
        layouts: &[],
    };
    decide(&facts, asked)
}

fn here(available: u64) -> (Machine, Option<MachineMemory>) {
    let machine = motley_machine::find(CPU_ONLY).unwrap();
    let memory = MachineMemory {
        total_bytes: 256 * GIB,
        available_bytes: available,
        ..MachineMemory::default()
    };
    (machine, Some(memory))
}

#[test]
fn with_memory_to_spare_it_is_what_the_model_was_trained_for() {
    let (machine, memory) = here(128 * GIB);
    let one = decided(&machine, memory, &Asked::default());
    assert_eq!(one.session.context_tokens, TRAINED);
    assert!(one.why.context.starts_with("what the model was trained for, 3"), "{one:?}");
    let streams = |streams| Asked { outputs: Outputs::Streams(streams), ..Asked::default() };
    for (asked, times) in [(streams(1), 1), (streams(2), 2), (streams(16), 4)] {
        let found = decided(&machine, memory, &asked);
        assert_eq!(found.session.context_tokens, times * TRAINED, "{:?}", asked.outputs);
    }
    assert_eq!(one.longest_tokens, Some(TRAINED));
    let given = Asked { context_tokens: Some(2 * TRAINED), ..streams(2) };
    assert_eq!(decided(&machine, memory, &given).longest_tokens, None);
    let scored = Asked { outputs: Outputs::All, ..Asked::default() };
    let scored = decided(&machine, memory, &scored);
    assert_eq!(scored.session.context_tokens, DEFAULT_CONTEXT_TOKENS);
}

#[test]
fn half_of_what_is_left_over_goes_to_it() {
    // 16.2 GB of model; a cell is 98,304 bytes and its part of 512 tokens' mask.
    const CELL_BYTES: u64 = 98_304 + 512 * 6;
    let (machine, memory) = here(20 * GIB);
    let server = Asked { outputs: Outputs::Streams(16), ..Asked::default() };
    let asked = Asked { context_tokens: Some(DEFAULT_CONTEXT_TOKENS), ..server.clone() };
    let spare = decided(&machine, memory, &asked).budget.spare_bytes(memory.unwrap());
    let found = decided(&machine, memory, &server);
    let more = u64::from(found.session.context_tokens - DEFAULT_CONTEXT_TOKENS) * CELL_BYTES;
    assert!(more <= spare / 2 && more + 256 * CELL_BYTES > spare / 2, "{more} of {spare}");
    assert_eq!(found.loading, motley_plan::Loading::Mapped);
    let eight = Asked { kv: Some(KvType::Q8_0), ..server };
    let eight = decided(&machine, memory, &eight);
    let times = f64::from(eight.session.context_tokens) / f64::from(found.session.context_tokens);
    assert!((1.7..1.9).contains(&times), "{times}");
}

#[test]
fn experts_that_are_streamed_hardly_lose_to_it() {
    let (machine, memory) = here(128 * GIB);
    for gib in [3, 6, 12] {
        let asked = Asked { memory_bytes: Some(gib * GIB), ..Asked::default() };
        let least = Asked { context_tokens: Some(DEFAULT_CONTEXT_TOKENS), ..asked.clone() };
        let (found, least) = (decided(&machine, memory, &asked), decided(&machine, memory, &least));
        assert!(found.session.context_tokens >= DEFAULT_CONTEXT_TOKENS);
        let slower = least.decode.tokens_per_s / found.decode.tokens_per_s;
        assert!(slower <= 1.051, "{gib} GiB: {slower}");
    }
    let roomy = Asked { memory_bytes: Some(12 * GIB), ..Asked::default() };
    let roomy = decided(&machine, memory, &roomy);
    assert!(roomy.session.context_tokens > DEFAULT_CONTEXT_TOKENS, "{:?}", roomy.why);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// On every ready machine, whatever is free: at least the least, at most what can be used, and
    /// what fitted still fits.
    #[test]
    fn it_stays_within_bounds(
        name in prop::sample::select(motley_machine::ready_names().collect::<Vec<_>>()),
        available_gib in 1u64..256,
        streams in 1u16..64,
        layers in 4u32..48,
    ) {
        let machine = motley_machine::find(name).unwrap();
        let memory = described_memory(&machine).map(|memory| MachineMemory {
            available_bytes: memory.total_bytes.min(available_gib * GIB),
            ..memory
        });
        let numbers = Numbers { layers, ..QWEN3 };
        let asked = Asked { outputs: Outputs::Streams(streams), ..Asked::default() };
        let least = Asked { context_tokens: Some(DEFAULT_CONTEXT_TOKENS), ..asked.clone() };
        let Ok(least) = try_decide(&machine, memory, &least, numbers) else { return Ok(()) };
        let found = try_decide(&machine, memory, &asked, numbers).unwrap();
        let tokens = found.session.context_tokens;
        prop_assert!(tokens >= DEFAULT_CONTEXT_TOKENS);
        prop_assert!(tokens <= TRAINED * u32::from(streams.min(4)));
        prop_assert_eq!(found.loading, least.loading);
        let slower = least.decode.tokens_per_s / found.decode.tokens_per_s;
        prop_assert!(slower < 1.051, "{}", slower);
    }
}
