//! What a session's executor came to, as a run's record keeps it. Copies figures; computes none.

use crate::blocks::figures::StreamFigures;
use crate::blocks::machine::{MachineHandle, MachineReport};
use motley_sched::{Named, SchedulerSetup};
use motley_trace::{SharedRecord, StreamingRecord};

pub(crate) fn shared_record(devices: &MachineHandle) -> SharedRecord {
    let MachineReport { cache_slots, figures, .. } = devices.report();
    SharedRecord {
        cache_slots,
        routed_pairs: figures.routed_pairs,
        device_pairs: figures.device_pairs,
        copies: figures.demanded_copies + figures.guessed_copies,
    }
}

pub(crate) fn streaming_record(setup: &SchedulerSetup, stream: &StreamFigures) -> StreamingRecord {
    let (limits, rules) = (setup.first().limits, setup.rules.ram);
    StreamingRecord {
        policy: rules.policy.name().into(),
        prefetch: rules.prefetch.name().into(),
        cache_slots: stream.slots_most,
        cache_slots_least: Some(stream.slots_least),
        skip_cold: setup.rules.skip_cold.map(f64::from),
        staging_slots: limits.staging_slots,
        prefetch_slots: limits.prefetch_slots,
        loads_in_flight: limits.loads_in_flight,
        guesses_in_flight: limits.guesses_in_flight,
        predicted: stream.predicted.map(|seen| seen.ahead[0].share().unwrap_or(0.0)),
    }
}
