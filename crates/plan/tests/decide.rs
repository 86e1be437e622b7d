//! Whole decisions on ready machines: the regimes, what binds them, what is refused, and decisions
//! as text.

#[path = "support/calibrated.rs"]
mod calibrated;
mod support;

use calibrated::measured;
use motley_cost::calibration::CalibrationFile;
use motley_machine::{Machine, MemoryNode};
use motley_plan::cores::{MachineCores, ThreadSet, ThreadSets};
use motley_plan::decide::decision::Why;
use motley_plan::decide::facts::{described_gpus, described_memory};
use motley_plan::device_use::DeviceUse;
use motley_plan::{
    Asked, DecideError, Decision, DevicesAsked, Facts, Goal, GpuFact, Loading, MachineMemory,
    ModelNeeds, NamedDevice, Outputs, Prediction, Regime, Resource, Work, decide,
};
use motley_profile::{ChosenRules, Origin, Profile, ProfileBuilder};
use motley_sched::cache::PolicyChoice;
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::{MemoryRules, Rules};
use motley_trace::{TraceHeader, record};
use proptest::prelude::*;
use support::{Numbers, QWEN3, spec};

const GIB: u64 = 1 << 30;
/// A ready machine without a GPU.
const CPU_ONLY: &str = "two-core-24gb";

/// A model and a described machine.
struct World {
    model: ModelNeeds,
    machine: Machine,
    measured: Option<CalibrationFile>,
    gpus: Vec<GpuFact>,
    memory: Option<MachineMemory>,
    tuned: Option<ThreadSets>,
    profile: Option<Profile>,
}

impl World {
    fn new(machine: &str, numbers: Numbers) -> Self {
        let machine = motley_machine::find(machine).unwrap();
        Self {
            model: ModelNeeds::of(&spec(numbers)),
            gpus: described_gpus(&machine),
            memory: described_memory(&machine),
            measured: None,
            tuned: None,
            profile: None,
            machine,
        }
    }

    fn decide(&self, asked: &Asked) -> Result<Decision, DecideError> {
        let cores = MachineCores::described(&self.machine);
        let facts = Facts {
            model: &self.model,
            machine: &self.machine,
            measured: self.measured.as_ref(),
            profile: self.profile.as_ref(),
            memory: self.memory,
            gpus: &self.gpus,
            cores: &cores,
            tuned: self.tuned.as_ref(),
            layouts: &[],
        };
        decide(&facts, asked)
    }

    fn within(&self, gib: f64) -> Result<Decision, DecideError> {
        self.decide(&Asked { memory_bytes: Some((gib * GIB as f64) as u64), ..Asked::default() })
    }

    fn by_default(&self) -> Decision {
        self.decide(&Asked::default()).unwrap()
    }
}

fn seconds(prediction: &Prediction, work: Work) -> f64 {
    prediction.terms.iter().filter(|term| term.what == work).map(|term| term.seconds).sum()
}

fn named(name: &str) -> DevicesAsked {
    DevicesAsked::Named(vec![NamedDevice { name: name.into(), most_bytes: None }])
}

#[test]
fn what_fits_is_mapped_and_decodes_at_the_bandwidth() {
    let found = World::new(CPU_ONLY, QWEN3).by_default();
    assert_eq!((found.loading, found.memory_bytes), (Loading::Mapped, None));
    assert_eq!(found.placement.regime, Regime::OneMemory);
    let decode = &found.decode;
    assert_eq!((decode.bound_by, decode.hit_rate), (Resource::Memory, 1.0));
    // 20 GB/s peak, three quarters reached.
    let floor_s = decode.memory_bytes_per_token / 15e9;
    assert!((decode.pass_s / floor_s - 1.0).abs() < 0.02, "{decode:?}");
    assert_eq!(seconds(decode, Work::DiskWait), 0.0);
    assert_eq!(found.prefill.bound_by, Resource::Arithmetic);
    assert_eq!(found.session.chunk_tokens, 512);
}

#[test]
fn memory_nodes_divide_experts_that_are_laid_out() {
    let mut world = World::new(CPU_ONLY, QWEN3);
    let one = world.by_default();
    assert_eq!((one.nodes.as_slice(), &one.why.nodes), (&[][..], &None));
    let node = |id| MemoryNode { id, device: "cpu".into(), memory_gib: 12.0, cores: 1 };
    world.machine.nodes = vec![node(0), node(1)];
    let two = world.by_default();
    let parts: Vec<_> = two.nodes.iter().map(|node| (node.id, node.part)).collect();
    assert_eq!(parts, [(0, 0.5), (1, 0.5)]);
    let said = "2 memory nodes: each computes its own half of the experts first";
    assert_eq!(two.why.nodes.as_deref(), Some(said));
    assert_eq!(Decision::from_json(&two.to_json().unwrap()).unwrap(), two);
    // All else is as it was.
    let why = Why { nodes: None, ..two.why.clone() };
    assert_eq!(Decision { nodes: Vec::new(), why, ..two }, one);
    let none = |asked: Asked| assert_eq!(world.decide(&asked).unwrap().nodes, [], "{asked:?}");
    none(Asked { exact: true, ..Asked::default() });
    none(Asked { threads: Some(1), ..Asked::default() });
    none(Asked { memory_bytes: Some(6 * GIB), ..Asked::default() });
}

#[test]
fn beyond_ram_less_memory_is_slower_and_bound_by_the_disk() {
    let world = World::new(CPU_ONLY, QWEN3);
    let speeds: Vec<f64> =
        [4.0, 6.0, 8.0, 12.0].map(|gib| world.within(gib).unwrap().decode.tokens_per_s).to_vec();
    assert!(speeds.is_sorted(), "{speeds:?}");
    let small = world.within(4.0).unwrap();
    assert_eq!((small.loading, small.memory_bytes), (Loading::OnDemand, Some(4 * GIB)));
    assert_eq!(small.rules, Rules::default_for(Regime::BeyondRam));
    assert_eq!(small.decode.bound_by, Resource::Disk);
    assert!(small.decode.disk_bytes_per_token > 0.0 && small.decode.hit_rate < 0.8);
    assert_eq!(small.streamed_slots(), small.budget.slots(4 * GIB).ok());
    let Err(DecideError::Memory(error)) = world.within(0.5) else { panic!("too little") };
    assert!(world.within(error.needed_bytes as f64 / GIB as f64 + 0.01).is_ok());
}

#[test]
fn a_model_larger_than_the_machine_takes_what_the_machine_can_give() {
    let world = World::new(CPU_ONLY, Numbers { experts: 384, ..QWEN3 });
    let found = world.by_default();
    assert_eq!(found.placement.regime, Regime::BeyondRam);
    let given = found.memory_bytes.unwrap();
    assert!(given < 24 * GIB && given > 20 * GIB, "{given}");
    assert!(found.why.memory.contains("available now"), "{}", found.why.memory);
}

#[test]
fn a_gpu_takes_dense_layers_and_what_fits_of_the_experts() {
    let world = World::new("desktop-24gb-gpu", Numbers { experts: 384, ..QWEN3 });
    let found = world.by_default();
    assert_eq!((found.placement.regime, found.placement.dense_on_gpu), (Regime::Hybrid, true));
    assert!(matches!(found.device_use, DeviceUse::DenseAndExperts { .. }));
    assert_eq!(found.rules, Rules::default_for(Regime::Hybrid));
    assert!(found.expert_costs.is_some() && found.placement.gpu_slots() > 0);
    let alone = Asked { devices: DevicesAsked::Cpu, ..Asked::default() };
    assert!(found.decode.tokens_per_s > world.decide(&alone).unwrap().decode.tokens_per_s);
    // Experts on disk are shared too, and RAM that dense weights leave holds more of them.
    let streamed = world.within(40.0).unwrap();
    assert_eq!(streamed.placement.regime, Regime::BeyondRam);
    assert!(matches!(streamed.device_use, DeviceUse::DenseAndExperts { .. }));
    assert_eq!(streamed.rules, Rules::beyond_ram_with_devices());
    assert!(streamed.expert_costs.is_some() && streamed.placement.gpu_slots() > 0);
    let alone = world.decide(&Asked { memory_bytes: Some(40 * GIB), ..alone }).unwrap();
    assert!(streamed.placement.ram_slots() > alone.placement.ram_slots());
    assert!(streamed.decode.tokens_per_s > alone.decode.tokens_per_s);
    let unified = World::new("mac-64gb", QWEN3).by_default();
    assert_eq!(
        (unified.placement.regime, unified.placement.dense_on_gpu, unified.device_use),
        (Regime::OneMemory, true, DeviceUse::Everything)
    );
}

#[test]
fn exact_keeps_to_the_cpu_and_says_so() {
    let world = World::new("desktop-24gb-gpu", QWEN3);
    let exact = Asked { exact: true, ..Asked::default() };
    let found = world.decide(&exact).unwrap();
    assert!(found.devices.is_empty() && found.exact, "{found:?}");
    assert!(found.why.devices.contains("--exact"), "{}", found.why.devices);
    let refused = world.decide(&Asked { devices: named("gpu"), ..exact });
    assert_eq!(refused.unwrap_err(), DecideError::ExactElsewhere { device: "gpu".into() });
}

#[test]
fn wishes_that_cannot_be_obeyed_are_refused() {
    let world = World::new("desktop-24gb-gpu", Numbers { experts: 384, ..QWEN3 });
    let refused = |asked: Asked| world.decide(&asked).unwrap_err().to_string();
    let ask = Asked::default;
    let mapped = Asked { loading: Some(Loading::Mapped), memory_bytes: Some(GIB), ..ask() };
    assert!(refused(mapped).contains("--loading mapped cannot keep to --memory"));
    assert!(refused(Asked { devices: named("cuda7"), ..ask() }).contains("auto, cpu, gpu"));
    let tiny = NamedDevice { name: "gpu".into(), most_bytes: Some(1000) };
    let tiny = Asked { devices: DevicesAsked::Named(vec![tiny]), ..ask() };
    assert!(refused(tiny).contains("too little for this model"));
    let fits = World::new(CPU_ONLY, QWEN3);
    let policy = Asked { policy: Some(PolicyChoice::Lru.into()), ..ask() };
    assert!(matches!(fits.decide(&policy), Err(DecideError::NothingToDecide { flag: "--policy" })));
    let prefetch = Asked { prefetch: Some(PrefetchChoice::None.into()), ..ask() };
    assert!(matches!(
        fits.decide(&prefetch),
        Err(DecideError::NothingToDecide { flag: "--prefetch" })
    ));
}

#[test]
fn what_is_asked_is_obeyed_in_every_regime() {
    let rules = MemoryRules { policy: PolicyChoice::Lru, prefetch: PrefetchChoice::PreviousToken };
    let asked = Asked {
        policy: Some(rules.policy.into()),
        prefetch: Some(rules.prefetch.into()),
        threads: Some(3),
        chunk_tokens: Some(77),
        context_tokens: Some(1000),
        outputs: Outputs::Streams(5),
        ..Asked::default()
    };
    let large = Numbers { experts: 384, ..QWEN3 };
    for (machine, memory_bytes) in [(CPU_ONLY, Some(8 * GIB)), ("desktop-24gb-gpu", None)] {
        let found = World::new(machine, large).decide(&Asked { memory_bytes, ..asked.clone() });
        let found = found.unwrap();
        assert_eq!((found.rules.ram, found.rules.devices), (rules, rules), "{machine}");
        assert_eq!(found.threads, ThreadSets::both(ThreadSet::anywhere(3)));
        let session = found.session;
        assert_eq!(
            (session.chunk_tokens, session.context_tokens, session.output_tokens),
            (77, 1000, 5)
        );
    }
}

/// A profile with rules that were chosen for the arrangement of `found`.
fn chosen(found: &Decision, policy: &str, prefetch: &str) -> Profile {
    let header = TraceHeader {
        version: record::FORMAT_VERSION,
        model: "any".into(),
        layers: 2,
        experts: 4,
        k: 2,
    };
    let mut profile = ProfileBuilder::new(&header).finish(Origin::default());
    profile.header.chosen = Some(ChosenRules {
        arrangement: found.placement.arrangement(&found.machine),
        policy: policy.into(),
        prefetch: prefetch.into(),
        gain: 0.042,
        tokens: 96,
    });
    profile
}

#[test]
fn what_replay_chose_is_used_where_it_was_chosen_for() {
    let mut world = World::new("desktop-24gb-gpu", Numbers { experts: 384, ..QWEN3 });
    world.profile = Some(chosen(&world.within(40.0).unwrap(), "ram=lfu,gpu=mrs", "none"));
    let found = world.within(40.0).unwrap();
    let defaults = Rules::beyond_ram_with_devices();
    assert_eq!(
        (found.rules.policies(), found.rules.prefetchers()),
        ("ram=lfu,gpu=mrs".into(), "none".into())
    );
    assert_eq!(found.rules.decode, defaults.decode);
    let said = "chosen by replay, 4.2 % faster than the defaults on 96 tokens held out";
    assert!(found.why.rules.ends_with(said), "{}", found.why.rules);
    // Elsewhere, and beside a flag, the defaults are.
    assert_eq!(world.within(64.0).unwrap().rules, defaults);
    let asked = Asked { memory_bytes: Some(40 * GIB), ..Asked::default() };
    let policy = Asked { policy: Some(PolicyChoice::Lru.into()), ..asked.clone() };
    let found = world.decide(&policy).unwrap().rules;
    assert_eq!((found.policies().as_str(), found.prefetchers().as_str()), ("lru", "refill"));
    world.profile = Some(chosen(&world.decide(&policy).unwrap(), "magic", "none"));
    let error = world.decide(&asked).unwrap_err().to_string();
    assert!(error.contains("unknown cache policy `magic`; there are lru"), "{error}");
}

#[test]
fn a_rule_for_a_memory_that_is_not_there_is_refused() {
    let large = Numbers { experts: 384, ..QWEN3 };
    let gpu = Asked { policy: "gpu=lru".parse().ok(), ..Asked::default() };
    let error = World::new(CPU_ONLY, large).decide(&gpu).unwrap_err().to_string();
    assert!(error.contains("no GPU shares the experts; leave `gpu=` out"), "{error}");
    let hybrid = World::new("desktop-24gb-gpu", large);
    assert_eq!(hybrid.decide(&gpu).unwrap().rules.policies(), "lru");
    let ram = Asked { prefetch: "none,ram=refill".parse().ok(), ..Asked::default() };
    let error = hybrid.decide(&ram).unwrap_err().to_string();
    assert!(error.contains("no expert comes to RAM from a disk"), "{error}");
}

#[test]
fn tuned_threads_are_used_unless_others_are_asked_for() {
    let mut world = World::new(CPU_ONLY, QWEN3);
    let tuned = ThreadSets { prefill: ThreadSet::anywhere(2), decode: ThreadSet::anywhere(1) };
    world.tuned = Some(tuned.clone());
    assert_eq!(world.by_default().threads, tuned);
    let asked = Asked { threads: Some(2), ..Asked::default() };
    assert_eq!(world.decide(&asked).unwrap().threads, ThreadSets::both(ThreadSet::anywhere(2)));
}

#[test]
fn goals_differ() {
    let mut world = World::new("mate-40-pro", Numbers { layers: 6, ..QWEN3 });
    let rates = [(1, 20.0), (2, 32.0), (3, 33.0), (4, 33.5)];
    world.measured = Some(measured(&world.machine, &rates));
    let of = |goal| world.decide(&Asked { goal, ..Asked::default() }).unwrap();
    let (speed, energy, memory) = (of(Goal::Speed), of(Goal::Energy), of(Goal::Memory));
    assert_eq!((speed.threads.decode.threads, energy.threads.decode.threads), (8, 2));
    assert!(energy.decode.joules_per_token < speed.decode.joules_per_token);
    let bytes = |found: &Decision| found.memory_bytes.unwrap_or(u64::MAX);
    assert!(bytes(&memory) < bytes(&speed));
    assert!(memory.decode.tokens_per_s >= 0.89 * speed.decode.tokens_per_s);
}

#[test]
fn of_two_unequal_gpus_the_small_one_is_not_overfull() {
    // All of it fits, just: both compute in as much memory, which is more of the small one.
    let numbers = Numbers { layers: 56, experts: 172, used: 1, ..QWEN3 };
    let found = World::new("desktop-2gpu-24gb-8gb", numbers).by_default();
    assert_eq!(found.placement.gpu_slots(), 56 * 172);
    for held in &found.placement.holdings {
        assert!(held.bytes() <= held.room_bytes, "{held:?}");
    }
    let parts: f64 = found.devices.iter().map(|device| device.part).sum();
    assert!((parts - 1.0).abs() < 1e-12 && found.devices[1].part < 0.25, "{:?}", found.devices);
}

#[test]
fn terms_add_up_and_text_reads_back() {
    for (name, gib) in
        [(CPU_ONLY, 5.0), ("desktop-24gb-gpu", 40.0), ("laptop-8gb-gpu", 12.0), ("mac-64gb", 20.0)]
    {
        let found = World::new(name, QWEN3).within(gib).unwrap();
        for prediction in [&found.prefill, &found.decode] {
            let sum: f64 = prediction.terms.iter().map(|term| term.seconds).sum();
            assert!((sum / prediction.pass_s - 1.0).abs() < 1e-9, "{name}");
        }
        let text = found.to_json().unwrap();
        same(&Decision::from_json(&text).unwrap(), &found);
    }
}

/// Equal but for the last bit of fractions, which decimal text does not keep.
fn same(read: &Decision, written: &Decision) {
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs();
    assert!(close(read.decode.tokens_per_s, written.decode.tokens_per_s));
    assert!(close(read.prefill.pass_s, written.prefill.pass_s));
    let without = |decision: &Decision| {
        let mut decision = decision.clone();
        for prediction in [&mut decision.prefill, &mut decision.decode] {
            prediction.terms.clear();
            let empty = Prediction { pass_s: 0.0, tokens_per_s: 0.0, ..prediction.clone() };
            *prediction = Prediction {
                disk_busy_s: 0.0,
                disk_bytes_per_token: 0.0,
                memory_bytes_per_token: 0.0,
                hit_rate: 0.0,
                joules_per_token: None,
                ..empty
            };
        }
        decision.devices.iter_mut().for_each(|device| device.part = 0.0);
        decision.expert_costs = None;
        decision
    };
    assert_eq!(without(read), without(written));
}

#[test]
fn foreign_and_changed_text_is_refused() {
    let text = World::new(CPU_ONLY, QWEN3).within(5.0).unwrap().to_json().unwrap();
    let cases = [
        (text.replace("\"motley_plan\": 6", "\"motley_plan\": 1"), "plan version 1"),
        (text.replace("\"chunk_tokens\": 512", "\"chunk_tokens\": 0"), "field `chunk_tokens`"),
        (text.replace("\"room_bytes\": 5", "\"room_bytes\": 1"), "field `room_bytes`"),
        (text.replace("\"blend\"", "\"arc\""), "not a plan: unknown cache policy `arc`"),
        (text.replace("\"goal\"", "\"gaol\""), "not a plan"),
        ("{}".into(), "not a plan"),
        (" ".repeat(1 << 20), "1048576 bytes is too long"),
    ];
    for (text, expected) in cases {
        let error = Decision::from_json(&text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error} is not {expected}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_decision_fits_and_every_prediction_is_a_number(
        at in 0usize..motley_machine::ready_names().count(),
        layers in 1u32..60,
        experts in 1u32..200,
        used in 1u32..9,
        gib in prop::option::of(0.3..200.0f64),
        goal in prop_oneof![Just(Goal::Speed), Just(Goal::Energy), Just(Goal::Memory)],
    ) {
        let name = motley_machine::ready_names().nth(at).unwrap();
        let numbers = Numbers { layers, experts, used: used.min(experts), ..QWEN3 };
        let world = World::new(name, numbers);
        let memory_bytes = gib.map(|gib| (gib * GIB as f64) as u64);
        let asked = Asked { goal, memory_bytes, ..Asked::default() };
        let Ok(found) = world.decide(&asked) else { return Ok(()) };
        let placement = &found.placement;
        for holding in &placement.holdings {
            prop_assert!(holding.bytes() <= holding.room_bytes, "{:?}", holding);
        }
        prop_assert!(found.memory_bytes.unwrap_or(0) <= memory_bytes.unwrap_or(u64::MAX));
        let streams = found.loading == Loading::OnDemand;
        prop_assert_eq!(placement.regime == Regime::BeyondRam, streams);
        let slots = placement.gpu_slots().max(placement.ram_slots());
        prop_assert!(streams || slots >= placement.experts, "everything has a place");
        let dense: u64 = placement.holdings.iter().map(|holding| holding.dense_bytes).sum();
        let budget = &found.budget;
        let apart = placement.dense_on_gpu && placement.has_gpu_memory();
        // The token embedding stays in RAM; where it is the output matrix too, a GPU has it as well.
        let twice = if apart { budget.input_bytes } else { 0 };
        prop_assert_eq!(dense, budget.dense_bytes + twice, "dense weights are placed once");
        for prediction in [&found.prefill, &found.decode] {
            prop_assert!(prediction.tokens_per_s.is_finite() && prediction.tokens_per_s > 0.0);
            prop_assert!((0.0..=1.0).contains(&prediction.hit_rate));
        }
        same(&Decision::from_json(&found.to_json().unwrap()).unwrap(), &found);
    }
}
