//! One decision, two drivers: the engine and the simulator build the same scheduler from it, in
//! every regime.

use motley_engine::threads::cores::machine_cores;
use motley_engine::{Engine, EngineOptions, Runtime, Seam, SessionOptions};
use motley_model::{ModelSpec, Sizes};
use motley_plan::{
    Asked, Decision, DevicesAsked, Facts, GpuFact, MachineMemory, ModelNeeds, NamedDevice, Regime,
    decide,
};
use motley_sched::SchedulerSetup;
use motley_sched::cache::PolicyChoice;
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::regime::typical_hybrid;
use motley_sim::setup::setup_of;
use motley_sim::shape::ModelShape;
use motley_testkit::fixtures::synthetic;
use motley_testkit::synth::Arch;
use std::path::Path;

fn decided(spec: &ModelSpec, asked: &Asked) -> Decision {
    let stand_in =
        GpuFact { name: "stand-in".into(), free_bytes: 0, own_memory: true, stands_in: true };
    let gib = |count: u64| count << 30;
    let facts = Facts {
        model: &ModelNeeds::of(spec),
        machine: &motley_machine::find("two-core-24gb").expect("a ready machine"),
        measured: None,
        profile: None,
        memory: Some(MachineMemory {
            total_bytes: gib(24),
            available_bytes: gib(20),
            ..MachineMemory::default()
        }),
        gpus: &[stand_in],
        cores: &machine_cores(),
        tuned: None,
        layouts: &[],
    };
    decide(&facts, asked).expect("it can be done")
}

/// The model as the simulator sees it.
fn shape(spec: &ModelSpec) -> ModelShape {
    let (experts, used) = (spec.experts, spec.used);
    let (layers, hidden, width) = (spec.layers.len(), spec.shape.hidden, spec.expert_width);
    let name = format!("{layers}x{experts}x{used}:{hidden}x{width}");
    let mut shape = ModelShape::find(&name, 4.5).expect("a shape");
    shape.expert.bytes = Sizes::of(spec).expert_bytes_max;
    shape
}

/// Who decides in a session that has computed two tokens.
fn in_engine(path: &Path, decision: &Decision) -> Option<SchedulerSetup> {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let options = EngineOptions::of(decision, &runtime, Vec::new()).expect("the devices are there");
    let engine = Engine::load(runtime, path, &options, &mut |_| true).expect("it loads");
    let mut session = engine.session(&SessionOptions::of(decision)).expect("room");
    session.prefill(&[1, 2, 3]).expect("it runs");
    session.decode(4).expect("it runs");
    let shared = engine.devices().and_then(|devices| devices.setup());
    shared.or_else(|| session.setup().cloned())
}

#[test]
fn engine_and_simulator_build_one_scheduler_from_one_decision() {
    let Some(path) = synthetic(Arch::Qwen3moe) else { return };
    let (spec, _) = ModelSpec::open(&path).expect("a model");
    let ask = |asked: Asked| Asked { threads: Some(1), context_tokens: Some(256), ..asked };
    let all = decided(&spec, &ask(Asked::default()));
    let few = all.budget.smallest_bytes() + 9 * all.budget.slot_bytes;
    let stand_in =
        || DevicesAsked::Named(vec![NamedDevice { name: "stand-in".into(), most_bytes: None }]);
    let rules = (Some(PolicyChoice::Lru.into()), Some(PrefetchChoice::PreviousToken.into()));
    let apart = ("ram=lru,gpu=lfu".parse().ok(), "ram=none,gpu=refill".parse().ok());
    let cases = [
        (Regime::OneMemory, Asked::default()),
        (Regime::BeyondRam, Asked { memory_bytes: Some(few), ..Asked::default() }),
        (
            Regime::BeyondRam,
            Asked {
                memory_bytes: Some(few),
                policy: rules.0,
                prefetch: rules.1,
                ..Asked::default()
            },
        ),
        (Regime::Hybrid, Asked { devices: stand_in(), ..Asked::default() }),
        (
            Regime::Hybrid,
            Asked { devices: stand_in(), policy: rules.0, prefetch: rules.1, ..Asked::default() },
        ),
        (
            Regime::BeyondRam,
            Asked { devices: stand_in(), memory_bytes: Some(few), ..Asked::default() },
        ),
        (
            Regime::BeyondRam,
            Asked {
                devices: stand_in(),
                memory_bytes: Some(few),
                policy: apart.0,
                prefetch: apart.1,
                ..Asked::default()
            },
        ),
    ];
    for (regime, asked) in cases {
        let decision = decided(&spec, &ask(asked));
        assert_eq!(decision.regime(), regime);
        // Read back from text, as `run --plan` has it.
        let text = decision.to_json().expect("text");
        let decision = Decision::from_json(&text).expect("a decision");
        let simulated = setup_of(&decision, &shape(&spec), typical_hybrid(1));
        let Some(real) = in_engine(&path, &decision) else {
            assert_eq!(regime, Regime::OneMemory, "llama.cpp holds every expert: nobody decides");
            continue;
        };
        // What the disk does is measured when it is opened; all else is decided.
        let costs =
            if regime == Regime::Hybrid { real.costs.clone() } else { simulated.costs.clone() };
        assert_eq!(SchedulerSetup { costs, ..real }, simulated, "{regime:?}");
    }
}
