//! What the child may take: time by the size of the model, address space, no core file.

use crate::system::{self, ProcessLimits};
use std::time::Duration;

/// Processor time for any model; a small one takes a tenth of a second.
const LEAST: Duration = Duration::from_secs(5);
/// More of it for each gigabyte, which llama.cpp copies from nowhere to nowhere.
const PER_GIGABYTE: Duration = Duration::from_secs(2);
/// Address space beside the weights: KV cache, graphs, code.
const BESIDE_WEIGHTS_BYTES: u64 = 32 << 30;
/// On a busy machine the time that passes is longer.
const BUSY: u32 = 6;

/// Processor time the child may take for weights of so many bytes.
fn processor_time(total_bytes: u64) -> Duration {
    let gigabytes = u32::try_from(total_bytes / 1_000_000_000).unwrap_or(u32::MAX);
    LEAST.saturating_add(PER_GIGABYTE.saturating_mul(gigabytes))
}

/// How long it may take.
pub(crate) fn deadline(total_bytes: u64) -> Duration {
    processor_time(total_bytes).saturating_mul(BUSY)
}

/// Limits this process to what a model of so many bytes takes, and to its parent's life.
pub(crate) fn limit_self(total_bytes: u64) -> anyhow::Result<()> {
    system::limit_self(ProcessLimits {
        address_bytes: total_bytes.saturating_add(BESIDE_WEIGHTS_BYTES),
        processor_s: processor_time(total_bytes).as_secs(),
    })
}
