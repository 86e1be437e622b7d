//! `motley-worker`: the experts of a model for other machines. A head says which model it means,
//! then sends rows of layers; the worker computes them from its own copy of the file and sends rows
//! back. It keeps nothing of a head: whoever asks gets the same rows.
//!
//! * [`Offer`]: what it computes, and what it says of itself.
//! * [`serve`]: one head, from its first word to its last.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a door: it says how long it took")]

use motley_engine::Phase;
use motley_engine::worker::{ExpertWorker, RowsIn};
use motley_wire::frame::{Computed, Frame, MAX_PAYLOAD_BYTES, Rows, Welcome, computed_bytes};
use motley_wire::{Connection, LaneError};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// What a worker computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// Hash of the model's header: a head with another is refused.
    pub model: [u8; 32],
    /// Its ggml and CPU, in words.
    pub build: String,
    /// Layers it computes.
    pub layers: Vec<u16>,
    /// Experts of each.
    pub experts: Range<u16>,
}

/// What one head asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    pub requests: u64,
    pub rows: u64,
    /// Requests that were refused or failed.
    pub failed: u64,
}

/// Answers one head until it leaves. Heads take turns: a request has the worker's whole machine.
pub fn serve(
    connection: &mut Connection,
    worker: &Mutex<ExpertWorker>,
    offer: &Offer,
) -> Result<Served, LaneError> {
    let mut served = Served::default();
    let mut out = Vec::new();
    let mut greeted = false;
    while let Some((block, frame)) = connection.receive()? {
        let answer = match frame {
            Frame::Hello(hello) => {
                greeted = hello.model == offer.model;
                welcome(offer, greeted)
            }
            Frame::Rows(_) if !greeted => Err("say which model first".into()),
            Frame::Rows(rows) => {
                served.requests += 1;
                served.rows += rows.experts.len() as u64;
                compute(worker, offer, &rows, &mut out)
            }
            _ => Err("a worker is asked for rows, nothing else".into()),
        };
        let answer = answer.unwrap_or_else(|reason| {
            served.failed += 1;
            Frame::Failed(reason)
        });
        connection.send(block, &answer)?;
        if let Frame::Computed(Computed { rows, .. }) = answer {
            out = rows;
        }
    }
    Ok(served)
}

fn welcome(offer: &Offer, same: bool) -> Result<Frame, String> {
    if !same {
        return Err("this worker has another model; both need the same file".into());
    }
    Ok(Frame::Welcome(Welcome {
        model: offer.model,
        build: offer.build.clone(),
        layers: offer.layers.clone(),
        experts: (offer.experts.start, offer.experts.end),
    }))
}

/// What a head asks for is looked at before it is computed: it may ask for anything.
fn compute(
    worker: &Mutex<ExpertWorker>,
    offer: &Offer,
    rows: &Rows,
    out: &mut Vec<f32>,
) -> Result<Frame, String> {
    let layer = u32::from(rows.layer);
    if !offer.layers.contains(&rows.layer) {
        return Err(format!("layer {layer} is not computed here"));
    }
    let known = |&expert: &u32| u16::try_from(expert).is_ok_and(|e| offer.experts.contains(&e));
    if let Some(expert) = rows.experts.iter().find(|expert| !known(expert)) {
        return Err(format!("expert {expert} is not computed here"));
    }
    let mut worker = worker.lock().unwrap_or_else(PoisonError::into_inner);
    let (input, output) =
        worker.width(layer).ok_or_else(|| format!("layer {layer} has no experts"))?;
    if rows.width as usize != input {
        return Err(format!("rows of {} floats, and layer {layer} takes {input}", rows.width));
    }
    if computed_bytes(rows.experts.len(), output) > MAX_PAYLOAD_BYTES {
        return Err(format!("{} rows at once are too many", rows.experts.len()));
    }
    let phase = if rows.decode { Phase::Decode } else { Phase::Prefill };
    let asked = RowsIn { experts: &rows.experts, places: &rows.places, hidden: &rows.hidden };
    let begun = Instant::now();
    worker.compute(phase, layer, asked, out).map_err(|error| error.to_string())?;
    let compute_us = u32::try_from(begun.elapsed().as_micros()).unwrap_or(u32::MAX);
    Ok(Frame::Computed(Computed { width: output as u32, compute_us, rows: std::mem::take(out) }))
}
