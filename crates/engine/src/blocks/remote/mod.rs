//! Other machines as one unit: rows of a block go to the workers that have their experts and come
//! back as rows; bytes of experts never travel. A row is a pure function of layer, expert and
//! input, which the head keeps: what does not come back in time is asked of another that has the
//! expert, else computed here.
//!
//! * `lane`: one worker on a thread of its own, and the way back to it when it was lost.
//! * `wire`: workers over the network; `test_rows`: whether they compute as this machine does.
//! * `measure`: their cables and cores, for a plan.
//! * `figures`: what they have done.

mod figures;
mod lane;
mod measure;
mod test_rows;
mod wire;

pub(crate) use figures::{SharedWorkers, lock};
pub use lane::{Answer, Connect, Exchange, Welcomed};
pub use measure::MeasuredWorker;
pub use wire::WorkerAddress;

use crate::blocks::first_unit::FirstUnit;
use crate::blocks::loads::Loads;
use lane::{Job, LaneThread, Returned};
use motley_ggml::{CpuUnit, ExpertBlock};
use motley_sched::Phase;
use motley_sched::remote::{ExpertSet, Shard, share_out};
use motley_wire::frame::{MAX_PAIRS, MAX_PAYLOAD_BYTES, Rows, computed_bytes, rows_bytes};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Longest the head waits for rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// For any request, and for each of its rows beside that.
    pub each: Duration,
    pub row: Duration,
    /// For the largest.
    pub most: Duration,
}

impl Default for Deadlines {
    /// A worker that reads from a slow disk takes a second for a token's experts of a layer at
    /// most; a chunk of a prompt may need all of them, and a slow core some milliseconds a row.
    fn default() -> Self {
        Self {
            each: Duration::from_secs(2),
            row: Duration::from_millis(15),
            most: Duration::from_secs(60),
        }
    }
}

impl Deadlines {
    /// For so many rows.
    fn of(&self, rows: usize) -> Duration {
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        self.each.saturating_add(self.row.saturating_mul(rows)).min(self.most)
    }
}

/// A worker: its name, and how to reach it.
#[derive(Clone)]
pub struct RemoteWorker {
    /// Host and port.
    pub name: String,
    /// What it said when it was first reached.
    pub welcomed: Welcomed,
    /// Experts it had room for in memory then.
    pub slots: u32,
    /// Those that are its own; `None` where all it computes are.
    pub keeps: Option<ExpertSet>,
    /// Whether its rows are, bit for bit, those of this machine.
    pub computes_alike: bool,
    pub connect: Connect,
}

/// A row: its token, its slot among the token's experts, and the expert.
type Row = (usize, usize, u32);

/// The workers of one session.
pub struct RemoteUnit {
    lanes: Vec<LaneThread>,
    shards: Vec<Shard>,
    deadlines: Deadlines,
    loads: Loads,
    /// Counts blocks, so that no answer is taken for another's.
    block: u64,
    /// Of the block under way.
    phase: Phase,
    /// Rows under way by worker, in the order they will come back.
    under_way: Vec<(usize, Vec<Row>)>,
    figures: SharedWorkers,
}

impl RemoteUnit {
    /// Connects to every worker; one that cannot be reached now is looked for later. `layers` are
    /// the model's.
    pub(crate) fn new(
        layers: usize,
        workers: &[RemoteWorker],
        deadlines: Deadlines,
        figures: SharedWorkers,
    ) -> Self {
        // All at once; each on the thread that will have the connection.
        let start = |worker: &RemoteWorker| LaneThread::start(Arc::clone(&worker.connect));
        let lanes: Vec<LaneThread> = workers.iter().map(start).collect();
        let mut shards = Vec::new();
        for (number, (lane, worker)) in lanes.iter().zip(workers).enumerate() {
            let first = lane.first();
            let answers = first.is_ok();
            let seen = &mut lock(&figures)[number];
            (seen.answers, seen.lost) = (answers, first.err());
            shards.push(Shard { answers, ..shard(layers, worker) });
        }
        let (loads, under_way, phase) = (Loads::default(), Vec::new(), Phase::Prefill);
        Self { lanes, shards, deadlines, loads, block: 0, phase, under_way, figures }
    }

    /// Asks workers for those of `rows` they have, and leaves out of `rows` what they were asked.
    fn ask(&mut self, block: &ExpertBlock<'_>, rows: &mut Vec<Row>) {
        self.loads.count(rows.iter().map(|&(_, _, expert)| expert));
        let (experts, tokens) = (self.loads.experts(), self.loads.tokens());
        let chosen = share_out(block.layer() as usize, experts, tokens, &self.shards);
        let owners: HashMap<u32, usize> = experts
            .iter()
            .zip(chosen)
            .filter_map(|(&expert, to)| Some((expert.into(), to?)))
            .collect();
        let mut divided: BTreeMap<usize, Vec<Row>> = BTreeMap::new();
        rows.retain(|&row| {
            let owner = owners.get(&row.2);
            owner.into_iter().for_each(|&worker| divided.entry(worker).or_default().push(row));
            owner.is_none()
        });
        let decode = self.phase == Phase::Decode;
        for (worker, rows) in divided {
            for part in rows.chunks(rows_at_once(block)) {
                self.block += 1;
                let deadline = self.deadlines.of(part.len());
                let rows = request(decode, block, part);
                self.lanes[worker].ask(Job { block: self.block, rows, deadline });
                self.under_way.push((worker, part.to_vec()));
            }
        }
    }

    /// Waits for everything under way, and writes it; rows that did not come.
    fn collect(&mut self, block: &mut ExpertBlock<'_>) -> Vec<Row> {
        let mut left = Vec::new();
        for (worker, rows) in std::mem::take(&mut self.under_way) {
            let begun = crate::clock::now();
            let returned = self.lanes[worker].wait();
            let waited = begun.elapsed();
            let width = block.output_row(0, 0).len();
            match &returned.answer {
                Ok(answer) if answer.rows.len() == rows.len() * width => {
                    for (&(token, slot, _), row) in rows.iter().zip(answer.rows.chunks_exact(width))
                    {
                        block.write_row(token, slot, row);
                    }
                    self.count(worker, &returned, answer, (rows.len(), waited));
                    continue;
                }
                Ok(_) => {
                    self.lanes[worker].forget();
                    self.lose(worker, "it sent rows of another width", rows.len());
                }
                Err(why) => self.lose(worker, why, rows.len()),
            }
            left.extend(rows);
        }
        left
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

    fn lose(&mut self, worker: usize, why: &str, rows: usize) {
        self.shards[worker].answers = false;
        let figures = &mut lock(&self.figures)[worker];
        figures.answers = false;
        figures.lost = Some(why.to_owned());
        figures.recomputed += rows as u64;
    }

    fn count(
        &self,
        worker: usize,
        returned: &Returned,
        answer: &Answer,
        (rows, waited): (usize, Duration),
    ) {
        let figures = &mut lock(&self.figures)[worker];
        figures.requests += 1;
        figures.rows += rows as u64;
        figures.sent_bytes += returned.sent_bytes;
        figures.received_bytes += returned.received_bytes;
        figures.exchange_us += returned.took.as_micros() as u64;
        figures.compute_us += u64::from(answer.compute_us);
        figures.wait_us += waited.as_micros() as u64;
        if self.phase == Phase::Decode {
            let decode = &mut figures.decode;
            decode.requests += 1;
            decode.rows += rows as u64;
            decode.exchange_us += returned.took.as_micros() as u64;
            decode.compute_us += u64::from(answer.compute_us);
        }
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
        self.phase = phase;
        self.ask(block, &mut block.rows().collect());
        for &(token, slot, _) in self.under_way.iter().flat_map(|(_, rows)| rows) {
            block.set_aside(token, slot);
        }
        Ok(!self.under_way.is_empty())
    }

    /// What is lost goes to another that has it, once; then it is computed here.
    fn finish(&mut self, block: &mut ExpertBlock<'_>) -> Result<bool, String> {
        let mut left = self.collect(block);
        if left.is_empty() {
            return Ok(false);
        }
        self.ask(block, &mut left);
        left.extend(self.collect(block));
        if left.is_empty() {
            return Ok(false);
        }
        let places: Vec<_> = left.iter().map(|&(token, slot, _)| (token, slot)).collect();
        block.leave_only(&places);
        Ok(true)
    }
}

/// Nothing done yet by these, of a model of so many layers.
pub(crate) fn figures_of(layers: usize, workers: &[RemoteWorker]) -> SharedWorkers {
    let kept = workers.iter().map(|worker| (worker.name.as_str(), shard(layers, worker).keeps));
    figures::figures(kept)
}

fn shard(layers: usize, worker: &RemoteWorker) -> Shard {
    let Welcomed { layers: its, experts: (first, end), .. } = &worker.welcomed;
    let its = its.iter().map(|&layer| usize::from(layer)).filter(|layer| *layer < layers);
    let all = Shard::keeping_all(ExpertSet::of_layers(its, *first..*end));
    let keeps = worker.keeps.clone().unwrap_or_else(|| all.keeps.clone());
    Shard { keeps, ..all }
}

/// Rows of one request: neither it nor its answer may be longer than a frame.
fn rows_at_once(block: &ExpertBlock<'_>) -> usize {
    let answer = computed_bytes(1, block.output_row(0, 0).len());
    let request = rows_bytes(1, 1, block.hidden_width());
    (MAX_PAYLOAD_BYTES / answer.max(request)).clamp(1, MAX_PAIRS)
}

/// A token's row travels once, however many of its experts are there.
fn request(decode: bool, block: &ExpertBlock<'_>, rows: &[Row]) -> Rows {
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
