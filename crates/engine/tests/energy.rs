//! Joules of sessions and servers on described machines: by meter where the machine has one, by
//! model where a decision knows its draw, and not at all otherwise.

#![allow(clippy::disallowed_methods, reason = "a test may look at the clock")]

use motley_engine::threads::cores::machine_cores;
use motley_engine::{
    EnergyWatch, Engine, EngineOptions, Joules, Runtime, Seam, Session, SessionOptions, ThreadSet,
    ThreadSets,
};
use motley_model::ModelSpec;
use motley_plan::{Asked, Decision, Facts, MachineMemory, ModelNeeds, decide};
use motley_sched::Phase;
use motley_testkit::fixtures::synthetic;
use motley_testkit::machine_tree::Tree;
use motley_testkit::synth::Arch;
use motley_trace::{EnergyRecord, EnergySource};
use std::path::Path;
use std::time::{Duration, Instant};

/// Watts of the phones among the fixtures: 412 mA at 4.012 V.
const PHONE_W: f64 = 0.412 * 4.012;

fn engine(model: &Path) -> (Engine, Session) {
    let threads = ThreadSets::both(ThreadSet::anywhere(1));
    let options = EngineOptions { threads, ..EngineOptions::default() };
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let engine = Engine::load(runtime, model, &options, &mut |_| true).expect("it loads");
    let shape = SessionOptions { context_tokens: 4096, ..SessionOptions::default() };
    let session = engine.session(&shape).expect("room");
    (engine, session)
}

/// A decision for a machine whose processor draws `busy_w`, where that is known.
fn decided(model: &Path, busy_w: Option<f64>) -> Decision {
    let (spec, _) = ModelSpec::open(model).expect("a model");
    let mut machine = motley_machine::find("two-core-24gb").expect("a ready machine");
    machine.devices.iter_mut().for_each(|device| device.busy_w = busy_w);
    let (total_bytes, available_bytes) = (24 << 30, 20 << 30);
    let facts = Facts {
        model: &ModelNeeds::of(&spec),
        machine: &machine,
        measured: None,
        profile: None,
        memory: Some(MachineMemory { total_bytes, available_bytes, ..MachineMemory::default() }),
        gpus: &[],
        cores: &machine_cores(),
        tuned: None,
        layouts: &[],
    };
    decide(&facts, &Asked { threads: Some(1), ..Asked::default() }).expect("it can be done")
}

fn compute(session: &mut Session) {
    session.prefill(&[1, 2, 3, 4]).unwrap();
    (0..4).for_each(|_| session.decode(5).unwrap());
}

/// Puts a counter forward. By renaming: a reader never sees half a number.
fn count(tree: &Tree, package: u32, energy_uj: u64) {
    let counter = format!("sys/class/powercap/intel-rapl:{package}/energy_uj");
    tree.write("next", &energy_uj.to_string());
    std::fs::rename(tree.root().join("next"), tree.root().join(counter)).unwrap();
}

#[test]
fn a_servers_counters_are_divided_into_prompts_and_decoding() {
    let Some(model) = synthetic(Arch::Qwen3moe) else { return };
    let (engine, mut session) = engine(&model);
    let decision = decided(&model, Some(100.0));
    let tree = Tree::fixture("two-socket-server");
    session.energy = EnergyWatch::of(tree.root(), &decision);
    session.prefill(&[1, 2, 3, 4]).unwrap();
    count(&tree, 0, 2_001_000);
    session.decode(5).unwrap();
    count(&tree, 0, 2_501_000);
    count(&tree, 1, 1_002_000);
    session.decode(5).unwrap();
    session.energy.rest();
    // What others use between two answers is not this session's.
    count(&tree, 1, 9_002_000);
    session.decode(5).unwrap();
    session.energy.rest();
    let energy = engine.record(&session).energy.expect("it was measured");
    let EnergyRecord { prefill_joules, decode_joules, joules_per_token, .. } = energy;
    assert_eq!(energy.source, EnergySource::Meter("RAPL package-0, package-1".into()));
    assert!((prefill_joules - 2.0).abs() < 1e-9, "{energy:?}");
    assert!((decode_joules - 1.5).abs() < 1e-9, "{energy:?}");
    assert!((joules_per_token.unwrap() - 0.5).abs() < 1e-9, "{energy:?}");
    assert_eq!(energy.predicted_joules_per_token, decision.decode.joules_per_token);
}

#[test]
fn a_phones_battery_tells_until_it_is_charged() {
    let Some(model) = synthetic(Arch::Qwen3moe) else { return };
    let (engine, mut session) = engine(&model);
    let tree = Tree::fixture("galaxy-a56");
    session.energy = EnergyWatch::by_meters(tree.root(), false);
    let begun = Instant::now();
    compute(&mut session);
    session.energy.rest();
    let most = PHONE_W * begun.elapsed().as_secs_f64();
    let record = engine.record(&session);
    let energy = record.energy.expect("it was measured");
    assert_eq!(energy.source, EnergySource::Meter("battery battery".into()));
    let sum = energy.prefill_joules + energy.decode_joules;
    // Another program may run between the start of a phase's time and that of its energy.
    let least = 0.5 * PHONE_W * (record.prefill.time_s + record.decode.time_s);
    assert!((least..=most).contains(&sum), "{sum} J of {least} to {most}");

    session.decode(5).unwrap();
    tree.write("sys/class/power_supply/battery/status", "Charging\n");
    let plugged_in = Instant::now();
    while plugged_in.elapsed() < Duration::from_millis(200) {
        session.decode(5).unwrap();
    }
    session.energy.rest();
    assert_eq!(engine.record(&session).energy, None, "a part is not shown as the whole");
}

#[test]
fn without_a_meter_the_predicted_draw_counts_or_nothing() {
    let Some(model) = synthetic(Arch::Qwen3moe) else { return };
    let (engine, mut session) = engine(&model);
    let tree = Tree::fixture("small-vm");
    session.energy = EnergyWatch::of(tree.root(), &decided(&model, None));
    compute(&mut session);
    session.energy.rest();
    assert_eq!(engine.record(&session).energy, None, "a draw that nobody stated");

    let decision = decided(&model, Some(100.0));
    session.energy = EnergyWatch::of(tree.root(), &decision);
    let record = engine.record(&session);
    let energy = record.energy.expect("the draw is known");
    assert_eq!(energy.source, EnergySource::Model);
    // Everything is in memory and nothing waits, so it draws what a busy processor does.
    let close = |joules: f64, seconds: f64| (joules / (100.0 * seconds) - 1.0).abs() < 1e-9;
    assert!(close(energy.prefill_joules, record.prefill.time_s), "{energy:?}");
    assert!(close(energy.decode_joules, record.decode.time_s), "{energy:?}");
    assert_eq!(energy.joules_per_token, Some(energy.decode_joules / 4.0));
}

#[test]
fn a_server_counts_by_meter_by_model_or_not() {
    let Some(model) = synthetic(Arch::Qwen3moe) else { return };
    let busy = |phase| Duration::from_secs(if phase == Phase::Decode { 3 } else { 1 });
    let (vm, server) = (Tree::fixture("small-vm"), Tree::fixture("two-socket-server"));
    let unknown = EnergyWatch::of(vm.root(), &decided(&model, None)).count();
    assert_eq!(unknown.joules(&busy), None);
    let decision = decided(&model, Some(100.0));
    match EnergyWatch::of(vm.root(), &decision).count().joules(&busy) {
        Some(Joules::Modelled(joules)) => assert!((joules - 400.0).abs() < 1e-6, "{joules} J"),
        other => panic!("{other:?}"),
    }
    let metered = EnergyWatch::of(server.root(), &decision).count();
    assert_eq!(metered.joules(&busy), Some(Joules::Metered(0.0)), "nothing was used yet");
    count(&server, 0, 3_001_000);
    let begun = Instant::now();
    while metered.joules(&busy) != Some(Joules::Metered(3.0)) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", metered.joules(&busy));
        std::thread::yield_now();
    }
}
