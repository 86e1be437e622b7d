//! Rows that show how a worker computes: builds, instruction sets and copies of the file that
//! differ, differ in them. A head compares them with its own when it meets a worker, and with the
//! worker's former ones when it is back.

use super::lane::{Exchange, Welcomed};
use crate::worker::{ExpertWorker, RowsIn};
use motley_ggml::BlockError;
use motley_sched::Phase;
use motley_wire::frame::Rows;
use std::time::Duration;

/// Rows of the one that stands for prompts: enough for kernels that take several at once.
const PROMPT_ROWS: usize = 16;
/// Longest a worker may take for one of them; it may have to read experts.
const TEST_TIME: Duration = Duration::from_secs(60);

/// What to ask a worker: of its first layer and its first and last expert, one row as a step of
/// decoding, and several as a prompt. `width` are the floats of a row.
pub(super) fn test_rows(welcomed: &Welcomed, width: usize) -> Option<[Rows; 2]> {
    Some([rows_of(welcomed, width, true, 1)?, rows_of(welcomed, width, false, PROMPT_ROWS)?])
}

/// `count` rows of that kind; `None` for a worker that computes nothing.
pub(super) fn rows_of(
    welcomed: &Welcomed,
    width: usize,
    decode: bool,
    count: usize,
) -> Option<Rows> {
    let layer = *welcomed.layers.first()?;
    let (first, end) = welcomed.experts;
    let last = end.checked_sub(1).filter(|last| *last >= first)?;
    Some(Rows {
        decode,
        layer,
        width: width as u32,
        experts: (0..count).map(|row| u32::from([first, last][row % 2])).collect(),
        places: (0..count as u32).collect(),
        hidden: (0..count * width).map(value).collect(),
    })
}

/// Between −1 and 1, without a pattern that sums could hide behind.
fn value(index: usize) -> f32 {
    let mixed = (index as u32).wrapping_mul(2_654_435_761);
    (mixed ^ (mixed >> 15)) as i32 as f32 / i32::MAX as f32
}

/// The worker's answers, one after the other.
pub(super) fn ask(lane: &mut dyn Exchange, tests: &[Rows]) -> Result<Vec<u32>, String> {
    let mut bits = Vec::new();
    for rows in tests {
        let answer = lane.exchange(0, rows.clone(), TEST_TIME)?;
        bits.extend(answer.rows.iter().map(|value| value.to_bits()));
    }
    Ok(bits)
}

/// What this machine makes of the same rows.
pub(super) fn at_home(home: &mut ExpertWorker, tests: &[Rows]) -> Result<Vec<u32>, BlockError> {
    let (mut bits, mut out) = (Vec::new(), Vec::new());
    for Rows { decode, layer, experts, places, hidden, .. } in tests {
        let phase = if *decode { Phase::Decode } else { Phase::Prefill };
        home.compute(phase, (*layer).into(), RowsIn { experts, places, hidden }, &mut out)?;
        bits.extend(out.iter().map(|value| value.to_bits()));
    }
    Ok(bits)
}
