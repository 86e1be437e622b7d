//! A real GPU beside the CPU, through `Engine` and `Session`: at no, a quarter, half and all of
//! the experts on it, under every strategy, with dense weights there or not. CI runs this on
//! lavapipe; without a GPU the tests are skipped.
//!
//! Both runs get the same tokens, the likeliest on the CPU alone; compared are the logits before
//! each, and whether both would say the same next. With floats they do: the text is the same. Where
//! weights are quantised, ggml's CPU kernels round activations to eight bits and Vulkan's do not:
//! the same weights as floats show which of the two is further off.

mod models;
#[path = "../support/order.rs"]
mod order;
mod run;
#[path = "../support/mod.rs"]
mod support;

use models::{Floats, Subject};
use motley_engine::{GpuDevice, PrefetchChoice, Runtime, Seam, gpu_devices};
use motley_sched::Named;
use motley_sched::strategy::StrategyChoice;
use motley_testkit::fixtures::{synthetic, trained, upcycled};
use motley_testkit::synth::Arch;
use run::{Apart, Course, Usage, Way, beside};
use std::path::PathBuf;

/// Tokens compared.
const TOKENS: usize = 64;
/// The same where dense work runs on the device: on lavapipe that takes long.
const FEWER_TOKENS: usize = 24;
/// Experts on the device, of all.
const SHARES: [f64; 4] = [0.0, 0.25, 0.5, 1.0];

/// How far two runs may be apart.
struct Near {
    /// Distance of logits before the median token.
    median: f64,
    /// Before any token that was routed alike; it still sees those before it that were not.
    worst: f64,
    /// Tokens routed otherwise.
    rerouted: usize,
    /// What the CPU may have preferred its token by, where the other would not say it.
    tie: f64,
}

/// Where no kernel rounds to eight bits: Vulkan's matrix kernels multiply in 16 bits.
const FLOATS: Near = Near { median: 1e-3, worst: 1e-2, rerouted: 1, tie: 1e-3 };
/// Where the CPU rounds activations beside quantised weights: half a percent each time.
const ROUNDED: Near = Near { median: 1.5e-2, worst: 5e-2, rerouted: 20, tie: 5e-2 };
/// The same over 30 layers of a model whose experts all compute the same: any router may choose
/// otherwise.
const ADDED_UP: Near = Near { median: 1e-1, worst: 1e-1, rerouted: TOKENS, tie: 0.0 };
/// How many times nearer to floats than the CPU quantised experts on the device are.
const NEARER: f64 = 5.0;

/// The GPUs of this machine and build; CI's vulkan step requires some.
fn gpus() -> Vec<GpuDevice> {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let found = gpu_devices(&runtime);
    let required = std::env::var_os("MOTLEY_REQUIRE_GPU").is_some();
    assert!(!required || !found.is_empty(), "no GPU (GGML_VK_VISIBLE_DEVICES=0 for lavapipe)");
    if found.is_empty() {
        eprintln!("passing over: no GPU in this build or machine");
    }
    found
}

/// One GPU.
fn gpu() -> Option<[GpuDevice; 1]> {
    gpus().into_iter().next().map(|gpu| [gpu])
}

/// Runs `subject` beside the device: near the CPU, and every pair computed once.
fn check(subject: &Subject, way: Way<'_>, near: &Near) -> (Course, Apart) {
    let found = beside(&subject.path, way, &subject.cpu.tokens);
    let what = format!("{} {way}", subject.name);
    let apart = Apart::of(&subject.cpu, &found);
    eprintln!("{what}: {apart}");
    counts_are_right(&found, way, &what);
    assert!(apart.median <= near.median, "{what}: {apart}");
    // Where llama.cpp has the experts nobody sees the routing.
    if way.usage != Usage::Everything {
        assert!(apart.worst <= near.worst && apart.rerouted <= near.rerouted, "{what}: {apart}");
        assert!(apart.preferred <= near.tie, "{what}: {apart}");
    }
    (found, apart)
}

/// Every pair computed once: as many as came through the seam, and the logits are right. Nothing
/// copied that a block asked for and nobody computed from.
fn counts_are_right(found: &Course, way: Way<'_>, what: &str) {
    assert_eq!(found.delegated, 0, "{what}");
    if let Usage::Everything | Usage::DenseBesideDisk = way.usage {
        let expected = (way.usage == Usage::Everything, true);
        assert_eq!((found.blocks == 0, found.report.is_none()), expected, "{what}");
        return;
    }
    let report = found.report.as_ref().expect("a device");
    let figures = report.figures;
    assert_eq!((report.refused, &report.refused_reason), (0, &None), "{what}");
    assert!(found.rows > found.tokens.len() as u64, "{what}");
    assert_eq!((figures.blocks, figures.routed_pairs), (found.blocks, found.rows), "{what}");
    assert_eq!(figures.device_pairs + figures.cpu_pairs, found.rows, "{what}");
    assert_eq!((figures.demanded_unused, figures.counts.failed_loads), (0, 0), "{what}");
    if way.prefetch == PrefetchChoice::None {
        assert_eq!(figures.guessed_copies, 0, "{what}");
    }
}

/// Near the CPU, and the same text: no kernel rounds to eight bits. One token may differ where the
/// CPU had a tie ([`FLOATS`]).
fn says_the_same(floats: &Subject, way: Way<'_>) -> Course {
    let (course, apart) = check(floats, way, &FLOATS);
    assert!(apart.equal + 1 >= course.tokens.len(), "{} {way}: {apart}", floats.name);
    course
}

/// Bookkeeping: with floats an expert too many or too few would show.
#[test]
fn every_architecture_at_every_share() {
    let Some(gpu) = gpu() else { return };
    for path in every_model() {
        let floats = Subject::as_floats(&path, TOKENS);
        for share in SHARES {
            says_the_same(&floats, Way::default_on(&gpu, Usage::Experts(share)));
        }
    }
}

/// Without guesses: no expert is copied but those computed from. Each strategy for some models at
/// one share, another for each; for all models at all of them where `MOTLEY_EVERY_SHARE` is set.
#[test]
fn models_under_every_strategy() {
    let Some(gpu) = gpu() else { return };
    let models: Vec<_> =
        if every_share() { every_model().collect() } else { some_models().collect() };
    for (first, path) in models.iter().enumerate() {
        let floats = Subject::as_floats(path, TOKENS);
        for (nth, strategy) in StrategyChoice::ALL.iter().copied().enumerate() {
            let shares = if every_share() { SHARES.len() } else { 1 };
            for share in (0..shares).map(|share| SHARES[(first + nth + share) % SHARES.len()]) {
                let default = Way::default_on(&gpu, Usage::Experts(share));
                let prefetch = PrefetchChoice::None;
                let way = Way { strategy, prefetch, begins_full: true, ..default };
                let report = says_the_same(&floats, way).report.expect("a device");
                assert!(share < 1.0 || report.figures.device_pairs > 0, "{way}: {report:?}");
            }
        }
    }
}

fn every_share() -> bool {
    std::env::var_os("MOTLEY_EVERY_SHARE").is_some()
}

#[test]
fn every_architecture_with_quantised_weights() {
    let Some(gpu) = gpu() else { return };
    for path in every_model().chain(trained("f16")) {
        let subject = Subject::new(&path, TOKENS);
        check(&subject, Way::default_on(&gpu, Usage::Experts(0.5)), &ROUNDED);
    }
}

/// Each has some layers; dense weights divide too.
#[test]
fn several_devices_divide_the_layers() {
    let gpus = gpus();
    if gpus.len() < 2 {
        eprintln!("passing over: fewer than two GPUs (GGML_VK_VISIBLE_DEVICES=0,0 for lavapipe)");
        return;
    }
    for path in some_models() {
        let floats = Subject::as_floats(&path, FEWER_TOKENS);
        for usage in [Usage::Experts(0.5), Usage::DenseAndExperts(0.5), Usage::Everything] {
            says_the_same(&floats, Way::default_on(&gpus, usage));
        }
    }
}

/// A trained model of 30 layers. Rounding adds up over them, so its logits are further apart; it is
/// sure enough of its text to say the same. On lavapipe a run takes a minute and more: one of them,
/// and where `MOTLEY_EVERY_SHARE` is set every share and every strategy.
#[test]
fn a_larger_model_says_the_same() {
    let (Some(gpu), Some(path)) = (gpu(), upcycled(8, 2)) else { return };
    let every = every_share();
    let subject = Subject::new(&path, if every { TOKENS } else { FEWER_TOKENS });
    let at = |share| Way::default_on(&gpu, Usage::Experts(share));
    let mut ways = vec![at(0.5)];
    if every {
        ways.extend([0.0, 0.25, 1.0].map(at));
        let strategies = StrategyChoice::ALL.iter().copied();
        let prefetch = PrefetchChoice::None;
        let begins_full = true;
        ways.extend(strategies.map(|strategy| Way { strategy, prefetch, begins_full, ..at(0.5) }));
    }
    for way in ways {
        let (_, apart) = check(&subject, way, &ADDED_UP);
        assert_eq!(apart.equal_text, subject.cpu.tokens.len(), "{way}: {apart}");
    }
}

/// With floats around them, quantised experts on the device are as good as floats; beside them
/// the CPU is many times further off.
#[test]
fn it_is_the_cpu_that_rounds() {
    let Some(gpu) = gpu() else { return };
    for path in some_models() {
        let floats = Floats::of(&path, FEWER_TOKENS);
        let default = Way::default_on(&gpu, Usage::Experts(1.0));
        let prefetch = PrefetchChoice::None;
        let way = Way { strategy: StrategyChoice::OnDemand, prefetch, ..default };
        let (found, _) = check(&floats.quantised_experts, way, &ROUNDED);
        let figures = found.report.as_ref().expect("a device").figures;
        assert_eq!((figures.device_pairs, figures.cpu_pairs), (found.rows, 0));
        let device = Apart::of(&floats.all.cpu, &found);
        eprintln!("  from floats: the device {device}; the CPU {}", floats.rounding);
        assert!(device.median <= FLOATS.median, "{device}");
        assert!(device.median * NEARER <= floats.rounding.median, "{device}; {}", floats.rounding);
    }
}

/// llama.cpp's own kernels for attention and all else on the device, the experts shared: their
/// blocks still come through the seam.
#[test]
fn dense_weights_on_the_device_too() {
    let Some(gpu) = gpu() else { return };
    for path in some_models() {
        let way = Way::default_on(&gpu, Usage::DenseAndExperts(0.5));
        says_the_same(&Subject::as_floats(&path, FEWER_TOKENS), way);
        check(&Subject::new(&path, FEWER_TOKENS), way, &ROUNDED);
    }
}

/// The experts come from disk through the CPU's memory, the rest is on the device.
#[test]
fn dense_weights_on_the_device_beside_experts_on_disk() {
    let Some(gpu) = gpu() else { return };
    for path in some_models() {
        let way = Way::default_on(&gpu, Usage::DenseBesideDisk);
        says_the_same(&Subject::as_floats(&path, FEWER_TOKENS), way);
    }
}

/// Experts on disk, some in memory, some on the device, all units computing.
#[test]
fn experts_on_disk_in_memory_and_on_the_device() {
    let Some(gpu) = gpu() else { return };
    for path in some_models() {
        for begins_full in [false, true] {
            let usage = Usage::AllBesideDisk(0.25);
            let prefetch = PrefetchChoice::NextLayerRefill;
            let way = Way { prefetch, begins_full, ..Way::default_on(&gpu, usage) };
            let course = says_the_same(&Subject::as_floats(&path, FEWER_TOKENS), way);
            let figures = course.report.expect("a device").figures;
            assert!(figures.device_pairs > 0 && figures.cpu_pairs > 0, "{figures:?}");
        }
    }
}

/// All of it there: Motley steps aside, no block comes.
#[test]
fn everything_on_the_device() {
    let Some(gpu) = gpu() else { return };
    for path in some_models() {
        let way = Way::default_on(&gpu, Usage::Everything);
        says_the_same(&Subject::as_floats(&path, FEWER_TOKENS), way);
        check(&Subject::new(&path, FEWER_TOKENS), way, &ROUNDED);
    }
}

/// Every test architecture and a trained model; those that are there.
fn every_model() -> impl Iterator<Item = PathBuf> {
    Arch::ALL.iter().copied().filter_map(synthetic).chain(trained("q4_k_m"))
}

/// Plain experts, biased and clamped ones, and a trained model; those that are there.
fn some_models() -> impl Iterator<Item = PathBuf> {
    let made = [Arch::Qwen3moe, Arch::GptOss].into_iter().filter_map(synthetic);
    made.chain(trained("q4_k_m"))
}
