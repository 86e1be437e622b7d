//! A worker's cable and cores, measured by rows like any other, for a plan that asks whether it pays.

use super::RemoteWorker;
use super::lane::Exchange;
use super::test_rows::{at_home, rows_of};
use crate::clock::now;
use crate::worker::ExpertWorker;
use motley_cost::HostLink;
use motley_wire::frame::{Rows, computed_bytes, rows_bytes};
use std::time::Duration;

/// Rows of a large request: enough that their bytes take longer than everything else of it.
const LARGE_ROWS: usize = 128;
/// Times each is asked; the fastest counts, which is the one least disturbed.
const TIMES: usize = 7;
const DEADLINE: Duration = Duration::from_secs(60);

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredWorker {
    pub link: HostLink,
    /// One row of one expert: on this machine's CPU, and there.
    pub here_us: f64,
    pub there_us: f64,
}

impl MeasuredWorker {
    /// Its speed at a token's experts over that of this machine's CPU.
    pub fn speed(&self) -> f64 {
        self.here_us / self.there_us
    }
}

impl RemoteWorker {
    /// Asks it for a few rows and for many; `home` has the same model.
    pub fn measure(&self, home: &mut ExpertWorker) -> Result<MeasuredWorker, String> {
        let layer = self.welcomed.layers.first().copied().unwrap_or(0);
        let (input, output) =
            home.width(layer.into()).ok_or("it computes no layer of this model")?;
        let of = |decode, count| rows_of(&self.welcomed, input, decode, count);
        let (one, many) = of(true, 1).zip(of(false, LARGE_ROWS)).ok_or("it computes no expert")?;
        let mut lane = (self.connect)()?;
        let [small, large] = [fastest(lane.as_mut(), &one)?, fastest(lane.as_mut(), &many)?];
        let mut here_us = f64::INFINITY;
        for _ in 0..TIMES {
            let begun = now();
            at_home(home, std::slice::from_ref(&one)).map_err(|error| error.to_string())?;
            here_us = here_us.min(begun.elapsed().as_secs_f64() * 1e6);
        }
        let bytes = |rows| (rows_bytes(rows, rows, input) + computed_bytes(rows, output)) as f64;
        let longer_us = (large.wire_us - small.wire_us).max(1.0);
        Ok(MeasuredWorker {
            link: HostLink {
                round_trip_us: small.wire_us.max(1.0),
                gb_per_s: (bytes(LARGE_ROWS) - bytes(1)) / longer_us / 1e3,
            },
            here_us,
            there_us: small.compute_us.max(1.0),
        })
    }
}

/// One request, in microseconds.
#[derive(Clone, Copy)]
struct Took {
    wire_us: f64,
    compute_us: f64,
}

fn fastest(lane: &mut dyn Exchange, rows: &Rows) -> Result<Took, String> {
    let mut best = Took { wire_us: f64::INFINITY, compute_us: f64::INFINITY };
    for _ in 0..TIMES {
        let begun = now();
        let answer = lane.exchange(0, rows.clone(), DEADLINE)?;
        let (all_us, compute_us) =
            (begun.elapsed().as_secs_f64() * 1e6, f64::from(answer.compute_us));
        best.wire_us = best.wire_us.min(all_us - compute_us);
        best.compute_us = best.compute_us.min(compute_us);
    }
    Ok(best)
}
