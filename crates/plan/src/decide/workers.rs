//! Whether other machines pay beside a decision, with the costs it was made with. Changes nothing of
//! it.

use motley_cost::calibration::WeightLayout;

use super::attempt::costs;
use super::{Asked, DecideError, Decision, Facts};
use crate::hosts::{Others, RemoteAdvice, RemoteCase, remote_pays};
use crate::predict::Case;

/// The speeds to expect of `decision` alone, with `others`, and of whole layers on each host.
pub fn workers_pay(
    facts: &Facts<'_>,
    asked: &Asked,
    decision: &Decision,
    others: Others<'_>,
) -> Result<RemoteAdvice, DecideError> {
    let calibration = costs(facts, asked, &|_| WeightLayout::Plain)?;
    let head = Case {
        demand: &facts.model.demand,
        calibration: &calibration,
        placement: &decision.placement,
        profile: facts.profile,
        context_tokens: asked.prompt_tokens,
        busy_w: None,
    };
    Ok(remote_pays(&RemoteCase { head, others }))
}
