//! Whole plans on ready machines: the regimes, what binds them, and plans as text.

mod support;

use motley_machine::Machine;
use motley_model::ModelSpec;
use motley_plan::cores::Freedom;
use motley_plan::{
    Calibration, CoresRate, Goal, Inputs, Plan, Prediction, Regime, Resource, TooLittleMemory,
    Work, plan,
};
use motley_profile::{Origin, Profile, ProfileBuilder};
use motley_trace::{Phase, TraceHeader, Visit, record};
use proptest::prelude::*;
use support::{Numbers, QWEN3, spec};

const GIB: u64 = 1 << 30;

struct Desk {
    spec: ModelSpec,
    machine: Machine,
    calibration: Calibration,
}

impl Desk {
    fn new(machine: &str, numbers: Numbers) -> Self {
        let machine = motley_machine::find(machine).unwrap();
        let calibration = Calibration::derive(&machine).unwrap();
        Self { spec: spec(numbers), machine, calibration }
    }

    fn inputs(&self, memory_bytes: u64) -> Inputs<'_> {
        Inputs {
            spec: &self.spec,
            machine: &self.machine,
            calibration: &self.calibration,
            profile: None,
            goal: Goal::Speed,
            memory_bytes,
            context_tokens: 4096,
            chunk_tokens: None,
            prompt_tokens: 512,
            freedom: Freedom::Affinity,
        }
    }

    fn plan(&self, gib: f64) -> Result<Plan, TooLittleMemory> {
        plan(&self.inputs((gib * GIB as f64) as u64))
    }
}

fn seconds(prediction: &Prediction, work: Work) -> f64 {
    prediction.terms.iter().filter(|term| term.what == work).map(|term| term.seconds).sum()
}

#[test]
fn resident_decode_is_its_bytes_over_the_bandwidth() {
    let desk = Desk::new("two-core-24gb", QWEN3);
    let plan = desk.plan(22.0).unwrap();
    assert_eq!(plan.placement.regime, Regime::OneMemory);
    let decode = &plan.decode;
    assert_eq!((decode.bound_by, decode.hit_rate), (Resource::Memory, 1.0));
    // 20 GB/s peak, three quarters reached.
    let floor_s = decode.memory_bytes_per_token / 15e9;
    assert!((decode.pass_s / floor_s - 1.0).abs() < 0.02, "{decode:?}");
    assert_eq!(seconds(decode, Work::DiskWait), 0.0);
    assert_eq!(plan.prefill.bound_by, Resource::Arithmetic);
}

#[test]
fn beyond_ram_less_memory_is_slower_and_bound_by_the_disk() {
    let desk = Desk::new("two-core-24gb", QWEN3);
    let speeds: Vec<f64> =
        [4.0, 6.0, 8.0, 12.0, 22.0].map(|gib| desk.plan(gib).unwrap().decode.tokens_per_s).to_vec();
    assert!(speeds.is_sorted(), "{speeds:?}");
    let small = desk.plan(4.0).unwrap();
    assert_eq!(
        (small.placement.regime, small.decode.bound_by),
        (Regime::BeyondRam, Resource::Disk)
    );
    assert!(small.decode.disk_bytes_per_token > 0.0 && small.decode.hit_rate < 0.8);
    assert_eq!(small.chunk_tokens, 512);
    let error = desk.plan(0.5).unwrap_err();
    assert!(desk.plan(error.needed_bytes as f64 / GIB as f64 + 0.01).is_ok());
}

#[test]
fn a_gpu_takes_dense_layers_and_what_fits_of_the_experts() {
    let desk = Desk::new("desktop-24gb-gpu", Numbers { experts: 384, ..QWEN3 });
    let plan = desk.plan(60.0).unwrap();
    assert_eq!((plan.placement.regime, plan.placement.dense_on.as_str()), (Regime::Hybrid, "gpu"));
    let cpu = Desk::new("two-core-24gb", Numbers { experts: 384, ..QWEN3 });
    assert!(plan.decode.tokens_per_s > cpu.plan(60.0).unwrap().decode.tokens_per_s);
    assert!(plan.placement.gpu_slots() > 0);
    let unified = Desk::new("mac-64gb", QWEN3).plan(50.0).unwrap();
    assert_eq!(
        (unified.placement.regime, unified.placement.dense_on_gpu),
        (Regime::OneMemory, true)
    );
}

#[test]
fn goals_differ() {
    let mut desk = Desk::new("mate-40-pro", Numbers { layers: 6, ..QWEN3 });
    desk.calibration.by_cores = [(1, 20.0), (2, 32.0), (3, 33.0), (4, 33.5)]
        .map(|(cores, gb_per_s)| CoresRate { cores, gb_per_s })
        .to_vec();
    let plan_for = |goal| plan(&Inputs { goal, ..desk.inputs(7 * GIB) }).unwrap();
    let (speed, energy, memory) =
        (plan_for(Goal::Speed), plan_for(Goal::Energy), plan_for(Goal::Memory));
    assert_eq!(speed.cores.as_ref().unwrap().decode.per_cluster, [1, 3, 0]);
    assert_eq!(energy.cores.as_ref().unwrap().decode.per_cluster, [0, 2, 0]);
    assert!(energy.decode.joules_per_token < speed.decode.joules_per_token);
    assert!(memory.memory_bytes <= speed.memory_bytes);
    assert!(memory.decode.tokens_per_s >= 0.89 * speed.decode.tokens_per_s);
}

#[test]
fn a_profile_replaces_the_assumed_hit_rate_and_gives_tiers() {
    let desk = Desk::new("m2-ultra", Numbers { layers: 2, experts: 16, used: 2, ..QWEN3 });
    let profile = one_expert_profile();
    let mut inputs = desk.inputs(GIB * 3 / 2);
    assert!(plan(&inputs).unwrap().tiers.is_none());
    inputs.profile = Some(&profile);
    let found = plan(&inputs).unwrap();
    let tiers = found.tiers.unwrap();
    assert_eq!((tiers.device.as_str(), tiers.per_layer.len()), ("npu", 2));
    assert!(tiers.padding >= 1.0 && tiers.graphs >= 2);
}

/// Sixteen experts of which two are always chosen.
fn one_expert_profile() -> Profile {
    let header = TraceHeader {
        version: record::FORMAT_VERSION,
        model: "made".into(),
        layers: 2,
        experts: 16,
        k: 2,
    };
    let mut builder = ProfileBuilder::new(&header);
    for pass in 0..20 {
        for layer in 0..2 {
            let experts = vec![3, 5, 3, 5, (pass % 16) as u16, ((pass + 1) % 16) as u16];
            let positions = vec![0, 1, 2];
            let phase = Phase::Prefill;
            builder.observe(&Visit { pass, layer, phase, positions, experts, ..Visit::default() });
        }
    }
    builder.finish(Origin::default())
}

#[test]
fn terms_add_up_and_text_reads_back() {
    for (name, gib) in [
        ("two-core-24gb", 5.0),
        ("desktop-24gb-gpu", 40.0),
        ("laptop-8gb-gpu", 12.0),
        ("mac-64gb", 20.0),
    ] {
        let plan = Desk::new(name, QWEN3).plan(gib).unwrap();
        for prediction in [&plan.prefill, &plan.decode] {
            let sum: f64 = prediction.terms.iter().map(|term| term.seconds).sum();
            assert!((sum / prediction.pass_s - 1.0).abs() < 1e-9, "{name}");
        }
        let text = plan.to_json().unwrap();
        same(&Plan::from_json(&text).unwrap(), &plan);
    }
}

/// Equal but for the last bit of fractions, which decimal text does not keep.
fn same(read: &Plan, written: &Plan) {
    assert_eq!((&read.placement, &read.budget), (&written.placement, &written.budget));
    assert_eq!((&read.cores, &read.tiers), (&written.cores, &written.tiers));
    assert_eq!((read.goal, read.chunk_tokens), (written.goal, written.chunk_tokens));
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
    assert!(close(read.decode.tokens_per_s, written.decode.tokens_per_s));
    assert!(close(read.prefill.pass_s, written.prefill.pass_s));
}

#[test]
fn foreign_and_changed_text_is_refused() {
    let text = Desk::new("two-core-24gb", QWEN3).plan(5.0).unwrap().to_json().unwrap();
    let cases = [
        (text.replace("\"motley_plan\": 1", "\"motley_plan\": 2"), "plan version 2"),
        (text.replace("\"chunk_tokens\": 512", "\"chunk_tokens\": 0"), "field `chunk_tokens`"),
        (text.replace("\"room_bytes\": 5", "\"room_bytes\": 1"), "field `room_bytes`"),
        (text.replace("\"goal\"", "\"gaol\""), "not a plan"),
        ("{}".into(), "not a plan"),
        (" ".repeat(1 << 20), "1048576 bytes is too long"),
    ];
    for (text, expected) in cases {
        let error = Plan::from_json(&text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error} is not {expected}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_plan_fits_and_every_prediction_is_a_number(
        at in 0usize..17,
        layers in 1u32..60,
        experts in 1u32..200,
        used in 1u32..9,
        gib in 0.3..200.0f64,
        goal in prop_oneof![Just(Goal::Speed), Just(Goal::Energy), Just(Goal::Memory)],
    ) {
        let name = motley_machine::ready_names().nth(at).unwrap();
        let numbers = Numbers { layers, experts, used: used.min(experts), ..QWEN3 };
        let desk = Desk::new(name, numbers);
        let inputs = Inputs { goal, ..desk.inputs((gib * GIB as f64) as u64) };
        let Ok(found) = plan(&inputs) else { return Ok(()) };
        prop_assert!(found.placement.parts.iter().all(|part| part.bytes() <= part.room_bytes));
        prop_assert!(found.memory_bytes <= inputs.memory_bytes);
        for prediction in [&found.prefill, &found.decode] {
            prop_assert!(prediction.tokens_per_s.is_finite() && prediction.tokens_per_s > 0.0);
            prop_assert!((0.0..=1.0).contains(&prediction.hit_rate));
        }
        same(&Plan::from_json(&found.to_json().unwrap()).unwrap(), &found);
    }
}
