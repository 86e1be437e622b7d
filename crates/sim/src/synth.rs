//! Synthetic routing: an endless supply of traces with chosen statistics, the same for the same seed.
//! It imitates how routing repeats, not what experts mean.
//!
//! Each token has a hidden kind, as words have: with p = `recall` that of one of the last 32
//! tokens, else a fresh Zipf draw. Every layer prefers k experts for every kind. A token's k experts
//! in a layer are found in this order, without repetition:
//!
//! ```text
//! each expert of the token before   kept with p = repeat · (1 ± weight_tilt by weight rank)
//! then draw by draw, with p =
//!   layer_correlation               one of those preferred for the token's kind
//!   the rest                        a Zipf draw over the layer's own order of experts
//! ```

use motley_trace::record::{FORMAT_VERSION, Problem};
use motley_trace::{Phase, TraceError, TraceHeader, Visit, VisitSource};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

/// Hidden kinds of tokens; their own frequency is Zipf with exponent 1.
const KINDS: usize = 1024;
/// Tokens whose kind may be recalled.
const RECALL_TOKENS: usize = 32;
/// Draws per slot before the first free expert is taken.
const MAX_DRAWS: usize = 64;
/// Ratio of one weight to the next larger in a token.
const WEIGHT_RATIO: f32 = 0.75;
/// Tokens of a prompt in one pass.
pub const CHUNK_TOKENS: u32 = 512;

/// What the synthetic trace should be like. Shares are in 0..=1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SynthParams {
    /// Name for the header.
    pub model: String,
    pub layers: u16,
    /// Experts per layer.
    pub experts: u16,
    /// Experts per token.
    pub k: u16,
    /// Tokens of the prompt, in passes of [`CHUNK_TOKENS`].
    pub prompt_tokens: u32,
    /// Tokens decoded after it, one per pass.
    pub decode_tokens: u32,
    /// Exponent of the popularity of experts; 0 is uniform.
    pub zipf_skew: f64,
    /// Probability that an expert is used again by the next token on purpose.
    pub repeat: f64,
    /// Share of tokens whose kind is that of a recent token.
    pub recall: f64,
    /// Share of new choices that follow the token's kind in every layer.
    pub layer_correlation: f64,
    /// How much likelier than the mean the heaviest expert is kept, and the lightest less.
    pub weight_tilt: f64,
}

impl SynthParams {
    /// The header of its traces.
    pub fn header(&self) -> TraceHeader {
        TraceHeader {
            version: FORMAT_VERSION,
            model: self.model.clone(),
            layers: self.layers,
            experts: self.experts,
            k: self.k,
        }
    }
}

/// Makes routing visit by visit.
#[derive(Clone, Debug)]
pub struct Synth {
    params: SynthParams,
    header: TraceHeader,
    rng: Pcg64,
    layers: Vec<LayerState>,
    expert_steps: Vec<f64>,
    kind_steps: Vec<f64>,
    /// Kinds of the last tokens, a ring.
    recent_kinds: Vec<usize>,
    drawn_tokens: u32,
    pass: u64,
    /// The visits of the current pass, last layer first.
    ready: Vec<Visit>,
}

#[derive(Clone, Debug)]
struct LayerState {
    /// Experts by popularity, most popular first.
    order: Vec<u16>,
    /// The experts each kind prefers, `(kinds, k)`.
    preferred: Vec<u16>,
    /// Experts of the last token by falling weight.
    last: Vec<u16>,
}

impl Synth {
    /// A generator; the header must be within the limits of the format.
    pub fn new(params: SynthParams, seed: u64) -> Result<Self, Problem> {
        let header = params.header();
        header.check()?;
        let mut rng = Pcg64::seed_from_u64(seed);
        let expert_steps = zipf_steps(usize::from(params.experts), params.zipf_skew);
        let new_layer = |_| LayerState::new(&header, &expert_steps, &mut rng);
        let layers = (0..params.layers).map(new_layer).collect();
        Ok(Self {
            layers,
            header,
            rng,
            expert_steps,
            kind_steps: zipf_steps(KINDS, 1.0),
            recent_kinds: Vec::with_capacity(RECALL_TOKENS),
            drawn_tokens: 0,
            pass: 0,
            ready: Vec::new(),
            params,
        })
    }

    fn make_pass(&mut self) {
        let prompt_left = self.params.prompt_tokens.saturating_sub(self.drawn_tokens);
        let (phase, tokens) = match prompt_left {
            0 => (Phase::Decode, 1),
            left => (Phase::Prefill, left.min(CHUNK_TOKENS)),
        };
        let blank = |layer| Visit { pass: self.pass, layer, phase, ..Visit::default() };
        self.ready = (0..self.params.layers).rev().map(blank).collect();
        for _ in 0..tokens {
            self.make_token();
        }
        self.pass += 1;
    }

    fn draw_kind(&mut self) -> usize {
        let recalls = self.rng.random::<f64>() < self.params.recall;
        let kind = if recalls && !self.recent_kinds.is_empty() {
            self.recent_kinds[self.rng.random_range(0..self.recent_kinds.len())]
        } else {
            draw(&self.kind_steps, &mut self.rng)
        };
        if self.recent_kinds.len() < RECALL_TOKENS {
            self.recent_kinds.push(kind);
        } else {
            self.recent_kinds[self.drawn_tokens as usize % RECALL_TOKENS] = kind;
        }
        kind
    }

    fn make_token(&mut self) {
        let kind = self.draw_kind();
        for (visit, layer) in self.ready.iter_mut().zip(self.layers.iter_mut().rev()) {
            let mut draws = Draws {
                params: &self.params,
                expert_steps: &self.expert_steps,
                kind,
                rng: &mut self.rng,
            };
            draws.choose(layer);
            let row = &layer.last;
            visit.positions.push(self.drawn_tokens);
            visit.experts.extend_from_slice(row);
            push_weights(&mut visit.weights, row.len());
        }
        self.drawn_tokens += 1;
    }
}

impl VisitSource for Synth {
    fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn read_visit(&mut self, visit: &mut Visit) -> Result<bool, TraceError> {
        let total = u64::from(self.params.prompt_tokens) + u64::from(self.params.decode_tokens);
        if self.ready.is_empty() && u64::from(self.drawn_tokens) < total {
            self.make_pass();
        }
        let Some(next) = self.ready.pop() else { return Ok(false) };
        *visit = next;
        Ok(true)
    }
}

impl LayerState {
    fn new(header: &TraceHeader, steps: &[f64], rng: &mut Pcg64) -> Self {
        let mut order: Vec<u16> = (0..header.experts).collect();
        for index in (1..order.len()).rev() {
            order.swap(index, rng.random_range(0..=index));
        }
        let preferred = (0..KINDS * usize::from(header.k)).map(|_| order[draw(steps, rng)]);
        Self { preferred: preferred.collect(), order, last: Vec::new() }
    }
}

/// What the draws of one token and layer need.
struct Draws<'a> {
    params: &'a SynthParams,
    expert_steps: &'a [f64],
    kind: usize,
    rng: &'a mut Pcg64,
}

impl Draws<'_> {
    fn choose(&mut self, layer: &mut LayerState) {
        let k = usize::from(self.params.k);
        let mut row = Vec::with_capacity(k);
        self.keep(layer, &mut row);
        while row.len() < k {
            let drawn = (0..MAX_DRAWS)
                .map(|_| self.draw_one(layer))
                .find(|expert| !row.contains(expert))
                .or_else(|| layer.order.iter().copied().find(|expert| !row.contains(expert)));
            row.extend(drawn);
        }
        // Kept and new experts are equally likely to weigh most.
        for index in (1..row.len()).rev() {
            row.swap(index, self.rng.random_range(0..=index));
        }
        layer.last = row;
    }

    fn keep(&mut self, layer: &LayerState, row: &mut Vec<u16>) {
        let last = &layer.last;
        for (rank, &expert) in last.iter().enumerate() {
            let place = if last.len() < 2 { 0.5 } else { rank as f64 / (last.len() - 1) as f64 };
            let tilt = 1.0 + self.params.weight_tilt * (1.0 - 2.0 * place);
            if self.rng.random::<f64>() < self.params.repeat * tilt {
                row.push(expert);
            }
        }
    }

    fn draw_one(&mut self, layer: &LayerState) -> u16 {
        if self.rng.random::<f64>() < self.params.layer_correlation {
            let k = usize::from(self.params.k);
            return layer.preferred[self.kind * k + self.rng.random_range(0..k)];
        }
        layer.order[draw(self.expert_steps, self.rng)]
    }
}

/// Falling weights that sum to one.
fn push_weights(weights: &mut Vec<f32>, k: usize) {
    let sum: f32 = (0..k as i32).map(|rank| WEIGHT_RATIO.powi(rank)).sum();
    weights.extend((0..k as i32).map(|rank| WEIGHT_RATIO.powi(rank) / sum));
}

/// Cumulative Zipf probabilities of `count` ranks.
fn zipf_steps(count: usize, skew: f64) -> Vec<f64> {
    let mass: Vec<f64> = (1..=count).map(|rank| (rank as f64).powf(-skew)).collect();
    let total: f64 = mass.iter().sum();
    let mut sum = 0.0;
    mass.iter()
        .map(|mass| {
            sum += mass / total;
            sum
        })
        .collect()
}

fn draw(steps: &[f64], rng: &mut Pcg64) -> usize {
    let point = rng.random::<f64>();
    steps.partition_point(|&step| step <= point).min(steps.len() - 1)
}
