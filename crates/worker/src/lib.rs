//! `motley-worker`: the experts of a model for other machines. A head says which model it means,
//! then sends rows of layers; the worker computes them from its own copy of the file and sends rows
//! back. It keeps nothing of a head: whoever asks gets the same rows.
//!
//! * [`Worker`]: what it computes, and what it has done. Says so to whoever asks
//!   ([`motley_wire::Control`]), and answers heads, each from its first word to its last.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a door: it says how long it took")]

use motley_engine::Phase;
use motley_engine::worker::{ExpertWorker, RowsIn};
use motley_wire::frame::{Computed, Frame, MAX_PAYLOAD_BYTES, Rows, computed_bytes};
use motley_wire::{Connection, Control, LaneError, Offer, WorkerFigures};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Experts, and whom they are for.
pub struct Worker {
    offer: Offer,
    experts: Mutex<ExpertWorker>,
    /// Beside the experts: whoever asks for it does not wait until rows are computed.
    figures: Mutex<WorkerFigures>,
    /// Whether the last rows could be computed.
    is_serving: AtomicBool,
}

impl Worker {
    /// One that computes what `offer` says with `experts`.
    pub fn new(offer: Offer, experts: ExpertWorker) -> Self {
        let is_serving = AtomicBool::new(true);
        Self { offer, experts: Mutex::new(experts), figures: Mutex::default(), is_serving }
    }

    /// Answers one head until it leaves. Heads take turns: a request has the worker's whole machine.
    pub fn serve(&self, connection: &mut Connection) -> Result<(), LaneError> {
        lock(&self.figures).heads += 1;
        let served = self.answer_all(connection);
        lock(&self.figures).heads -= 1;
        served
    }

    fn answer_all(&self, connection: &mut Connection) -> Result<(), LaneError> {
        let mut out = Vec::new();
        let mut greeted = false;
        while let Some((block, frame)) = connection.receive()? {
            let answer = match frame {
                Frame::Hello(hello) => {
                    greeted = hello.model == self.offer.model;
                    let other = "this worker has another model; both need the same file";
                    if greeted { Ok(Frame::Welcome) } else { Err(other.into()) }
                }
                Frame::Rows(_) if !greeted => Err("say which model first".into()),
                Frame::Rows(rows) => self.compute(&rows, &mut out),
                _ => Err("a worker is asked for rows, nothing else".into()),
            };
            let answer = answer.unwrap_or_else(|reason| {
                lock(&self.figures).failed += 1;
                Frame::Failed(reason)
            });
            connection.send(block, &answer)?;
            if let Frame::Computed(Computed { rows, .. }) = answer {
                out = rows;
            }
        }
        Ok(())
    }

    /// What a head asks for is looked at before it is computed: it may ask for anything.
    fn compute(&self, rows: &Rows, out: &mut Vec<f32>) -> Result<Frame, String> {
        self.count(rows);
        let layer = u32::from(rows.layer);
        if !self.offer.layers.contains(&rows.layer) {
            return Err(format!("layer {layer} is not computed here"));
        }
        let here = &self.offer.experts;
        let known = |&expert: &u32| u16::try_from(expert).is_ok_and(|e| here.contains(&e));
        if let Some(expert) = rows.experts.iter().find(|expert| !known(expert)) {
            return Err(format!("expert {expert} is not computed here"));
        }
        let mut experts = lock(&self.experts);
        let (input, output) =
            experts.width(layer).ok_or_else(|| format!("layer {layer} has no experts"))?;
        if rows.width as usize != input {
            return Err(format!("rows of {} floats, and layer {layer} takes {input}", rows.width));
        }
        if computed_bytes(rows.experts.len(), output) > MAX_PAYLOAD_BYTES {
            return Err(format!("{} rows at once are too many", rows.experts.len()));
        }
        let phase = if rows.decode { Phase::Decode } else { Phase::Prefill };
        let asked = RowsIn { experts: &rows.experts, places: &rows.places, hidden: &rows.hidden };
        let begun = Instant::now();
        let computed = experts.compute(phase, layer, asked, out);
        let compute_us = u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX);
        self.is_serving.store(computed.is_ok(), Ordering::Relaxed);
        self.sum_up(&experts, compute_us);
        computed.map_err(|error| error.to_string())?;
        let (width, rows) = (output as u32, std::mem::take(out));
        Ok(Frame::Computed(Computed { width, compute_us, rows }))
    }

    fn count(&self, rows: &Rows) {
        let mut figures = lock(&self.figures);
        figures.requests += 1;
        figures.rows += rows.experts.len() as u64;
    }

    fn sum_up(&self, experts: &ExpertWorker, compute_us: u32) {
        let (prefill, decode) = experts.figures();
        let mut figures = lock(&self.figures);
        figures.compute_us += u64::from(compute_us);
        figures.disk_bytes = prefill.disk_bytes + decode.disk_bytes;
    }
}

impl Control for Worker {
    fn offer(&self) -> Offer {
        self.offer.clone()
    }

    fn figures(&self) -> WorkerFigures {
        *lock(&self.figures)
    }

    fn is_serving(&self) -> bool {
        self.is_serving.load(Ordering::Relaxed)
    }
}

/// Figures are whole at any time, and experts answer for themselves after a panic as before.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
