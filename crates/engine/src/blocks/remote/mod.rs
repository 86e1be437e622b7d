//! Other machines as one unit: rows of a block go to the workers that have their experts and come
//! back as rows; bytes of experts never travel. A row is a pure function of layer, expert and
//! input, which the head keeps: what does not come back in time is computed here.
//!
//! * `lane`: one worker on a thread of its own, and the way back to it when it was lost.
//! * `wire`: workers over the network.
//! * `figures`: what they have done.

mod figures;
mod lane;
mod wire;

pub use figures::{RemoteFigures, SharedRemoteFigures};
pub use lane::{Connect, Exchange, Welcomed};
pub use wire::WorkerAddress;

use crate::blocks::first_unit::FirstUnit;
use figures::lock;
use lane::{Job, LaneThread, Returned};
use motley_ggml::{CpuUnit, ExpertBlock};
use motley_sched::Phase;
use motley_sched::remote::{ExpertLoad, Shard, share_out};
use motley_wire::frame::{MAX_PAIRS, MAX_PAYLOAD_BYTES, Rows, computed_bytes, rows_bytes};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Longest the head waits for rows, by phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    pub prefill: Duration,
    pub decode: Duration,
}

impl Default for Deadlines {
    /// A worker that reads from a slow disk takes a second for a token's experts of a layer at
    /// most; a chunk of a prompt may need all of them.
    fn default() -> Self {
        Self { prefill: Duration::from_secs(60), decode: Duration::from_secs(2) }
    }
}

/// A worker: its name, and how to reach it.
#[derive(Clone)]
pub struct RemoteWorker {
    /// Host and port.
    pub name: String,
    /// What it said when it was first reached.
    pub welcomed: Welcomed,
    pub connect: Connect,
}

/// The workers of one session.
pub struct RemoteUnit {
    lanes: Vec<LaneThread>,
    shards: Vec<Shard>,
    deadlines: Deadlines,
    /// Counts blocks, so that no answer is taken for another's.
    block: u64,
    /// Rows under way: worker, and (token, slot) of each row it will send back.
    under_way: Vec<(usize, Vec<(usize, usize)>)>,
    figures: SharedRemoteFigures,
}

impl RemoteUnit {
    /// Connects to every worker; one that cannot be reached now is looked for later. `layers` are
    /// the model's.
    pub fn new(
        layers: usize,
        workers: &[RemoteWorker],
        deadlines: Deadlines,
        figures: SharedRemoteFigures,
    ) -> Self {
        let (mut lanes, mut shards, mut named) = (Vec::new(), Vec::new(), Vec::new());
        for RemoteWorker { name, welcomed, connect } in workers {
            let lane = connect();
            let (answers, lost) = (lane.is_ok(), lane.as_ref().err().cloned());
            shards.push(Shard { answers, ..shard(layers, welcomed) });
            named.push(RemoteFigures { name: name.clone(), answers, lost, ..Default::default() });
            lanes.push(LaneThread::start(lane.ok(), Arc::clone(connect)));
        }
        *lock(&figures) = named;
        Self { lanes, shards, deadlines, block: 0, under_way: Vec::new(), figures }
    }

    /// Rows of the block by worker: (token, slot, expert).
    fn divide(&mut self, block: &ExpertBlock<'_>) -> BTreeMap<usize, Vec<(usize, usize, u32)>> {
        let mut loads: BTreeMap<u32, u32> = BTreeMap::new();
        block.rows().for_each(|(_, _, expert)| *loads.entry(expert).or_default() += 1);
        let loads: Vec<_> =
            loads.into_iter().map(|(expert, rows)| ExpertLoad { expert, rows }).collect();
        let chosen = share_out(block.layer() as usize, &loads, &self.shards);
        let owner = |expert: u32| {
            let at = loads.binary_search_by_key(&expert, |load| load.expert).ok()?;
            chosen[at]
        };
        let mut divided: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for (token, slot, expert) in block.rows() {
            if let Some(worker) = owner(expert) {
                divided.entry(worker).or_default().push((token, slot, expert));
            }
        }
        divided
    }

    /// Workers that came back since the last block answer again.
    fn look_for_the_lost(&mut self) {
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            if !self.shards[number].answers && lane.is_back() {
                self.shards[number].answers = true;
                lock(&self.figures)[number].answers = true;
            }
        }
    }

    fn lose(&mut self, worker: usize, why: &str) {
        self.shards[worker].answers = false;
        let figures = &mut lock(&self.figures)[worker];
        figures.answers = false;
        figures.lost = Some(why.to_owned());
    }

    fn count(&mut self, worker: usize, returned: &Returned, rows: usize, waited: Duration) {
        let figures = &mut lock(&self.figures)[worker];
        figures.requests += 1;
        figures.rows += rows as u64;
        figures.sent_bytes += returned.sent_bytes;
        figures.received_bytes += returned.received_bytes;
        figures.exchange_us += returned.took.as_micros() as u64;
        figures.wait_us += waited.as_micros() as u64;
    }
}

impl FirstUnit for RemoteUnit {
    fn begin(
        &mut self,
        phase: Phase,
        block: &mut ExpertBlock<'_>,
        _: &mut CpuUnit,
    ) -> Result<bool, String> {
        self.look_for_the_lost();
        let decode = phase == Phase::Decode;
        let deadline = if decode { self.deadlines.decode } else { self.deadlines.prefill };
        for (worker, rows) in self.divide(block) {
            for part in rows.chunks(rows_at_once(block)) {
                self.block += 1;
                let rows = request(decode, block, part);
                self.lanes[worker].ask(Job { block: self.block, rows, deadline });
                let places: Vec<_> = part.iter().map(|&(token, slot, _)| (token, slot)).collect();
                places.iter().for_each(|&(token, slot)| block.set_aside(token, slot));
                self.under_way.push((worker, places));
            }
        }
        Ok(!self.under_way.is_empty())
    }

    fn finish(&mut self, block: &mut ExpertBlock<'_>) -> Result<bool, String> {
        let mut left = Vec::new();
        for (worker, places) in std::mem::take(&mut self.under_way) {
            let begun = crate::clock::now();
            let returned = self.lanes[worker].wait();
            let waited = begun.elapsed();
            let width = block.output_row(0, 0).len();
            match &returned.rows {
                Ok(rows) if rows.len() == places.len() * width => {
                    for (&(token, slot), row) in places.iter().zip(rows.chunks_exact(width)) {
                        block.write_row(token, slot, row);
                    }
                    self.count(worker, &returned, places.len(), waited);
                }
                Ok(_) => {
                    self.lanes[worker].forget();
                    self.lose(worker, "it sent rows of another width");
                    left.extend_from_slice(&places);
                }
                Err(why) => {
                    self.lose(worker, why);
                    left.extend_from_slice(&places);
                }
            }
            if self.shards[worker].answers {
                continue;
            }
            lock(&self.figures)[worker].recomputed += places.len() as u64;
        }
        if left.is_empty() {
            return Ok(false);
        }
        block.leave_only(&left);
        Ok(true)
    }
}

fn shard(layers: usize, welcomed: &Welcomed) -> Shard {
    let mut has = vec![false; layers];
    for &layer in &welcomed.layers {
        if let Some(has) = has.get_mut(usize::from(layer)) {
            *has = true;
        }
    }
    let (first, end) = welcomed.experts;
    Shard { layers: has, experts: (first.into(), end.into()), answers: true, row_cost: 1.0 }
}

/// Rows of one request: neither it nor its answer may be longer than a frame.
fn rows_at_once(block: &ExpertBlock<'_>) -> usize {
    let answer = computed_bytes(1, block.output_row(0, 0).len());
    let request = rows_bytes(1, 1, block.hidden_width());
    (MAX_PAYLOAD_BYTES / answer.max(request)).clamp(1, MAX_PAIRS)
}

/// A token's row travels once, however many of its experts are there.
fn request(decode: bool, block: &ExpertBlock<'_>, rows: &[(usize, usize, u32)]) -> Rows {
    let width = block.hidden_width();
    let differ = block.hidden_differs_by_slot();
    let mut request = Rows {
        decode,
        layer: block.layer() as u16,
        width: width as u32,
        experts: Vec::with_capacity(rows.len()),
        places: Vec::with_capacity(rows.len()),
        hidden: Vec::new(),
    };
    let mut last = None;
    for &(token, slot, expert) in rows {
        let of = (token, if differ { slot } else { 0 });
        if last != Some(of) {
            request.hidden.extend_from_slice(block.hidden_row(token, slot));
            last = Some(of);
        }
        request.experts.push(expert);
        request.places.push((request.hidden.len() / width - 1) as u32);
    }
    request
}
