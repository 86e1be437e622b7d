//! Who decides about experts: what is asked for, else what replay chose for such an arrangement and
//! is kept with the profile (M6), else the regime's defaults.

use motley_machine::Regime;
use motley_profile::{Arrangement, ChosenRules, Profile};
use motley_sched::cache::PolicyChoice;
use motley_sched::prefetch::PrefetchChoice;
use motley_sched::{ByMemory, Memories, Rules, SkipCold, UnknownName};

use super::asked::Asked;
use super::attempt::Attempt;
use super::error::DecideError;
use super::facts::Facts;
use crate::placement::Placement;

/// Rules and where they are from.
pub(super) struct Ruled<'a> {
    pub(super) rules: Rules,
    /// What replay chose, where that is in force.
    pub(super) chosen: Option<&'a ChosenRules>,
}

/// What would never be asked is refused.
pub(super) fn rules<'a>(
    facts: &Facts<'a>,
    asked: &Asked,
    attempt: &Attempt<'_>,
) -> Result<Ruled<'a>, DecideError> {
    let Placement { regime, .. } = attempt.placement;
    let flags = [("--policy", asked.policy.is_some()), ("--prefetch", asked.prefetch.is_some())];
    let given = flags.into_iter().find(|(_, given)| *given);
    if let (Regime::OneMemory, Some((flag, _))) = (regime, given) {
        return Err(DecideError::NothingToDecide { flag });
    }
    let some_on_devices = attempt.device_use.has_some_experts();
    let defaults = match (regime, some_on_devices) {
        (Regime::BeyondRam, true) => Rules::beyond_ram_with_devices(),
        _ => Rules::default_for(regime),
    };
    let from_disk = matches!(regime, Regime::BeyondRam | Regime::OneMemory);
    let memories = Memories { ram: from_disk, devices: !from_disk || some_on_devices };
    let here = attempt.placement.arrangement(&facts.machine.name);
    let kept = facts.profile.and_then(|profile| profile.header.chosen.as_ref());
    let chosen = kept.filter(|kept| given.is_none() && kept.arrangement.is_like(&here));
    let (policy, prefetch) = match chosen {
        Some(chosen) => names(chosen)?,
        None => (asked.policy.unwrap_or_default(), asked.prefetch.unwrap_or_default()),
    };
    let rules = defaults.with(&policy, &prefetch, memories)?;
    let skip_cold = skip_cold(facts, asked, regime)?;
    Ok(Ruled { rules: Rules { skip_cold, ..rules }, chosen })
}

/// Only what would be read can be left out, and only where its weight is known.
fn skip_cold(
    facts: &Facts<'_>,
    asked: &Asked,
    regime: Regime,
) -> Result<Option<SkipCold>, DecideError> {
    if asked.skip_cold.is_none() {
        return Ok(None);
    }
    if let Some(unweighed) = &facts.model.unweighed {
        return Err(unweighed.clone().into());
    }
    match (asked.exact, regime) {
        (true, _) => Err(DecideError::SkipExact),
        (false, Regime::BeyondRam) => Ok(asked.skip_cold),
        (false, _) => Err(DecideError::SkipNothing),
    }
}

type Chosen = (ByMemory<PolicyChoice>, ByMemory<PrefetchChoice>);

fn names(chosen: &ChosenRules) -> Result<Chosen, UnknownName> {
    Ok((chosen.policy.parse()?, chosen.prefetch.parse()?))
}

/// Refuses a profile whose chosen rules this program does not have.
pub fn check_profile(profile: &Profile) -> Result<(), UnknownName> {
    profile.header.chosen.as_ref().map_or(Ok(()), |chosen| names(chosen).map(drop))
}

impl Placement {
    /// Which memory of `machine` holds how much.
    pub fn arrangement(&self, machine: &str) -> Arrangement {
        let part = |slots: u32| (f64::from(slots) / f64::from(self.experts.max(1))).min(1.0);
        let (from_disk, devices) = (self.regime == Regime::BeyondRam, part(self.gpu_slots()));
        Arrangement { machine: machine.into(), from_disk, ram: part(self.ram_slots()), devices }
    }
}
