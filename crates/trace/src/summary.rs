//! What a trace says about its model: popularity, imbalance, reuse, overlap, working sets.
//! Streaming: memory depends on layers × experts, never on the length of the trace.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::prediction::NextLayerGuess;
use crate::read::{TraceError, VisitSource};
use crate::record::{Phase, TraceHeader, Visit};

/// Window lengths, in tokens, for [`Summary::working_sets`].
pub const WINDOWS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// Buckets of the reuse-distance histogram: bucket b holds distances in `2^b .. 2^(b+1)`.
pub const REUSE_BUCKETS: usize = 32;
/// Sequences whose previous token is remembered; further ones do not count for reuse.
pub const MAX_SEQUENCES: usize = 1024;

/// Statistics of one trace. Shares are in `0..=1`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub header: TraceHeader,
    pub visits: u64,
    /// (token, layer) pairs read.
    pub rows: u64,
    /// Times each expert was chosen, `[layer][expert]` (N1).
    pub popularity: Vec<Vec<u64>>,
    /// r_l = max_e n(l,e) / mean_e n(l,e) per layer (N1); 0 for a layer without visits.
    pub imbalance: Vec<f64>,
    /// Choices by distance to the previous choice of the same expert, in tokens of that layer:
    /// entry b counts distances in `2^b .. 2^(b+1)`.
    pub reuse_distance: Vec<u64>,
    /// Choices of an expert never chosen before.
    pub first_choices: u64,
    /// Share of a token's experts that the previous token of its sequence chose too.
    pub token_reuse: f64,
    /// Share of a token's experts whose number the token chose in the layer before too. Experts
    /// of different layers are unrelated, so chance (k / experts) is the expected value.
    pub next_layer_overlap: f64,
    /// Share of a token's experts among the k most popular of the layer so far.
    pub guessed_by_popularity: f64,
    /// Share of a token's experts among the k that most often came with its experts in the layer
    /// before; the more it exceeds `guessed_by_popularity`, the more layers are correlated.
    pub guessed_by_layer_before: f64,
    /// Distinct experts of one layer in windows of consecutive tokens, mean over layers.
    pub working_sets: Vec<WorkingSet>,
}

/// How many experts a layer needs within a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkingSet {
    pub tokens: u32,
    /// Mean number of distinct experts per layer; 0 when the trace is shorter than the window.
    pub experts: f64,
}

impl Summary {
    /// The summary of everything `source` yields.
    pub fn collect(source: &mut dyn VisitSource) -> Result<Self, TraceError> {
        let mut builder = SummaryBuilder::new(source.header());
        let mut visit = Visit::default();
        while source.read_visit(&mut visit)? {
            builder.observe(&visit);
        }
        Ok(builder.finish())
    }

    /// Mean of r_l over the layers that have visits.
    pub fn mean_imbalance(&self) -> f64 {
        let seen = self.imbalance.iter().filter(|&&r| r > 0.0);
        ratio(self.imbalance.iter().sum(), seen.count() as f64)
    }
}

/// Accumulates a [`Summary`] visit by visit.
#[derive(Clone, Debug)]
pub struct SummaryBuilder {
    header: TraceHeader,
    visits: u64,
    rows: u64,
    layers: Vec<LayerCounts>,
    reuse_distance: Vec<u64>,
    first_choices: u64,
    /// Experts of the last token, `(layers, k)`, for each remembered sequence.
    last_tokens: HashMap<u32, Vec<Vec<u16>>>,
    reused: Share,
    overlap: Share,
    guess: NextLayerGuess,
}

#[derive(Clone, Debug)]
struct LayerCounts {
    chosen: Vec<u64>,
    /// Token of this layer, from 1, that chose each expert last; 0 for never.
    last_choice: Vec<u64>,
    tokens: u64,
    windows: [Window; WINDOWS.len()],
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    distinct_now: u64,
    distinct_sum: u64,
    finished: u64,
}

/// Part and whole of a share.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    part: u64,
    whole: u64,
}

impl Share {
    fn add(&mut self, row: &[u16], other: &[u16]) {
        self.part += row.iter().filter(|expert| other.contains(expert)).count() as u64;
        self.whole += row.len() as u64;
    }

    fn get(self) -> f64 {
        ratio(self.part as f64, self.whole as f64)
    }
}

impl SummaryBuilder {
    /// Nothing observed yet.
    pub fn new(header: &TraceHeader) -> Self {
        let layer = LayerCounts {
            chosen: vec![0; usize::from(header.experts)],
            last_choice: vec![0; usize::from(header.experts)],
            tokens: 0,
            windows: [Window::default(); WINDOWS.len()],
        };
        Self {
            header: header.clone(),
            visits: 0,
            rows: 0,
            layers: vec![layer; usize::from(header.layers)],
            reuse_distance: vec![0; REUSE_BUCKETS],
            first_choices: 0,
            last_tokens: HashMap::new(),
            reused: Share::default(),
            overlap: Share::default(),
            guess: NextLayerGuess::new(header),
        }
    }

    /// Adds one visit, which must be valid for the header ([`Visit::check`]).
    pub fn observe(&mut self, visit: &Visit) {
        self.visits += 1;
        for (index, row) in visit.rows(self.header.k).enumerate() {
            self.rows += 1;
            self.observe_choices(visit.layer, row);
            self.observe_neighbours(visit, index, row);
        }
    }

    fn observe_choices(&mut self, layer: u16, row: &[u16]) {
        let layer = &mut self.layers[usize::from(layer)];
        layer.tokens += 1;
        for &expert in row {
            let expert = usize::from(expert);
            layer.chosen[expert] += 1;
            let last = std::mem::replace(&mut layer.last_choice[expert], layer.tokens);
            if last == 0 {
                self.first_choices += 1;
            } else {
                let bucket = (layer.tokens - last).max(1).ilog2() as usize;
                self.reuse_distance[bucket.min(REUSE_BUCKETS - 1)] += 1;
            }
            layer.count_in_windows(last);
        }
        layer.close_windows();
    }

    /// Reuse by the next token and overlap with the layer before. In prefill a layer sees all
    /// tokens before the next layer does, so there the overlap is not observed.
    fn observe_neighbours(&mut self, visit: &Visit, index: usize, row: &[u16]) {
        let sequence = visit.sequence(index);
        let known = self.last_tokens.contains_key(&sequence);
        if !known && self.last_tokens.len() == MAX_SEQUENCES {
            return;
        }
        let layers = self.layers.len();
        let last = self.last_tokens.entry(sequence).or_insert_with(|| vec![Vec::new(); layers]);
        let layer = usize::from(visit.layer);
        if !last[layer].is_empty() {
            self.reused.add(row, &last[layer]);
        }
        last[layer].clear();
        last[layer].extend_from_slice(row);
        if visit.phase == Phase::Decode && layer > 0 && !last[layer - 1].is_empty() {
            let (before, here) = last.split_at(layer);
            self.overlap.add(&here[0], &before[layer - 1]);
            self.guess.observe(layer, &before[layer - 1], &here[0]);
        }
    }

    /// The summary of what has been observed.
    pub fn finish(self) -> Summary {
        let working_sets = (0..WINDOWS.len()).map(|window| self.working_set(window)).collect();
        Summary {
            imbalance: self.layers.iter().map(|layer| imbalance(&layer.chosen)).collect(),
            working_sets,
            token_reuse: self.reused.get(),
            next_layer_overlap: self.overlap.get(),
            guessed_by_popularity: self.guess.by_popularity(),
            guessed_by_layer_before: self.guess.by_layer_before(),
            popularity: self.layers.into_iter().map(|layer| layer.chosen).collect(),
            header: self.header,
            visits: self.visits,
            rows: self.rows,
            reuse_distance: self.reuse_distance,
            first_choices: self.first_choices,
        }
    }

    fn working_set(&self, window: usize) -> WorkingSet {
        let sum: u64 = self.layers.iter().map(|layer| layer.windows[window].distinct_sum).sum();
        let finished: u64 = self.layers.iter().map(|layer| layer.windows[window].finished).sum();
        WorkingSet { tokens: WINDOWS[window], experts: ratio(sum as f64, finished as f64) }
    }
}

impl LayerCounts {
    /// Counts a choice in every window that has not seen the expert since it began.
    fn count_in_windows(&mut self, last: u64) {
        for (window, &length) in self.windows.iter_mut().zip(&WINDOWS) {
            let began_after = (self.tokens - 1) / u64::from(length) * u64::from(length);
            if last <= began_after {
                window.distinct_now += 1;
            }
        }
    }

    fn close_windows(&mut self) {
        for (window, &length) in self.windows.iter_mut().zip(&WINDOWS) {
            if self.tokens.is_multiple_of(u64::from(length)) {
                window.distinct_sum += std::mem::take(&mut window.distinct_now);
                window.finished += 1;
            }
        }
    }
}

fn imbalance(chosen: &[u64]) -> f64 {
    let max = chosen.iter().copied().max().unwrap_or(0);
    let sum: u64 = chosen.iter().sum();
    ratio(max as f64 * chosen.len() as f64, sum as f64)
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
