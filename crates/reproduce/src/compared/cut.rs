//! One stream of tokens cut up for comparisons: tokens as a prompt.

use motley_trace::{Phase, Trace, Visit};

/// The first tokens of a trace that decodes one by one, as one prompt in one pass.
pub(crate) fn as_prompt(trace: &Trace, tokens: u32) -> Trace {
    let layers = usize::from(trace.header.layers);
    let mut visits: Vec<Visit> = (0..layers)
        .map(|layer| Visit { layer: layer as u16, phase: Phase::Prefill, ..Visit::default() })
        .collect();
    for token in trace.visits.chunks(layers).take(tokens as usize) {
        for (whole, visit) in visits.iter_mut().zip(token) {
            whole.positions.extend_from_slice(&visit.positions);
            whole.experts.extend_from_slice(&visit.experts);
            whole.weights.extend_from_slice(&visit.weights);
        }
    }
    Trace { header: trace.header.clone(), visits }
}
