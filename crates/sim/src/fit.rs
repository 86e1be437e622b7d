//! Fits synthetic routing to a recorded trace, and says how well it succeeded.
//!
//! Fitted are four statistics of the summary; the hit rates of LRU are *not* fitted, so they tell
//! whether the model of routing holds where it matters.

use motley_sched::cache::{Capacity, ExpertCache, PolicyChoice};
use motley_trace::record::Problem;
use motley_trace::{Phase, Summary, Trace, Visit};
use serde::{Deserialize, Serialize};

use crate::replay::replay;
use crate::synth::{Synth, SynthParams};

/// Window whose working set is fitted, in tokens; one of `motley_trace::summary::WINDOWS`.
const WINDOW_TOKENS: u32 = 32;
/// Rounds of the search; each halves the steps.
const ROUNDS: i32 = 5;
/// Sweeps over all parameters in one round, at most.
const MAX_SWEEPS: usize = 4;
/// Synthetic traces whose statistics are averaged: one alone depends much on its few frequent kinds.
const TRIALS: u64 = 3;

/// The statistics of a trace that fitting looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// Mean over layers of max / mean popularity (N1). Fitted.
    pub imbalance: f64,
    /// Share of experts the next token uses again. Fitted.
    pub token_reuse: f64,
    /// Distinct experts of a layer in 32 tokens. Fitted.
    pub working_set: f64,
    /// Share guessed from the layer before, less the share guessed by popularity. Fitted.
    pub layer_lift: f64,
    /// LRU hit rate of decoding with 25 % of each layer's experts. Not fitted.
    pub lru_hits_25: f64,
    /// The same with 50 %. Not fitted.
    pub lru_hits_50: f64,
}

impl Statistics {
    /// Of one trace.
    pub fn of(trace: &Trace) -> Self {
        Self {
            lru_hits_25: lru_hits(trace, 0.25),
            lru_hits_50: lru_hits(trace, 0.5),
            ..Self::fitted(trace)
        }
    }

    fn fitted(trace: &Trace) -> Self {
        let mut builder = motley_trace::SummaryBuilder::new(&trace.header);
        trace.visits.iter().for_each(|visit| builder.observe(visit));
        let summary = builder.finish();
        Self {
            imbalance: summary.mean_imbalance(),
            token_reuse: summary.token_reuse,
            working_set: working_set(&summary),
            layer_lift: summary.guessed_by_layer_before - summary.guessed_by_popularity,
            lru_hits_25: 0.0,
            lru_hits_50: 0.0,
        }
    }

    fn add(&mut self, other: &Self, share: f64) {
        self.imbalance += share * other.imbalance;
        self.token_reuse += share * other.token_reuse;
        self.working_set += share * other.working_set;
        self.layer_lift += share * other.layer_lift;
        self.lru_hits_25 += share * other.lru_hits_25;
        self.lru_hits_50 += share * other.lru_hits_50;
    }

    /// Sum of squared relative differences of what is fitted.
    fn distance(&self, other: &Self) -> f64 {
        let pairs = [
            (self.imbalance, other.imbalance),
            (self.token_reuse, other.token_reuse),
            (self.working_set, other.working_set),
            (self.layer_lift, other.layer_lift),
        ];
        pairs.iter().map(|(a, b)| ((a - b) / a.abs().max(0.05)).powi(2)).sum()
    }
}

fn working_set(summary: &Summary) -> f64 {
    let window = summary.working_sets.iter().find(|set| set.tokens == WINDOW_TOKENS);
    window.map_or(0.0, |set| set.experts)
}

fn lru_hits(trace: &Trace, share: f64) -> f64 {
    let capacity = Capacity::per_layer_share(trace.header.grid(), share);
    let policy = PolicyChoice::Lru.build(&trace.header);
    let mut cache = ExpertCache::new(trace.header.grid(), capacity, policy);
    replay(&mut trace.source(), &mut cache, 0).map_or(0.0, |counts| counts.decode.rate())
}

/// The parameters found, and both sides' statistics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    pub params: SynthParams,
    /// Statistics of the recorded trace.
    pub recorded: Statistics,
    /// Mean statistics of traces of the same length, from other seeds than the search's.
    pub synthetic: Statistics,
}

/// Searches the parameters whose synthetic traces, of the recorded length, come closest to `trace`.
///
/// A pattern search from the best of a coarse grid: every parameter is moved up and down by a step
/// and kept where that helps, until nothing does; then the step is halved. All trials share their
/// seeds, so they differ by parameters only.
pub fn fit(trace: &Trace, seed: u64) -> Result<Fit, Problem> {
    let target = Statistics::fitted(trace);
    let mut search = Search { target, seed, best: first_guess(trace), distance: f64::INFINITY };
    search.try_grid()?;
    for round in 0..ROUNDS {
        let step = 0.5_f64.powi(round);
        for _ in 0..MAX_SWEEPS {
            if !search.sweep(step)? {
                break;
            }
        }
    }
    let synthetic = averaged(&search.best, seed.wrapping_add(TRIALS), Statistics::of)?;
    Ok(Fit { params: search.best, recorded: Statistics::of(trace), synthetic })
}

struct Search {
    target: Statistics,
    seed: u64,
    best: SynthParams,
    distance: f64,
}

impl Search {
    fn try_grid(&mut self) -> Result<(), Problem> {
        let repeats = [0.2, 0.7].map(|share| share * self.target.token_reuse);
        for zipf_skew in [0.4, 0.7, 1.0] {
            for layer_correlation in [0.5, 0.9] {
                for recall in [0.3, 0.7] {
                    for repeat in repeats {
                        let knobs = [zipf_skew, repeat, recall, layer_correlation];
                        self.consider(with_knobs(&self.best, knobs))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Moves every parameter once up and once down; whether that helped.
    fn sweep(&mut self, step: f64) -> Result<bool, Problem> {
        let mut helped = false;
        for knob in KNOBS {
            for direction in [step, -step] {
                let mut params = self.best.clone();
                let value = (knob.get)(&mut params);
                *value = (*value + direction * knob.step).clamp(0.0, knob.max);
                helped |= self.consider(params)?;
            }
        }
        Ok(helped)
    }

    fn consider(&mut self, params: SynthParams) -> Result<bool, Problem> {
        let synthetic = averaged(&params, self.seed, Statistics::fitted)?;
        let distance = self.target.distance(&synthetic);
        let better = distance < self.distance;
        if better {
            (self.best, self.distance) = (params, distance);
        }
        Ok(better)
    }
}

/// One parameter of the search.
struct Knob {
    get: fn(&mut SynthParams) -> &mut f64,
    step: f64,
    max: f64,
}

const KNOBS: [Knob; 4] = [
    Knob { get: |params| &mut params.zipf_skew, step: 0.4, max: 3.0 },
    Knob { get: |params| &mut params.repeat, step: 0.2, max: 1.0 },
    Knob { get: |params| &mut params.recall, step: 0.3, max: 1.0 },
    Knob { get: |params| &mut params.layer_correlation, step: 0.3, max: 1.0 },
];

fn with_knobs(params: &SynthParams, values: [f64; KNOBS.len()]) -> SynthParams {
    let mut params = params.clone();
    for (knob, value) in KNOBS.iter().zip(values) {
        *(knob.get)(&mut params) = value;
    }
    params
}

fn first_guess(trace: &Trace) -> SynthParams {
    let header = &trace.header;
    let tokens = |phase| {
        let of_phase = trace.visits.iter().filter(|visit| visit.layer == 0 && visit.phase == phase);
        of_phase.map(Visit::tokens).sum::<usize>() as u32
    };
    SynthParams {
        model: format!("{} (synthetic)", header.model),
        layers: header.layers,
        experts: header.experts,
        k: header.k,
        prompt_tokens: tokens(Phase::Prefill),
        decode_tokens: tokens(Phase::Decode),
        zipf_skew: 0.6,
        repeat: 0.1,
        recall: 0.1,
        layer_correlation: 0.2,
        weight_tilt: weight_tilt(trace),
    }
}

/// Mean statistics of [`TRIALS`] synthetic traces, from `seed` on.
fn averaged(
    params: &SynthParams,
    seed: u64,
    of: fn(&Trace) -> Statistics,
) -> Result<Statistics, Problem> {
    let mut mean = Statistics::default();
    for trial in 0..TRIALS {
        mean.add(&of(&synthesize(params, seed.wrapping_add(trial))?), 1.0 / TRIALS as f64);
    }
    Ok(mean)
}

/// A whole synthetic trace.
pub fn synthesize(params: &SynthParams, seed: u64) -> Result<Trace, Problem> {
    let mut synth = Synth::new(params.clone(), seed)?;
    // A generator reads nothing, so it cannot fail to read.
    Ok(Trace::collect(&mut synth).expect("synthetic visits"))
}

/// How much likelier than the mean a token's heaviest expert is used by the next token, by decode
/// visits that record weights; 0 without any.
fn weight_tilt(trace: &Trace) -> f64 {
    let mut last: Vec<Option<&Visit>> = vec![None; usize::from(trace.header.layers)];
    let (mut heavy, mut light) = (0_u64, 0_u64);
    for visit in &trace.visits {
        if visit.tokens() != 1 || visit.weights.is_empty() {
            continue;
        }
        if let Some(before) = last[usize::from(visit.layer)].replace(visit) {
            let mut ranked: Vec<usize> = (0..before.experts.len()).collect();
            ranked.sort_by(|&a, &b| before.weights[b].total_cmp(&before.weights[a]));
            let used = |index: usize| u64::from(visit.experts.contains(&before.experts[index]));
            let half = ranked.len() / 2;
            heavy += ranked[..half].iter().map(|&index| used(index)).sum::<u64>();
            light += ranked[ranked.len() - half..].iter().map(|&index| used(index)).sum::<u64>();
        }
    }
    // Halves lie half as far from the mean as the extremes of a straight line do.
    2.0 * (heavy as f64 - light as f64) / ((heavy + light) as f64).max(1.0)
}
