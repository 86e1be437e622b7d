//! Synthetic routing of prompts: popularity that differs by expert and layer, by prompt, and by
//! passage.
//!
//! ```text
//! weight(l, e, prompt, passage) = exp(popularity · N_{l,e} + drift · N_{l,e,prompt} + burst · N_{l,e,passage})
//! ```
//!
//! The `N` are standard normal. Each token draws k experts without repetition by these weights.

use std::ops::Range;

use motley_profile::{Origin, Profile, ProfileBuilder};
use motley_trace::record::FORMAT_VERSION;
use motley_trace::{Phase, TraceHeader, Visit};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::assumed::Assumptions;

/// A model's counts (Table 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// Name.
    pub name: &'static str,
    /// Layers.
    pub layers: u16,
    /// Experts per layer.
    pub experts: u16,
    /// Experts per token.
    pub k: u16,
    /// Weights of one expert.
    pub expert_weights: f64,
}

/// Phi-3.5-MoE: 150 MB an expert at 16 bits.
pub const PHI: Model =
    Model { name: "Phi-3.5-MoE", layers: 32, experts: 16, k: 2, expert_weights: 78.6e6 };
/// Qwen3-30B-A3B.
pub const QWEN: Model =
    Model { name: "Qwen3-30B-A3B", layers: 48, experts: 128, k: 8, expert_weights: 4.72e6 };

/// Tokens of a passage: neighbouring tokens are about the same thing.
const PASSAGE_TOKENS: u32 = 256;
/// Prompts the source calibrates on, and as many others it is tried on.
pub const PROMPTS: u64 = 12;

/// Routing of a model under some assumptions.
pub struct Routing {
    /// The model.
    pub model: Model,
    /// Its routing over the calibration prompts.
    pub profile: Profile,
    open: Assumptions,
}

impl Routing {
    /// Calibrates on [`PROMPTS`] prompts of `tokens` tokens.
    pub fn new(model: Model, open: Assumptions, tokens: u32) -> Self {
        let profile = profile(&model, open, 0..PROMPTS, tokens);
        Self { model, profile, open }
    }

    /// As many prompts that calibration has not seen.
    pub fn unseen(&self, tokens: u32) -> Profile {
        profile(&self.model, self.open, PROMPTS..2 * PROMPTS, tokens)
    }

    /// Loads of each expert in one chunk after the other of such a prompt.
    pub fn chunks(&self, layer: u16, prompt: u64, tokens: u32, chunk: u32) -> Vec<Vec<u32>> {
        let visit = visit(&self.model, self.open, layer, PROMPTS + prompt, tokens);
        let pairs = chunk as usize * usize::from(self.model.k);
        let count = |experts: &[u16]| {
            let mut loads = vec![0; usize::from(self.model.experts)];
            experts.iter().for_each(|expert| loads[usize::from(*expert)] += 1);
            loads
        };
        visit.experts.chunks(pairs).map(count).collect()
    }
}

fn profile(model: &Model, open: Assumptions, prompts: Range<u64>, tokens: u32) -> Profile {
    let mut builder = ProfileBuilder::new(&header(model));
    for prompt in prompts {
        for layer in 0..model.layers {
            builder.observe(&visit(model, open, layer, prompt, tokens));
        }
    }
    builder.finish(Origin::default())
}

fn header(model: &Model) -> TraceHeader {
    TraceHeader {
        version: FORMAT_VERSION,
        model: model.name.into(),
        layers: model.layers,
        experts: model.experts,
        k: model.k,
    }
}

fn visit(model: &Model, open: Assumptions, layer: u16, prompt: u64, tokens: u32) -> Visit {
    let mut popular = Pcg64::seed_from_u64(u64::from(layer));
    let mut drift = Pcg64::seed_from_u64(1_000_003 * (prompt + 1) + u64::from(layer));
    let weight = |_| {
        let lasting = open.popularity * normal(&mut popular);
        (lasting + open.drift * normal(&mut drift)).exp()
    };
    let weights: Vec<f64> = (0..model.experts).map(weight).collect();
    let mut experts = Vec::with_capacity(tokens as usize * usize::from(model.k));
    let mut passage = Vec::new();
    for token in 0..tokens {
        if token % PASSAGE_TOKENS == 0 {
            let burst = |weight: &f64| weight * (open.burst * normal(&mut drift)).exp();
            passage = weights.iter().map(burst).collect();
        }
        let mut left = passage.clone();
        for _ in 0..model.k {
            let expert = draw(&left, &mut drift);
            left[usize::from(expert)] = 0.0;
            experts.push(expert);
        }
    }
    let positions = (0..tokens).collect();
    Visit { pass: prompt, layer, phase: Phase::Prefill, positions, experts, ..Visit::default() }
}

fn draw(weights: &[f64], rng: &mut Pcg64) -> u16 {
    let mut point = rng.random::<f64>() * weights.iter().sum::<f64>();
    let passed = |weight: &f64| {
        point -= weight;
        point <= 0.0 && *weight > 0.0
    };
    let last = weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0);
    weights.iter().position(passed).unwrap_or(last) as u16
}

/// Box and Muller's method.
fn normal(rng: &mut Pcg64) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}
