//! Which GPUs a run uses, and how much of each: from what was asked and what is there.

use motley_model::format_bytes;

use super::asked::{Asked, DevicesAsked, NamedDevice};
use super::error::DecideError;
use super::facts::{Facts, GpuFact};
use crate::budget::Budget;
use crate::device_use::DeviceUse;
use crate::headroom::device_room;

/// A GPU that may be used.
#[derive(Debug, Clone)]
pub(super) struct Candidate<'a> {
    pub(super) fact: &'a GpuFact,
    pub(super) most_bytes: Option<u64>,
}

/// The GPUs to consider. `--exact` leaves them out, or refuses where one was named.
pub(super) fn candidates<'a>(
    facts: &Facts<'a>,
    asked: &Asked,
) -> Result<Vec<Candidate<'a>>, DecideError> {
    let found = match &asked.devices {
        DevicesAsked::Cpu => Vec::new(),
        DevicesAsked::Auto if asked.exact => Vec::new(),
        DevicesAsked::Auto => automatic(facts.gpus),
        DevicesAsked::Named(names) => {
            names.iter().map(|named| find(facts.gpus, named)).collect::<Result<_, _>>()?
        }
    };
    // The stand-in computes with the CPU's own kernels.
    match found.iter().find(|found| asked.exact && !found.fact.stands_in) {
        Some(found) => Err(DecideError::ExactElsewhere { device: found.fact.name.clone() }),
        None => Ok(found),
    }
}

/// Every GPU with memory of its own; without such the first that shares the CPU's.
fn automatic(gpus: &[GpuFact]) -> Vec<Candidate<'_>> {
    let real = || gpus.iter().filter(|gpu| !gpu.stands_in);
    let own: Vec<_> = real().filter(|gpu| gpu.own_memory).collect();
    let chosen = if own.is_empty() { real().take(1).collect() } else { own };
    chosen.into_iter().map(|fact| Candidate { fact, most_bytes: None }).collect()
}

fn find<'a>(gpus: &'a [GpuFact], named: &NamedDevice) -> Result<Candidate<'a>, DecideError> {
    let found = gpus.iter().find(|gpu| gpu.name.eq_ignore_ascii_case(&named.name));
    let names = || {
        let gpus = gpus.iter().map(|gpu| gpu.name.to_lowercase());
        ["auto".into(), "cpu".into()].into_iter().chain(gpus).collect::<Vec<_>>().join(", ")
    };
    let fact = found
        .ok_or_else(|| DecideError::UnknownDevice { name: named.name.clone(), known: names() })?;
    Ok(Candidate { fact, most_bytes: named.most_bytes })
}

/// What the candidates are used for, and the room of each.
pub(super) fn usage(
    candidates: &[Candidate<'_>],
    asked: &Asked,
    used: u32,
    budget: &Budget,
    streams: bool,
) -> Result<(DeviceUse, Vec<u64>), DecideError> {
    let rooms: Vec<u64> = candidates.iter().map(|c| c.room(budget, candidates.len())).collect();
    let stands_in = candidates.iter().any(|candidate| candidate.fact.stands_in);
    let usage = match (stands_in, streams) {
        (true, _) => DeviceUse::Experts { expert_bytes: rooms.iter().sum() },
        (false, true) => DeviceUse::of_streamed(budget, used, &rooms),
        (false, false) => DeviceUse::of(budget, used, &rooms),
    };
    match &asked.devices {
        DevicesAsked::Named(names) if usage == DeviceUse::Nothing => {
            let names: Vec<_> = names.iter().map(|named| named.name.as_str()).collect();
            Err(DecideError::DeviceTooSmall {
                names: names.join(","),
                given: format_bytes(rooms.iter().sum()),
                needed: format_bytes(DeviceUse::least_bytes(budget, used)),
            })
        }
        _ => Ok((usage, rooms)),
    }
}

impl Candidate<'_> {
    /// Memory it gives. Stand-ins together have half of the experts if nothing else is said.
    fn room(&self, budget: &Budget, devices: usize) -> u64 {
        let half = || u64::from(budget.experts / 2) * budget.slot_bytes / devices as u64;
        match self.fact.stands_in {
            true => self.most_bytes.unwrap_or_else(half),
            false => device_room(self.fact.free_bytes).min(self.most_bytes.unwrap_or(u64::MAX)),
        }
    }
}
