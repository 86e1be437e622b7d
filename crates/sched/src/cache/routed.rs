//! From a recorded visit to what a layer needs: distinct experts, averaged weights and scores.

use motley_trace::{TraceHeader, Visit};

use super::Routed;

/// Buffers for one [`Routed`] at a time. A visit of one token is passed through without a copy.
#[derive(Clone, Debug)]
pub struct RoutedBuffer {
    n_experts: usize,
    experts: Vec<u16>,
    loads: Vec<u32>,
    weights: Vec<f32>,
    scores: Vec<f32>,
    /// Place of each expert in `experts` when `stamps` names the present fill.
    places: Vec<u16>,
    stamps: Vec<u64>,
    fills: u64,
}

impl RoutedBuffer {
    /// For visits of a trace with this header.
    pub fn new(header: &TraceHeader) -> Self {
        let n_experts = usize::from(header.experts);
        Self {
            n_experts,
            experts: Vec::with_capacity(n_experts),
            loads: Vec::with_capacity(n_experts),
            weights: Vec::with_capacity(n_experts),
            scores: Vec::new(),
            places: vec![0; n_experts],
            stamps: vec![0; n_experts],
            fills: 0,
        }
    }

    /// What `visit`, valid for the header, needs.
    pub fn fill<'a>(&'a mut self, visit: &'a Visit) -> Routed<'a> {
        if visit.tokens() == 1 {
            return Routed {
                layer: visit.layer,
                tokens: 1,
                experts: &visit.experts,
                loads: &[],
                weights: &visit.weights,
                scores: &visit.scores,
            };
        }
        self.gather(visit);
        Routed {
            layer: visit.layer,
            tokens: visit.tokens() as u32,
            experts: &self.experts,
            loads: &self.loads,
            weights: &self.weights,
            scores: &self.scores,
        }
    }

    fn gather(&mut self, visit: &Visit) {
        self.fills += 1;
        self.experts.clear();
        self.loads.clear();
        self.weights.clear();
        let per_token = 1.0 / visit.tokens().max(1) as f32;
        for (index, &expert) in visit.experts.iter().enumerate() {
            let place = self.place(expert, !visit.weights.is_empty());
            self.loads[place] += 1;
            if let Some(weight) = visit.weights.get(index) {
                self.weights[place] += weight * per_token;
            }
        }
        self.scores.clear();
        if !visit.scores.is_empty() {
            self.scores.resize(self.n_experts, 0.0);
            for row in visit.scores.chunks_exact(self.n_experts) {
                self.scores.iter_mut().zip(row).for_each(|(sum, score)| *sum += score * per_token);
            }
        }
    }

    fn place(&mut self, expert: u16, weighted: bool) -> usize {
        let index = usize::from(expert);
        if self.stamps[index] != self.fills {
            self.stamps[index] = self.fills;
            self.places[index] = self.experts.len() as u16;
            self.experts.push(expert);
            self.loads.push(0);
            if weighted {
                self.weights.push(0.0);
            }
        }
        usize::from(self.places[index])
    }
}

#[cfg(test)]
mod tests {
    use motley_trace::record::FORMAT_VERSION;

    use super::*;

    #[test]
    fn a_prefill_visit_is_gathered() {
        let header =
            TraceHeader { version: FORMAT_VERSION, model: "m".into(), layers: 1, experts: 4, k: 2 };
        let visit = Visit {
            positions: vec![0, 1],
            experts: vec![3, 1, 1, 2],
            weights: vec![0.75, 0.25, 0.5, 0.5],
            scores: vec![0.0, 1.0, 2.0, 3.0, 4.0, 3.0, 2.0, 1.0],
            ..Visit::default()
        };
        let mut buffer = RoutedBuffer::new(&header);
        let routed = buffer.fill(&visit);
        assert_eq!(routed.experts, [3, 1, 2]);
        assert_eq!(routed.loads, [1, 2, 1]);
        assert_eq!(routed.weights, [0.375, 0.375, 0.25]);
        assert_eq!(routed.scores, [2.0, 2.0, 2.0, 2.0]);
    }
}
