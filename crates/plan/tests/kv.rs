//! What keys and values are kept in when nobody says, and what windows save.

mod support;

use motley_machine::Machine;
use motley_model::{KvType, ModelSpec, NotInBlocks};
use motley_plan::budget::SessionShape;
use motley_plan::cores::MachineCores;
use motley_plan::{
    Asked, DecideError, Decision, Facts, Loading, MachineMemory, ModelNeeds, Outputs, decide,
};
use proptest::prelude::*;
use support::{QWEN3, spec};

const GIB: u64 = 1 << 30;

fn machine() -> Machine {
    motley_machine::find("two-core-24gb").unwrap()
}

fn try_decide(of: &ModelSpec, available: u64, asked: &Asked) -> Result<Decision, DecideError> {
    let (model, machine) = (ModelNeeds::of(of), machine());
    let memory = MachineMemory {
        total_bytes: 256 * GIB,
        available_bytes: available,
        ..MachineMemory::default()
    };
    let facts = Facts {
        model: &model,
        machine: &machine,
        measured: None,
        profile: None,
        memory: Some(memory),
        gpus: &[],
        cores: &MachineCores::described(&machine),
        tuned: None,
        layouts: &[],
    };
    decide(&facts, asked)
}

fn decided(available: u64, asked: &Asked) -> Decision {
    try_decide(&spec(QWEN3), available, asked).unwrap()
}

/// Within so much, with a context of so many tokens.
fn within(gib: u64, context: u32) -> Asked {
    Asked { memory_bytes: Some(gib * GIB), context_tokens: Some(context), ..Asked::default() }
}

fn with(kv: KvType, asked: &Asked) -> Asked {
    Asked { kv: Some(kv), ..asked.clone() }
}

#[test]
fn sixteen_bits_where_everything_fits() {
    let found = decided(128 * GIB, &Asked::default());
    assert_eq!(found.session.kv, KvType::F16);
    assert_eq!(found.why.kv, "f16: fewer bits would not clearly gain");
}

#[test]
fn eight_bits_where_sixteen_do_not_fit_the_budget() {
    // 16 bits are 98,304 bytes for each of 65,536 tokens: 6 GiB.
    let asked = within(6, 65_536);
    let sixteen = try_decide(&spec(QWEN3), 128 * GIB, &with(KvType::F16, &asked));
    assert!(matches!(sixteen, Err(DecideError::Memory(_))), "{sixteen:?}");
    let found = decided(128 * GIB, &asked);
    assert_eq!(found.session.kv, KvType::Q8_0);
    assert_eq!(found.why.kv, "q8_0: f16 would not fit");
    let exact = try_decide(&spec(QWEN3), 128 * GIB, &Asked { exact: true, ..asked });
    assert!(matches!(exact, Err(DecideError::Memory(_))), "{exact:?}");
}

#[test]
fn eight_bits_where_a_dense_model_would_not_fit_beside_sixteen() {
    let mut dense = spec(QWEN3);
    dense.layers.iter_mut().for_each(|layer| *layer = None);
    let asked = Asked { context_tokens: Some(65_536), ..Asked::default() };
    let needs = ModelNeeds::of(&dense);
    let shape = |kv| decided_shape(&dense, kv, &asked);
    let [sixteen, eight] = [KvType::F16, KvType::Q8_0].map(|kv| needs.budget(shape(kv)));
    let room = |bytes: u64| MachineMemory {
        total_bytes: 256 * GIB,
        available_bytes: bytes,
        ..MachineMemory::default()
    };
    let least = (0..1024).map(|step| step * GIB / 8);
    let enough = |bytes: &u64| room(*bytes).room_bytes() >= eight.largest_sensible_bytes();
    let available = least.clone().find(enough).unwrap();
    assert!(room(available).room_bytes() < sixteen.largest_sensible_bytes());
    let found = try_decide(&dense, available, &asked).unwrap();
    assert_eq!((found.session.kv, found.loading), (KvType::Q8_0, Loading::Mapped));
    let more = try_decide(&dense, 2 * available, &asked).unwrap();
    assert_eq!(more.session.kv, KvType::F16);
}

fn decided_shape(of: &ModelSpec, kv: KvType, asked: &Asked) -> SessionShape {
    try_decide(of, 128 * GIB, &with(kv, asked)).unwrap().session
}

#[test]
fn heads_that_are_not_whole_blocks_refuse_them() {
    let mut odd = spec(QWEN3);
    odd.shape.attention.key_width = 80;
    let mut plain = spec(QWEN3);
    plain.architecture = "grok".into();
    for (of, reason) in [(odd, NotInBlocks::Heads), (plain, NotInBlocks::NoFlashAttention)] {
        for kv in [KvType::Q8_0, KvType::Q4_0] {
            let refused = try_decide(&of, 128 * GIB, &with(kv, &Asked::default()));
            assert_eq!(refused, Err(DecideError::KvBlocks { kv, reason }));
        }
        let auto = try_decide(&of, 128 * GIB, &within(12, 65_536)).unwrap();
        assert_eq!((auto.session.kv, auto.why.kv), (KvType::F16, format!("f16: {reason}")));
    }
}

#[test]
fn windows_leave_memory_to_experts() {
    let mut windowed = spec(QWEN3);
    windowed.shape.attention.sliding_window = Some(128);
    windowed.shape.attention.window_elements_per_token =
        windowed.shape.attention.kv_elements_per_token / 2;
    let asked = with(KvType::F16, &within(8, 32_768));
    let found = try_decide(&windowed, 128 * GIB, &asked).unwrap();
    // 24 layers of 1024 numbers keep all cells, and 24 the window and a chunk.
    let cells = 128 + u64::from(found.session.chunk_tokens);
    let bytes = 24 * 1024 * 2 * (32_768 + cells.next_multiple_of(256));
    assert_eq!(found.budget.kv_bytes, bytes);
    assert!(found.why.context.ends_with("at f16, windows of 128 tokens"), "{:?}", found.why);
    let full = 48 * 1024 * 2 * 32_768;
    for asked in [
        Asked { exact: true, ..asked.clone() },
        Asked { every_position: true, ..asked.clone() },
        Asked { outputs: Outputs::Streams(2), ..asked.clone() },
        Asked { outputs: Outputs::All, ..asked },
    ] {
        let found = try_decide(&windowed, 128 * GIB, &asked).unwrap();
        assert_eq!((found.budget.kv_bytes, found.session.windows), (full, false));
    }
}

#[test]
fn plans_of_before_there_was_a_choice_are_read() {
    let found = decided(128 * GIB, &Asked::default());
    let mut json = serde_json::to_value(&found).unwrap();
    json["session"].as_object_mut().unwrap().remove("windows");
    json["why"].as_object_mut().unwrap().remove("kv");
    let read: Decision = serde_json::from_value(json).unwrap();
    assert_eq!((read.session.windows, read.why.kv.as_str()), (false, ""));
    assert_eq!(read.session, found.session);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// 8 bits only where 16 would not fit or are 5 % slower beyond RAM; never 4; never under exact.
    #[test]
    fn eight_bits_have_to_gain(
        gib in 2u64..20,
        context in prop::option::of(4096u32..262_144),
        exact in any::<bool>(),
        streams in 0u16..8,
    ) {
        let asked = Asked {
            memory_bytes: Some(gib * GIB),
            context_tokens: context,
            exact,
            outputs: if streams > 0 { Outputs::Streams(streams) } else { Outputs::One },
            ..Asked::default()
        };
        let found = try_decide(&spec(QWEN3), 128 * GIB, &asked);
        let sixteen = try_decide(&spec(QWEN3), 128 * GIB, &with(KvType::F16, &asked));
        let Ok(found) = found else {
            prop_assert!(sixteen.is_err());
            return Ok(());
        };
        match (found.session.kv, sixteen) {
            (KvType::F16, Ok(sixteen)) => {
                prop_assert_eq!(&found.session, &sixteen.session);
                let eight = Asked { exact: false, ..with(KvType::Q8_0, &asked) };
                let alike = Asked {
                    context_tokens: Some(found.session.context_tokens),
                    chunk_tokens: Some(found.session.chunk_tokens),
                    ..eight
                };
                let eight = try_decide(&spec(QWEN3), 128 * GIB, &alike).unwrap();
                let times = eight.decode.tokens_per_s / found.decode.tokens_per_s;
                prop_assert!(exact || times < 1.05, "{} times as fast", times);
            }
            (KvType::Q8_0, Ok(sixteen)) => {
                let times = found.decode.tokens_per_s / sixteen.decode.tokens_per_s;
                prop_assert!(!exact && times >= 1.05, "{} times as fast", times);
                prop_assert_eq!(found.session.context_tokens, sixteen.session.context_tokens);
            }
            (KvType::Q8_0, Err(DecideError::Memory(_))) => prop_assert!(!exact),
            (kv, other) => prop_assert!(false, "{:?} beside {:?}", kv, other),
        }
    }
}
