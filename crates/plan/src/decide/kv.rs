//! What keys and values are kept in when nobody says: 16 bits, unless 8 clearly gain. Fewer bits
//! change the last digits of what is computed, so a gain has to be worth that; 4 are for who asks.

use motley_machine::Regime;
use motley_model::KvType;

use super::asked::{Asked, Loading};
use super::attempt::{Attempt, KvWhy};
use super::devices::Candidate;
use super::error::DecideError;
use super::facts::Facts;
use super::search::Search;

/// How much faster 8 bits must be: what they save becomes slots for experts.
const GAIN: f64 = 1.05;

/// The best attempt of the kind that is asked for, or chosen.
pub(super) fn choose<'a, 'f: 'a>(
    facts: &'a Facts<'f>,
    asked: &'a Asked,
    candidates: &'a [Candidate<'f>],
) -> Result<Attempt<'a>, DecideError> {
    let search = |kv| Search::new(facts, asked, candidates, kv);
    let because = |kv_why, attempt| Attempt { kv_why, ..attempt };
    let usual = search(KvType::F16);
    match (asked.kv, facts.model.not_in_blocks) {
        (Some(kv), Some(reason)) if kv.in_blocks() => Err(DecideError::KvBlocks { kv, reason }),
        (Some(kv), _) => Ok(because(KvWhy::Asked, search(kv).best()?)),
        (None, _) if asked.exact => Ok(because(KvWhy::Exact, usual.best()?)),
        (None, Some(reason)) => Ok(because(KvWhy::NotInBlocks(reason), usual.best()?)),
        (None, None) => {
            let (kv_why, attempt) = either(facts, &usual, &search(KvType::Q8_0))?;
            Ok(because(kv_why, attempt))
        }
    }
}

/// 16 bits, or 8.
fn either<'a, 'f: 'a>(
    facts: &Facts<'_>,
    usual: &Search<'a, 'f>,
    smaller: &Search<'a, 'f>,
) -> Result<(KvWhy, Attempt<'a>), DecideError> {
    let found = match usual.best() {
        Ok(found) => found,
        Err(DecideError::Memory(_)) => return Ok((KvWhy::Fits, smaller.best()?)),
        Err(error) => return Err(error),
    };
    if !leaves_room(facts, &found) {
        let small = smaller.best()?;
        return Ok(match leaves_room(facts, &small) {
            true => (KvWhy::Fits, small),
            false => (KvWhy::Usual, found),
        });
    }
    if streams_beside_the_cache(&found) {
        let small = smaller.like(&found)?;
        let times = smaller.decode_rate(&small)? / usual.decode_rate(&found)?;
        if times >= GAIN {
            return Ok((KvWhy::Faster(times), small));
        }
    }
    Ok((KvWhy::Usual, found))
}

/// Whether what is mapped and what is not are in memory together. Streamed experts keep to a budget,
/// and devices have their own.
fn leaves_room(facts: &Facts<'_>, attempt: &Attempt<'_>) -> bool {
    let mapped = attempt.residence.loading == Loading::Mapped;
    let memory = facts.memory.filter(|_| mapped && !attempt.placement.dense_on_gpu);
    memory.is_none_or(|memory| attempt.budget.largest_sensible_bytes() <= memory.room_bytes())
}

/// Beyond RAM, with the cache in RAM: not every device computes with blocks, and a cache there takes
/// no memory from what is read from disk.
fn streams_beside_the_cache(attempt: &Attempt<'_>) -> bool {
    attempt.placement.regime == Regime::BeyondRam && !attempt.placement.dense_on_gpu
}
