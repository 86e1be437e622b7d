//! Workers of a recorded run, as that run measured them: what each keeps, a row on its CPU, and a
//! request on its way.

use motley_cost::{ComputeCost, HostLink};
use motley_sched::remote::ExpertSet;
use motley_trace::{TraceHeader, WorkerRecord, WorkerTimes};

use super::{HostUnit, Hosts};

/// Those that answered at least once; `None` where nobody did. Bytes take no time of their own: they
/// are in what a request took.
pub(crate) fn recorded(workers: &[WorkerRecord], header: &TraceHeader) -> Option<Hosts> {
    let answered: Vec<&WorkerRecord> =
        workers.iter().filter(|worker| worker.decode.requests > 0).collect();
    let requests: u64 = answered.iter().map(|worker| worker.decode.requests).sum();
    let wire_us: u64 = answered.iter().map(|worker| wire_us(&worker.decode)).sum();
    let link = HostLink {
        round_trip_us: wire_us as f64 / requests.max(1) as f64,
        gb_per_s: f64::INFINITY,
    };
    let unit = |worker: &&WorkerRecord| {
        let prefill = Some(worker.prefill()).filter(|times| times.rows > 0);
        let unit = HostUnit::new(header, row(&worker.decode));
        (kept(worker), unit.with_prefill(row(&prefill.unwrap_or(worker.decode))))
    };
    let units: Vec<_> = answered.iter().map(unit).collect();
    (!units.is_empty()).then(|| Hosts::new(link, 0, units))
}

fn wire_us(times: &WorkerTimes) -> u64 {
    times.exchange_us.saturating_sub(times.compute_us)
}

/// One row of one expert.
fn row(times: &WorkerTimes) -> ComputeCost {
    let per_token_us = times.compute_us as f64 / times.rows.max(1) as f64;
    ComputeCost { launch_us: 0.0, per_token_us, floor_us: 0.0 }
}

fn kept(worker: &WorkerRecord) -> ExpertSet {
    let mut set = ExpertSet::default();
    for &(layer, first, end) in &worker.keeps {
        (first..end).for_each(|expert| set.insert(layer.into(), expert));
    }
    set
}
