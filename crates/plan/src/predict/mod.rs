//! How fast a placement should be, and what the time is made of (M1). Arithmetic on costs; what a
//! run then measures is compared with it elsewhere.
//!
//! ```text
//! pass  = overhead + dense + output + attention + Σ_layers experts
//! layer = E[ max( gpu · i,  unit · (k-i),  disk · j + latency + unit ) ]
//! ```
//!
//! `i` of a token's `k` experts are on the GPU and `j` on disk, both by chance. What is there is
//! computed while the rest arrives; the expert that arrives last is computed after it.
//!
//! - `case`: what is predicted.
//! - `term`: the parts of a pass.
//! - `dense`: everything outside routed experts.
//! - [`hits`]: how many experts are where.
//! - [`layer`]: the experts of one layer.

use serde::{Deserialize, Serialize};

mod case;
mod dense;
pub mod hits;
pub mod layer;
mod term;

pub use case::Case;
use case::dense_unit;
pub use hits::Whereabouts;
use layer::{LayerCosts, LayerTime};
pub use term::{Resource, Term, Work};

/// A prediction and its terms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prediction {
    pub tokens_per_s: f64,
    /// Tokens of one pass.
    pub tokens: u32,
    /// Time of one pass.
    pub pass_s: f64,
    /// What the pass is made of; adds up to `pass_s`.
    pub terms: Vec<Term>,
    /// Time the disk works in a pass, hidden or not.
    pub disk_busy_s: f64,
    /// Bytes read from disk for one token.
    pub disk_bytes_per_token: f64,
    /// Bytes of weights and keys and values read from memory for one token.
    pub memory_bytes_per_token: f64,
    /// Part of the routed experts found in memory.
    pub hit_rate: f64,
    /// What the time goes to.
    pub bound_by: Resource,
    /// Energy of one token, where the machine's draw is known.
    pub joules_per_token: Option<f64>,
}

/// One pass that decodes a token.
pub fn decode(case: &Case<'_>) -> Prediction {
    let there = Whereabouts::decode(case);
    pass(case, 1, &there, f64::from(case.demand.used))
}

/// One pass that decodes a token of each of `streams` conversations.
pub fn together(case: &Case<'_>, streams: u32) -> Prediction {
    if streams <= 1 {
        return decode(case);
    }
    let distinct = hits::distinct_experts(case.demand, case.profile, streams);
    pass(case, streams, &Whereabouts::decode(case), distinct)
}

/// One pass that reads a chunk of `tokens` of the prompt.
pub fn prefill(case: &Case<'_>, tokens: u32) -> Prediction {
    let there = Whereabouts::prefill(case);
    let distinct = hits::distinct_experts(case.demand, case.profile, tokens);
    pass(case, tokens.max(1), &there, distinct)
}

fn pass(case: &Case<'_>, tokens: u32, there: &Whereabouts, distinct: f64) -> Prediction {
    let demand = case.demand;
    let layers = f64::from(demand.expert_layers);
    let load = f64::from(tokens) * f64::from(demand.used) / distinct.max(1.0);
    let experts = match demand.used {
        0 => LayerTime::default(),
        _ => LayerCosts::of(case, tokens, load).time(distinct, there),
    };
    let bound_by = dense::bound(layer::expert_unit(case), &demand.expert_matrices(), load);
    let kv_bytes = demand.kv_bytes * (f64::from(case.context_tokens) + f64::from(tokens) / 2.0);
    let mut terms = dense::terms(case, tokens, kv_bytes);
    let (seconds, waited) = (layers * experts.compute_us / 1e6, layers * experts.wait_us / 1e6);
    terms.push(Term { what: Work::Experts, seconds, bound_by });
    terms.push(Term { what: Work::DiskWait, seconds: waited, bound_by: Resource::Disk });
    let disk_experts = layers * distinct * there.on_disk;
    let expert_bytes = layers * distinct * demand.expert_bytes;
    let memory_bytes = demand.dense_bytes + demand.head_bytes + expert_bytes + kv_bytes;
    let disk_busy_s = layers * experts.disk_us / 1e6;
    let read = Read { disk_bytes: disk_experts * demand.expert_bytes, memory_bytes, disk_busy_s };
    finish(case, tokens, terms, &read, 1.0 - there.on_disk)
}

/// Bytes of one pass.
struct Read {
    disk_bytes: f64,
    memory_bytes: f64,
    disk_busy_s: f64,
}

fn finish(
    case: &Case<'_>,
    tokens: u32,
    terms: Vec<Term>,
    read: &Read,
    hit_rate: f64,
) -> Prediction {
    let pass_s: f64 = terms.iter().map(|term| term.seconds).sum();
    let of = |resource: Resource| {
        let parts = terms.iter().filter(|term| term.bound_by == resource);
        parts.map(|term| term.seconds).sum::<f64>()
    };
    let all = [Resource::Memory, Resource::Arithmetic, Resource::Disk, Resource::Overhead];
    let most = all.into_iter().max_by(|a, b| of(*a).total_cmp(&of(*b)));
    let idle_w = dense_unit(case).idle_w;
    let waiting = of(Resource::Disk);
    let joules =
        case.busy_w.map(|busy| busy * (pass_s - waiting) + idle_w.unwrap_or(busy) * waiting);
    let per_token = |value: f64| value / f64::from(tokens);
    Prediction {
        tokens_per_s: f64::from(tokens) / pass_s.max(f64::MIN_POSITIVE),
        tokens,
        pass_s,
        terms,
        disk_busy_s: read.disk_busy_s,
        disk_bytes_per_token: per_token(read.disk_bytes),
        memory_bytes_per_token: per_token(read.memory_bytes),
        hit_rate,
        bound_by: most.unwrap_or(Resource::Memory),
        joules_per_token: joules.map(per_token),
    }
}
