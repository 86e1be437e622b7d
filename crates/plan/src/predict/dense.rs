//! Everything outside routed experts: as a run of the model measured it, else as a sum over its
//! matrices.

use super::case::{Case, dense_unit, phase_of};
use super::term::{Resource, Term, Work};
use crate::calibration::{Matrices, UnitRates};

/// The terms of a pass over `tokens` with `kv_bytes` of keys and values to read.
pub(crate) fn terms(case: &Case<'_>, tokens: u32, kv_bytes: f64) -> Vec<Term> {
    let Some(costs) = case.known(phase_of(tokens)) else { return summed(case, tokens, kv_bytes) };
    let bound_by = if tokens > 1 { Resource::Arithmetic } else { Resource::Memory };
    let seconds = f64::from(tokens) * costs.dense_us / 1e6;
    vec![Term { what: Work::Dense, seconds, bound_by }]
}

fn summed(case: &Case<'_>, tokens: u32, kv_bytes: f64) -> Vec<Term> {
    let (demand, unit) = (case.demand, dense_unit(case));
    let dense = Matrices {
        bytes: demand.dense_bytes,
        weights: demand.dense_weights,
        ty: demand.dense_type,
    };
    let head =
        Matrices { bytes: demand.head_bytes, weights: demand.head_weights, ty: demand.head_type };
    let tokens = f64::from(tokens);
    let overhead_us = unit.pass_us + unit.layer_us * f64::from(demand.layers);
    let term = |what, us: f64, bound_by| Term { what, seconds: us / 1e6, bound_by };
    vec![
        term(Work::Overhead, overhead_us, Resource::Overhead),
        term(Work::Dense, unit.us(&dense, tokens), bound(unit, &dense, tokens)),
        term(Work::Output, unit.us(&head, 1.0), bound(unit, &head, 1.0)),
        term(Work::Attention, kv_bytes / (unit.memory_gb_per_s * 1e3), Resource::Memory),
    ]
}

/// What limits `tokens` through these matrices.
pub(crate) fn bound(unit: &UnitRates, matrices: &Matrices, tokens: f64) -> Resource {
    let cost = unit.cost(matrices);
    let arithmetic = tokens * cost.per_token_us > cost.floor_us;
    if arithmetic { Resource::Arithmetic } else { Resource::Memory }
}
