//! Recorded routing as it would be with fewer experts per token: of each token the strongest. What
//! later layers would have chosen instead is not known; they choose as recorded.

use motley_trace::{Trace, Visit};

/// A number of experts a trace does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("--experts {wanted}: the trace has {used} experts per token; give 1 to {used}")]
pub struct NotSoMany {
    pub wanted: u16,
    /// The trace's own number.
    pub used: u16,
}

/// `trace` with the `wanted` strongest experts of each token: by weight, else in the order of the
/// record, which is best first.
pub fn fewer_experts(mut trace: Trace, wanted: u16) -> Result<Trace, NotSoMany> {
    let used = trace.header.k;
    if !(1..=used).contains(&wanted) {
        return Err(NotSoMany { wanted, used });
    }
    for visit in &mut trace.visits {
        keep(visit, usize::from(used), usize::from(wanted));
    }
    trace.header.k = wanted;
    Ok(trace)
}

fn keep(visit: &mut Visit, used: usize, wanted: usize) {
    let mut kept: Vec<usize> = Vec::with_capacity(visit.tokens() * wanted);
    for token in 0..visit.tokens() {
        let mut row: Vec<usize> = (token * used..(token + 1) * used).collect();
        if !visit.weights.is_empty() {
            // A stable sort: of equal weights the first stays.
            row.sort_by(|&a, &b| visit.weights[b].total_cmp(&visit.weights[a]));
        }
        row.truncate(wanted);
        row.sort_unstable();
        kept.extend(row);
    }
    visit.experts = kept.iter().map(|&pair| visit.experts[pair]).collect();
    if !visit.weights.is_empty() {
        visit.weights = kept.iter().map(|&pair| visit.weights[pair]).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_trace::TraceHeader;
    use motley_trace::record::FORMAT_VERSION;

    fn trace(weights: Vec<f32>) -> Trace {
        let (version, model) = (FORMAT_VERSION, String::new());
        let header = TraceHeader { version, model, layers: 1, experts: 8, k: 3 };
        let experts = vec![4, 1, 7, 0, 2, 5];
        let visit = Visit { positions: vec![0, 1], experts, weights, ..Visit::default() };
        Trace { header, visits: vec![visit] }
    }

    #[test]
    fn the_strongest_of_each_token_stay() {
        let weighed = fewer_experts(trace(vec![0.2, 0.5, 0.3, 0.4, 0.4, 0.2]), 2).unwrap();
        assert_eq!(weighed.visits[0].experts, [1, 7, 0, 2]);
        assert_eq!(weighed.visits[0].weights, [0.5, 0.3, 0.4, 0.4]);
        weighed.visits[0].check(&weighed.header).unwrap();
        let ordered = fewer_experts(trace(Vec::new()), 1).unwrap();
        assert_eq!(ordered.visits[0].experts, [4, 0]);
        let refused = fewer_experts(trace(Vec::new()), 4).unwrap_err();
        assert_eq!(refused, NotSoMany { wanted: 4, used: 3 });
    }
}
