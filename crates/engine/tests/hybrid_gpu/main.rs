//! A real GPU beside the CPU, through `Engine` and `Session`: at no, a quarter, half and all of
//! the experts on it, under every strategy, with dense weights there or not. CI runs this on
//! lavapipe; without a GPU the tests pass over.
//!
//! A GPU's kernels have other last bits, so text is not compared with text. Both runs get the same
//! tokens, those the CPU alone says; compared are the logits before each, and whether both would
//! say the same next. Where weights are quantised, ggml's CPU kernels round activations to eight
//! bits and Vulkan's do not: the same weights as floats show which of the two is further off.

mod models;
mod run;
#[path = "../support/mod.rs"]
mod support;

use models::{Floats, Subject};
use motley_engine::{GpuDevice, PrefetchChoice, Runtime, Seam, gpu_devices};
use motley_sched::strategy::StrategyChoice;
use run::{Apart, Course, Usage, Way, beside};
use std::path::PathBuf;
use xtask::fixtures::{synthetic, trained, upcycled};
use xtask::synth::Arch;

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
    /// Before any token that was routed alike.
    worst: f64,
    /// Tokens routed otherwise.
    rerouted: usize,
    /// What the CPU may have preferred its token by, where the other would not say it.
    tie: f64,
}

/// Where no kernel rounds to eight bits: Vulkan's matrix kernels multiply in 16 bits.
const FLOATS: Near = Near { median: 1e-3, worst: 3e-3, rerouted: 1, tie: 5e-3 };
/// Where the CPU rounds activations beside quantised weights: half a percent each time.
const ROUNDED: Near = Near { median: 1.2e-2, worst: 2e-2, rerouted: 8, tie: 5e-2 };
/// How many times nearer to floats than the CPU quantised experts on the device are.
const NEARER: f64 = 5.0;

/// The first GPU of this machine and build; CI's vulkan step requires one.
fn gpu() -> Option<GpuDevice> {
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let found = gpu_devices(&runtime).into_iter().next();
    let required = std::env::var_os("MOTLEY_REQUIRE_GPU").is_some();
    assert!(!required || found.is_some(), "no GPU (GGML_VK_VISIBLE_DEVICES=0 for lavapipe)");
    if found.is_none() {
        eprintln!("passing over: no GPU in this build or machine");
    }
    found
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
    if way.usage == Usage::Everything {
        assert_eq!((found.blocks, found.report.is_none()), (0, true), "{what}");
        return;
    }
    let report = found.report.as_ref().expect("a device");
    let figures = report.figures;
    assert_eq!((report.refused, &report.refused_reason), (0, &None), "{what}");
    assert!(found.rows > found.tokens.len() as u64, "{what}");
    assert_eq!((figures.blocks, figures.routed_pairs), (found.blocks, found.rows), "{what}");
    assert_eq!(figures.fast_pairs + figures.home_pairs, found.rows, "{what}");
    assert_eq!((figures.demanded_unused, figures.counts.failed_loads), (0, 0), "{what}");
    if way.prefetch == PrefetchChoice::None {
        assert_eq!(figures.guessed_copies, 0, "{what}");
    }
}

#[test]
fn every_architecture_at_every_share() {
    let Some(gpu) = gpu() else { return };
    for &arch in Arch::ALL {
        let Some(path) = synthetic(arch) else { return };
        let subject = Subject::new(&path, TOKENS);
        for share in SHARES {
            check(&subject, Way::usual(&gpu, Usage::Experts(share)), &ROUNDED);
        }
    }
}

/// Without guesses: no expert is copied but those computed from. Each strategy at one share,
/// another for each architecture; at all of them where `MOTLEY_EVERY_SHARE` is set.
fn every_strategy(subject: &Subject, gpu: &GpuDevice, first_share: usize) {
    for (nth, strategy) in StrategyChoice::ALL.into_iter().enumerate() {
        let shares = if every_share() { SHARES.len() } else { 1 };
        for share in (0..shares).map(|share| SHARES[(first_share + nth + share) % SHARES.len()]) {
            let usual = Way::usual(gpu, Usage::Experts(share));
            let way = Way { strategy, prefetch: PrefetchChoice::None, ..usual };
            check(subject, way, &ROUNDED);
        }
    }
}

fn every_share() -> bool {
    std::env::var_os("MOTLEY_EVERY_SHARE").is_some()
}

#[test]
fn every_architecture_under_every_strategy() {
    let Some(gpu) = gpu() else { return };
    for (nth, &arch) in Arch::ALL.iter().enumerate() {
        let Some(path) = synthetic(arch) else { return };
        every_strategy(&Subject::new(&path, TOKENS), &gpu, nth);
    }
}

#[test]
fn trained_models_under_every_strategy() {
    let Some(gpu) = gpu() else { return };
    for (nth, kind) in ["q4_k_m", "f16"].into_iter().enumerate() {
        let Some(path) = trained(kind) else { return };
        every_strategy(&Subject::new(&path, TOKENS), &gpu, nth);
    }
}

/// A trained model of 30 layers, whose experts are more than one tensor of the device may hold.
/// Takes minutes on lavapipe: only where `MOTLEY_EVERY_SHARE` is set.
#[test]
fn a_larger_model_with_half_of_its_experts() {
    if !every_share() {
        eprintln!("passing over: MOTLEY_EVERY_SHARE is not set");
        return;
    }
    let (Some(gpu), Some(path)) = (gpu(), upcycled()) else { return };
    let subject = Subject::new(&path, FEWER_TOKENS);
    let (_, apart) = check(&subject, Way::usual(&gpu, Usage::Experts(0.5)), &ROUNDED);
    assert_eq!(apart.equal_text, FEWER_TOKENS, "{apart}");
}

/// With floats around them, quantised experts on the device are as good as floats; beside them
/// the CPU is many times further off.
#[test]
fn it_is_the_cpu_that_rounds() {
    let Some(gpu) = gpu() else { return };
    for path in some_models() {
        let floats = Floats::of(&path, FEWER_TOKENS);
        let usual = Way::usual(&gpu, Usage::Experts(1.0));
        let way = Way { strategy: StrategyChoice::OnDemand, ..usual };
        let (found, _) = check(&floats.quantised_experts, way, &ROUNDED);
        let figures = found.report.as_ref().expect("a device").figures;
        assert_eq!((figures.fast_pairs, figures.home_pairs), (found.rows, 0));
        let device = Apart::of(&floats.all.cpu, &found);
        eprintln!("  from floats: the device {device}; the CPU {}", floats.rounding);
        assert!(device.median <= FLOATS.median, "{device}");
        assert!(device.median * NEARER <= floats.rounding.median, "{device}; {}", floats.rounding);
    }
}

/// Floats alone: the device says what the CPU says, whatever it is used for.
#[test]
fn floats_say_the_same() {
    let Some(gpu) = gpu() else { return };
    for path in some_models() {
        let floats = Floats::of(&path, FEWER_TOKENS);
        for usage in [Usage::Experts(0.5), Usage::DenseAndExperts(0.5), Usage::Everything] {
            check(&floats.all, Way::usual(&gpu, usage), &FLOATS);
        }
    }
}

/// llama.cpp's own kernels for attention and all else on the device, the experts shared: their
/// blocks still come through the seam. Or all of it there: Motley steps aside, no block comes.
#[test]
fn dense_weights_on_the_device_too() {
    let Some(gpu) = gpu() else { return };
    for path in some_models() {
        let subject = Subject::new(&path, FEWER_TOKENS);
        for usage in [Usage::DenseAndExperts(0.5), Usage::Everything] {
            check(&subject, Way::usual(&gpu, usage), &ROUNDED);
        }
    }
}

/// Plain experts, biased and clamped ones, and a trained model; those that are there.
fn some_models() -> impl Iterator<Item = PathBuf> {
    let made = [Arch::Qwen3moe, Arch::GptOss].into_iter().filter_map(synthetic);
    made.chain(trained("q4_k_m"))
}
