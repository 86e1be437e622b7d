//! Other machines that compute experts: their figures for Prometheus and for the page.

use crate::app::App;
use motley_engine::WorkerRecord;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::TypedMetric;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;

/// One machine.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DashboardWorker {
    /// Host and port.
    name: String,
    answers: bool,
    /// Rows that came back, and rows that did not and were computed elsewhere.
    rows: u64,
    recomputed: u64,
    requests: u64,
    /// Of all requests together: until the response, computing, and what was left to wait.
    exchange_us: u64,
    compute_us: u64,
    wait_us: u64,
}

impl From<WorkerRecord> for DashboardWorker {
    fn from(record: WorkerRecord) -> Self {
        let WorkerRecord { name, answers, rows, recomputed, requests, .. } = record;
        let WorkerRecord { exchange_us, compute_us, wait_us, .. } = record;
        Self { name, answers, rows, recomputed, requests, exchange_us, compute_us, wait_us }
    }
}

/// Every figure of every worker, with its name.
pub(crate) fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    apps: &[Arc<App>],
) -> Result<(), std::fmt::Error> {
    let all: Vec<WorkerRecord> =
        apps.iter().flat_map(|app| app.batching.engine().workers()).collect();
    for (name, help, value) in COUNTS {
        family(encoder, &all, (name, help), |worker| ConstCounter::new(value(worker)))?;
    }
    for (name, help, micros) in TIMES {
        let seconds = |worker: &WorkerRecord| ConstCounter::new(micros(worker) as f64 / 1e6);
        family(encoder, &all, (name, help), seconds)?;
    }
    let answering = ("worker_answering", "1 while the worker answers, 0 when it is lost");
    family(encoder, &all, answering, |worker| ConstGauge::new(i64::from(worker.answers)))
}

/// Name, help, and where it is.
type Figure = (&'static str, &'static str, fn(&WorkerRecord) -> u64);

const COUNTS: [Figure; 5] = [
    ("worker_requests", "Requests a worker answered", |worker| worker.requests),
    ("worker_rows", "Rows a worker computed", |worker| worker.rows),
    ("worker_recomputed_rows", "Rows it was asked for and others computed", |w| w.recomputed),
    ("worker_sent_bytes", "Bytes of frames sent to a worker", |worker| worker.sent_bytes),
    ("worker_received_bytes", "Bytes of frames received from it", |worker| worker.received_bytes),
];

/// In microseconds there, in seconds here.
const TIMES: [Figure; 3] = [
    ("worker_exchange_seconds", "Time from requests to their responses", |w| w.exchange_us),
    ("worker_compute_seconds", "Of it the worker computing", |worker| worker.compute_us),
    ("worker_wait_seconds", "Time the engine waited with nothing else to do", |w| w.wait_us),
];

fn family<M: EncodeMetric + TypedMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    all: &[WorkerRecord],
    (name, help): (&str, &str),
    metric: impl Fn(&WorkerRecord) -> M,
) -> Result<(), std::fmt::Error> {
    if all.is_empty() {
        return Ok(());
    }
    let mut encoder = encoder.encode_descriptor(name, help, None, M::TYPE)?;
    for worker in all {
        metric(worker).encode(encoder.encode_family(&[("worker", worker.name.as_str())])?)?;
    }
    Ok(())
}
