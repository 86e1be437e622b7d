//! Whole layers on each host, as llama.cpp's RPC divides a model: a pass goes through the hosts in
//! turn, attention included, with one hop of hidden rows to each and back. For comparison; nothing of
//! ours runs so.

use motley_cost::{HostLink, Nanos};
use motley_trace::Trace;

use super::HostUnit;
use crate::world::DenseCost;

/// Values of hidden rows on the cable.
const VALUE_BYTES: u64 = 4;

/// A host, or a unit of one, with neighbouring layers.
pub struct SplitHost {
    /// How many; the first host has the first ones.
    pub layers: u16,
    pub dense: DenseCost,
    pub unit: HostUnit,
    /// Whether rows travel to it.
    pub is_remote: bool,
}

/// Passes of a split.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SplitOutcome {
    passes: Vec<SplitPass>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SplitPass {
    pass: u64,
    tokens: u32,
    /// One host after the other.
    in_turn: Nanos,
    /// The host that works longest.
    busiest: Nanos,
}

impl SplitOutcome {
    /// Tokens per second of the passes from `first` on, one pass after the other.
    pub fn tokens_per_s_from(&self, first: u64) -> f64 {
        self.speed(first, |pass| pass.in_turn)
    }

    /// The same if every host always had a pass to work on, which takes as many times the streams as
    /// there are hosts: no pipeline is faster.
    pub fn pipelined_from(&self, first: u64) -> f64 {
        self.speed(first, |pass| pass.busiest)
    }

    fn speed(&self, first: u64, time: impl Fn(&SplitPass) -> Nanos) -> f64 {
        let counted = || self.passes.iter().filter(|pass| pass.pass >= first);
        let tokens: u64 = counted().map(|pass| u64::from(pass.tokens)).sum();
        let took: Nanos = counted().map(time).sum();
        if took == Nanos::ZERO { 0.0 } else { tokens as f64 / took.as_s() }
    }
}

/// Every pass of `trace` through the hosts, which have its layers in their order; the output head is
/// the first one's.
pub fn layer_split(
    trace: &Trace,
    hosts: &mut [SplitHost],
    link: &HostLink,
    width: u32,
) -> SplitOutcome {
    let of_host = |(number, host): (usize, &SplitHost)| vec![number; host.layers.into()];
    let host_of: Vec<usize> = hosts.iter().enumerate().flat_map(of_host).collect();
    let mut outcome = SplitOutcome::default();
    for pass in trace.visits.chunk_by(|a, b| a.pass == b.pass) {
        let Some(first) = pass.first() else { continue };
        let tokens = first.tokens() as u32;
        let mut took = vec![Nanos::ZERO; hosts.len()];
        for visit in pass {
            let Some(&number) = host_of.get(usize::from(visit.layer)) else { continue };
            let host = &mut hosts[number];
            took[number] += host.dense.before_layer(tokens);
            took[number] += Nanos::from_us(host.unit.block_us(visit));
        }
        took[0] += hosts[0].dense.after_pass(tokens);
        let row_bytes = 2 * u64::from(tokens) * u64::from(width) * VALUE_BYTES;
        let hop = Nanos::from_us(link.round_trip_us + link.bytes_us(row_bytes));
        for (took, host) in took.iter_mut().zip(&*hosts) {
            if host.is_remote && host.layers > 0 {
                *took += hop;
            }
        }
        outcome.passes.push(SplitPass {
            pass: first.pass,
            tokens,
            in_turn: took.iter().copied().sum(),
            busiest: took.iter().copied().max().unwrap_or_default(),
        });
    }
    outcome
}
