//! A worker's memory: it has experts and nothing else of the model.

use crate::budget::{MIN_SLOTS, MachineMemory};
use crate::needs::ModelNeeds;

/// The process, its buffers, and rows on their way.
const PROCESS_BYTES: u64 = 256 << 20;

/// Memory too small for a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} MiB are too little: a worker of this model needs at least {} MiB (--memory)",
    given_bytes >> 20,
    (needed_bytes >> 20) + 1
)]
pub struct TooLittleForWorker {
    pub given_bytes: u64,
    pub needed_bytes: u64,
}

/// Slots for experts within `memory_bytes`, or within what `machine` can give when nobody says. A
/// worker that computes `experts` of the model has no use for more than these and one to read into.
pub fn worker_slots(
    needs: &ModelNeeds,
    experts: u32,
    memory_bytes: Option<u64>,
    machine: Option<MachineMemory>,
) -> Result<u32, TooLittleForWorker> {
    let most = experts.saturating_add(1).max(MIN_SLOTS);
    let room = memory_bytes.or_else(|| machine.map(|machine| machine.room_bytes()));
    let Some(room) = room else { return Ok(most) };
    let left = room.saturating_sub(PROCESS_BYTES) / needs.slot_bytes.max(1);
    let slots = u32::try_from(left).unwrap_or(u32::MAX).min(most);
    if slots < MIN_SLOTS {
        let needed_bytes = PROCESS_BYTES + u64::from(MIN_SLOTS) * needs.slot_bytes;
        return Err(TooLittleForWorker { given_bytes: room, needed_bytes });
    }
    Ok(slots)
}
