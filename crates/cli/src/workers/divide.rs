//! Experts divided over this machine and workers that offer all of them: by memory, speed and, where
//! known, use. A worker that was given layers or experts keeps these.

use super::Workers;
use crate::args::WorkersArgs;
use crate::known::profile_of;
use anyhow::Result;
use motley_engine::Runtime;
use motley_engine::blocks::remote::{MeasuredWorker, RemoteWorker};
use motley_model::ModelSpec;
use motley_plan::Decision;
use motley_plan::hosts::{Block, Division, Host, Uses, rows_there, worker_speed};
use motley_profile::Profile;
use motley_sched::Phase;
use motley_sched::remote::ExpertSet;
use motley_trace::ExpertGrid;
use std::path::Path;

impl Workers {
    /// Reaches those that were named, if any, and divides the model at `path` as `decision` leaves
    /// room for it here.
    pub(crate) fn divided(
        asked: &WorkersArgs,
        runtime: Runtime,
        path: &Path,
        decision: &Decision,
    ) -> Result<Option<Self>> {
        let mut reached = Self::reach(asked, runtime, path, decision.exact)?;
        if let Some(workers) = &mut reached {
            workers.divide(runtime, path, head_slots(decision))?;
        }
        Ok(reached)
    }

    /// Divides the model at `path`, of whose experts this machine has room for `head_slots`.
    fn divide(&mut self, runtime: Runtime, path: &Path, head_slots: u32) -> Result<()> {
        let (spec, _) = ModelSpec::open(path)?;
        let layers: Vec<u16> = spec.expert_layers().map(|layer| layer.layer as u16).collect();
        let experts = spec.experts as u16;
        let offers_all = |worker: &RemoteWorker| {
            worker.welcomed.layers == layers && worker.welcomed.experts == (0, experts)
        };
        let open: Vec<usize> =
            (0..self.reached.len()).filter(|&at| offers_all(&self.reached[at])).collect();
        if open.is_empty() {
            return Ok(());
        }
        let measured = self.measure(runtime, path)?;
        let shape = Shape { used: spec.used, width: spec.shape.hidden, workers: open.len() as u32 };
        let blocks: Vec<Block> = open.iter().map(|&at| shape.block(&measured[at])).collect();
        let host = |(&at, block): (&usize, &Block)| Host {
            slots: self.reached[at].slots,
            speed: worker_speed(block),
        };
        let hosts: Vec<Host> = open.iter().zip(&blocks).map(host).collect();
        let counted = profile_of(path, &spec).map(|profile| uses(&profile, &layers, experts));
        let slower = |a: Block, b: &Block| if worker_speed(b) < worker_speed(&a) { *b } else { a };
        let uses = match &counted {
            Some(counted) => Uses::Counted(counted),
            None => Uses::Unknown(blocks[1..].iter().fold(blocks[0], slower)),
        };
        let division = Division {
            grid: ExpertGrid { layers: layers.len() as u16, experts },
            head: &[Host { slots: head_slots, speed: 1.0 }],
            workers: &hosts,
            uses,
            replicas: true,
        };
        for (at, kept) in open.into_iter().zip(division.kept()) {
            self.reached[at].keeps = Some(numbered(&kept, &layers, experts));
        }
        Ok(())
    }
}

/// Experts this machine's memories hold.
fn head_slots(decision: &Decision) -> u32 {
    let placement = &decision.placement;
    (placement.ram_slots() + placement.gpu_slots()).min(placement.experts)
}

/// What decoding asks of a block.
struct Shape {
    /// Experts of a token.
    used: u32,
    /// Values of a row.
    width: u64,
    workers: u32,
}

impl Shape {
    /// A block here and at that worker, with the way there and back.
    fn block(&self, measured: &MeasuredWorker) -> Block {
        let MeasuredWorker { link, here_us, there_us } = measured;
        let rows = rows_there(1, self.used, self.workers).round() as u64;
        let there = motley_cost::exchange::request_bytes(0, rows, self.width);
        Block {
            experts: self.used.into(),
            head_us: *here_us,
            worker_us: *there_us,
            answer_us: link.bytes_us(4 * self.width),
            fixed_us: link.round_trip_us + link.bytes_us(there),
            workers: self.workers,
        }
    }
}

/// How often each expert of `layers` was used, those of a layer together.
fn uses(profile: &Profile, layers: &[u16], experts: u16) -> Vec<u64> {
    let of = |&layer: &u16| {
        let counts = profile.layers.get(usize::from(layer));
        counts.map_or_else(|| vec![0; experts.into()], |counts| counts.best(Phase::Decode))
    };
    layers.iter().flat_map(of).collect()
}

/// A set by the model's layers, from one that counts those with experts only.
fn numbered(kept: &ExpertSet, layers: &[u16], experts: u16) -> ExpertSet {
    let mut all = ExpertSet::default();
    for (number, &layer) in layers.iter().enumerate() {
        let own = (0..experts).filter(|&expert| kept.contains(number, expert));
        own.for_each(|expert| all.insert(layer.into(), expert));
    }
    all
}
