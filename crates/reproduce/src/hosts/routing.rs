//! Streams that decode together: stretches of one synthetic text, a token of each in every pass.

use motley_sim::synth::Synth;
use motley_trace::{Trace, Visit};

use crate::compared::model::Model;
use crate::error::ReproduceError;

/// Tokens counted before anything is decoded.
const COUNTED: u32 = 256;
const SEED: u64 = 11;

/// A model's routing.
#[derive(Debug, Clone)]
pub struct Streams {
    /// Activations of the counted tokens, dense by grid index.
    pub uses: Vec<u64>,
    all: Trace,
}

/// Some of them decoding together.
#[derive(Debug, Clone)]
pub struct Together {
    pub streams: u32,
    pub trace: Trace,
    /// First pass that is measured.
    pub measured_from: u64,
}

/// Passes before those measured, and those, of so many streams. Caches begin with the most used.
fn passes(streams: u32) -> (u32, u32) {
    match streams {
        1 => (16, 48),
        2..=16 => (4, 12),
        _ => (2, 6),
    }
}

impl Streams {
    /// With text for as many as `most` streams.
    pub fn new(model: &Model, skew_factor: f64, most: u32) -> Result<Self, ReproduceError> {
        let tokens = |streams: u32| streams * (passes(streams).0 + passes(streams).1);
        let params = model.synth_params(COUNTED + tokens(most).max(tokens(1)), skew_factor);
        let all = Trace::collect(&mut Synth::new(params, SEED)?)?;
        Ok(Self { uses: all.uses_before(COUNTED.into()), all })
    }

    /// The first so many.
    pub fn together(&self, streams: u32) -> Together {
        let (warm, measured) = passes(streams);
        let layers = usize::from(self.all.header.layers);
        let token = |stream: u32, pass: u32| {
            let number = (COUNTED + stream * (warm + measured) + pass) as usize;
            &self.all.visits[number * layers..(number + 1) * layers]
        };
        let mut visits = Vec::new();
        for pass in 0..warm + measured {
            let first = visits.len();
            visits.extend(token(0, pass).iter().map(|visit| Visit {
                pass: pass.into(),
                positions: vec![0],
                ..visit.clone()
            }));
            for stream in 1..streams {
                for (whole, visit) in visits[first..].iter_mut().zip(token(stream, pass)) {
                    whole.positions.push(stream);
                    whole.experts.extend_from_slice(&visit.experts);
                    whole.weights.extend_from_slice(&visit.weights);
                }
            }
        }
        let trace = Trace { header: self.all.header.clone(), visits };
        Together { streams, trace, measured_from: warm.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::MODELS;
    use super::*;

    #[test]
    fn streams_decode_a_token_each_and_differ() {
        let model = &MODELS[0];
        let streams = Streams::new(model, 1.0, 16).expect("routing");
        for count in [1, 16] {
            let together = streams.together(count);
            let (k, layers) = (usize::from(model.k), usize::from(model.layers));
            assert!(together.trace.visits.iter().all(|visit| {
                visit.tokens() == count as usize && visit.experts.len() == count as usize * k
            }));
            assert_eq!(together.trace.visits.len() % layers, 0);
        }
        let first = &streams.together(16).trace.visits[0];
        let rows: Vec<_> = first.rows(model.k).collect();
        assert!(rows.iter().any(|row| *row != rows[0]), "{rows:?}");
    }
}
