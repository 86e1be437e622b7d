//! A real model whose experts are shared between disk, the CPU and devices: at no, a quarter, half and
//! all of the experts in memory or on devices, under every strategy, it says what the CPU alone
//! says. A device is ggml's CPU behind the code of a GPU, so bits can be compared.

#[path = "support/order.rs"]
mod order;

use motley_engine::blocks::machine::{DeviceOptions, DeviceRoom};
use motley_engine::{
    Engine, EngineOptions, Generation, GpuDevice, Loading, MachineReport, PrefetchChoice, Runtime,
    Sampling, Seam, SessionOptions, StreamingOptions, ThreadSet, ThreadSets,
};
use motley_model::{KvType, ModelSpec};
use motley_plan::budget::{Budget, SessionShape};
use motley_sched::Named;
use motley_sched::Rules;
use motley_sched::cache::PolicyChoice;
use motley_sched::strategy::StrategyChoice;
use motley_testkit::fixtures::{synthetic, trained};
use motley_testkit::synth::Arch;
use order::first_experts;
use std::ops::ControlFlow;
use std::path::Path;

const SHAPE: SessionOptions = SessionOptions {
    context_tokens: 256,
    chunk_tokens: 64,
    kv: motley_model::KvType::F16,
    windows: false,
    precise_attention: false,
    scores: false,
    speculate: motley_engine::Speculate::Off,
};
/// Tokens compared.
const TOKENS: usize = 64;
/// Experts on the device, of all.
const SHARES: [f64; 4] = [0.0, 0.25, 0.5, 1.0];

/// How one model is run.
#[derive(Clone, Copy)]
struct Way {
    /// Part of the experts in memory, all of them read from disk; `None` when all are in memory.
    in_memory: Option<f64>,
    /// Part of the experts on devices.
    share: f64,
    /// What part of that each device has room for.
    devices: &'static [f64],
    strategy: StrategyChoice,
    prefetch: PrefetchChoice,
    /// Whether the first experts of each layer are known to be used much.
    begins_full: bool,
}

const DEFAULT: Way = Way {
    in_memory: None,
    share: 0.5,
    devices: &[1.0],
    strategy: StrategyChoice::Timelines,
    prefetch: PrefetchChoice::WholeLayer,
    begins_full: false,
};

fn said(path: &Path, way: Option<Way>) -> (Vec<i32>, Option<MachineReport>) {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let (spec, _) = ModelSpec::open(path).expect("a model");
    let shape = SessionShape {
        context_tokens: 256,
        kv: KvType::F16,
        windows: false,
        chunk_tokens: 64,
        output_tokens: 1,
        states: 1,
    };
    let budget = Budget::of(&spec, shape);
    let all = spec.expert_layers().count() as u32 * spec.experts;
    let device = |part: f64| {
        // A seventh more for the rows of a computation.
        let bytes = budget.slot_bytes as f64 * f64::from(all) * 1.2 * part;
        DeviceRoom { device: GpuDevice::cpu(&runtime), budget_bytes: Some(bytes as u64) }
    };
    let rules = |way: Way| Rules::of(way.strategy, PolicyChoice::default(), way.prefetch);
    let devices = way.filter(|way| way.share > 0.0).map(|way| DeviceOptions {
        experts_most: (f64::from(all) * way.share) as u32,
        rules: rules(way),
        most_used: if way.begins_full { first_experts(&spec) } else { Vec::new() },
        ..DeviceOptions::over(way.devices.iter().map(|part| device(part * way.share)).collect())
    });
    let disk = way.and_then(|way| Some((way, way.in_memory?)));
    let slots = |(_, part): (Way, f64)| (f64::from(all) * part) as u32;
    let memory_bytes = disk.map(slots).map(|slots| match slots {
        0 => budget.smallest_bytes(),
        slots => budget.bytes_with(slots).max(budget.smallest_bytes()),
    });
    let options = EngineOptions {
        loading: if disk.is_some() { Loading::OnDemand } else { Loading::Mapped },
        memory_bytes,
        streaming: StreamingOptions {
            rules: rules(way.unwrap_or(DEFAULT)),
            ..StreamingOptions::default()
        },
        repack: false,
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        devices,
        ..EngineOptions::default()
    };
    let engine = Engine::load(runtime, path, &options, &mut |_| true).expect("the model loads");
    let mut session = engine.session(&SHAPE).expect("a session");
    let generation = Generation {
        sampling: Sampling { temperature: 0.0, ..Sampling::default() },
        max_tokens: TOKENS,
        ignore_end: true,
    };
    let prompt: Vec<i32> = (100..140).collect();
    let mut tokens = Vec::new();
    let mut keep = |token| {
        tokens.push(token);
        ControlFlow::Continue(())
    };
    session.generate(&prompt, &generation, &mut keep).expect("an answer");
    (tokens, engine.devices().map(|handle| handle.report()))
}

/// Says what the CPU says, with every pair computed once and nothing copied unused.
fn check(path: &Path, way: Way, expected: &[i32]) -> Option<MachineReport> {
    let (tokens, report) = said(path, Some(way));
    let memory = way.in_memory.unwrap_or(1.0);
    let (share, strategy) = (way.share, way.strategy.name());
    let what = format!("{} {memory} {share} {:?} {strategy}", path.display(), way.devices);
    assert_eq!(tokens, expected, "{what}");
    let report = report?;
    let figures = report.figures;
    assert_eq!((report.refused, report.refused_reason.clone()), (0, None), "{what}");
    assert_eq!(figures.device_pairs + figures.cpu_pairs, figures.routed_pairs, "{what}");
    assert!(figures.routed_pairs > TOKENS as u64, "{what}");
    assert_eq!(figures.counts.failed_loads, 0, "{what}");
    assert_eq!(figures.demanded_unused, 0, "{what}");
    Some(report)
}

#[test]
fn every_strategy_says_the_same_at_every_share() {
    let Some(path) = synthetic(Arch::Qwen3moe) else { return };
    let (expected, _) = said(&path, None);
    assert_eq!(expected.len(), TOKENS);
    for &strategy in StrategyChoice::ALL {
        for share in SHARES.into_iter().filter(|&share| share > 0.0) {
            check(&path, Way { share, strategy, ..DEFAULT }, &expected);
        }
    }
}

/// A split by layers begins with its layers and copies nothing afterwards; a known favourite is
/// there from the start.
#[test]
fn devices_begin_with_what_they_are_given() {
    let Some(path) = synthetic(Arch::Qwen3moe) else { return };
    let (expected, _) = said(&path, None);
    let split =
        Way { strategy: StrategyChoice::LayerSplit, prefetch: PrefetchChoice::None, ..DEFAULT };
    let figures = check(&path, split, &expected).expect("a device").figures;
    assert!(figures.device_pairs > 0 && figures.cpu_pairs > 0, "{figures:?}");
    assert_eq!((figures.demanded_copies, figures.guessed_copies), (0, 0), "{figures:?}");
    let miss =
        Way { strategy: StrategyChoice::CpuOnMiss, prefetch: PrefetchChoice::None, ..DEFAULT };
    let empty = check(&path, miss, &expected).expect("a device").figures;
    let given =
        check(&path, Way { begins_full: true, ..miss }, &expected).expect("a device").figures;
    assert!(given.device_pairs > empty.device_pairs, "{given:?} {empty:?}");
}

#[test]
fn every_architecture_says_the_same_at_every_share() {
    for &arch in Arch::ALL {
        let Some(path) = synthetic(arch) else { return };
        let (expected, _) = said(&path, None);
        for share in SHARES {
            check(&path, Way { share, ..DEFAULT }, &expected);
        }
    }
}

/// Experts divide among devices of different size; the trained model's are quantised differently.
#[test]
fn several_devices_say_the_same_at_every_share() {
    let models = [Arch::Qwen3moe, Arch::GptOss].into_iter().filter_map(synthetic);
    for path in models.chain(trained("q4_k_m")) {
        let (expected, _) = said(&path, None);
        for devices in [&[0.7, 0.3][..], &[0.2, 0.5, 0.3], &[0.0, 1.0]] {
            for share in SHARES.into_iter().filter(|&share| share > 0.0) {
                let report = check(&path, Way { share, devices, ..DEFAULT }, &expected);
                let report = report.expect("devices");
                assert!(share < 1.0 || report.figures.device_pairs > 0, "{report:?}");
            }
        }
    }
}

#[test]
fn the_trained_model_says_the_same_and_uses_the_device() {
    let Some(path) = trained("q4_k_m") else { return };
    let (expected, _) = said(&path, None);
    for share in SHARES {
        let prefetch = PrefetchChoice::NextLayerRefill;
        let report = check(&path, Way { share, prefetch, ..DEFAULT }, &expected);
        if let Some(report) = report {
            let figures = report.figures;
            assert!(figures.device_pairs > 0 && figures.launches > 0, "{figures:?}");
        }
    }
}

/// Experts on disk, some of them in memory, some on devices, all units computing: every
/// architecture and the trained model.
#[test]
fn disk_memory_and_devices_say_the_same_at_every_share() {
    let models = Arch::ALL.iter().copied().filter_map(synthetic);
    for path in models.chain(trained("q4_k_m")) {
        let (expected, _) = said(&path, None);
        for (in_memory, share) in [(0.0, 0.25), (0.25, 0.25), (0.5, 0.5), (1.0, 0.5), (0.25, 1.0)] {
            let prefetch = PrefetchChoice::NextLayerRefill;
            for devices in [&[1.0][..], &[0.6, 0.4]] {
                let way = Way { in_memory: Some(in_memory), share, devices, prefetch, ..DEFAULT };
                let report = check(&path, way, &expected).expect("devices");
                assert!(report.figures.cpu_pairs > 0, "{report:?}");
            }
        }
    }
}

/// The same under every strategy. What is on a device is computed there, but by those that are for
/// machines with one tier and leave the others alone.
#[test]
fn every_strategy_says_the_same_over_disk_memory_and_a_device() {
    let Some(path) = synthetic(Arch::Qwen3moe) else { return };
    let (expected, _) = said(&path, None);
    for &strategy in StrategyChoice::ALL {
        for begins_full in [false, true] {
            let in_memory = Some(0.25);
            let way = Way { in_memory, share: 0.5, strategy, begins_full, ..DEFAULT };
            let figures = check(&path, way, &expected).expect("a device").figures;
            let one_tier = matches!(strategy, StrategyChoice::Balanced | StrategyChoice::Monde);
            let used = figures.device_pairs > 0;
            assert!(used || one_tier || !begins_full, "{} {figures:?}", strategy.name());
        }
    }
}
