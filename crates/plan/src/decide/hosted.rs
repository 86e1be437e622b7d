//! The decision for a model that another program's llama.cpp loads: whether its experts are taken
//! at all. Context, threads and dense work are that program's.

use super::asked::{Asked, DevicesAsked, Loading};
use super::decision::Decision;
use super::error::DecideError;
use super::facts::Facts;

/// What is to be done with it.
#[derive(Debug, Clone)]
pub struct HostedDecision {
    pub decision: Decision,
    /// Whether its experts are taken; else the host keeps them.
    pub takes: bool,
}

/// Decides; the host `lends` devices, or does not. A model that fits is left alone unless
/// somebody wants its experts taken or shared with a device. What other models of the process
/// have (`facts.memory`) is not there for this one.
pub fn decide_hosted(
    facts: &Facts<'_>,
    asked: &Asked,
    lends: bool,
) -> Result<HostedDecision, DecideError> {
    let others_bytes = facts.memory.map_or(0, |memory| memory.others_bytes);
    let shares = lends.then_some(Loading::OnDemand);
    // The host's context is not known yet; what it takes is seen when the first block comes.
    let asked = Asked {
        devices: DevicesAsked::Cpu,
        every_position: true,
        memory_bytes: asked.memory_bytes.map(|bytes| bytes.saturating_sub(others_bytes)),
        loading: asked.loading.or(shares),
        ..asked.clone()
    };
    let decision = super::decide(facts, &asked)?;
    let fits = asked.memory_bytes.is_some_and(|bytes| {
        asked.loading.is_none() && bytes >= decision.budget.largest_sensible_bytes()
    });
    let takes = facts.model.is_moe() && decision.loading == Loading::OnDemand && !fits;
    Ok(HostedDecision { decision, takes })
}
