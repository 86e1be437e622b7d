//! An executor without threads: whoever holds it says when what begins and how it ends. For the
//! fault harness, which runs it in virtual time; the board is the one of [`Executor`](super::Executor).

use super::board::{Board, Stretch};
use super::figures::MachineError;
use super::units::{CopyOrder, CpuOrder, DeviceOrder, Disk, Flow, UnitFailed};
use motley_cost::Nanos;
use motley_sched::{AtOnce, Routing, Scheduler};
use motley_trace::ExpertKey;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a thread of the executor would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    Cpu,
    Device(usize),
    /// The link to a device.
    Link(usize),
}

/// What a lane is busy with.
#[derive(Debug)]
pub enum Work {
    Cpu(Vec<CpuOrder>),
    Device(Vec<DeviceOrder>),
    Copy(CopyOrder),
}

/// How far a block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    Done,
    /// It failed or was cancelled: end what computes, then [`Stepped::give_up`].
    GivesUp(Option<MachineError>),
    /// Something is under way.
    Busy,
    /// Nothing is, and it is not done.
    Stuck,
}

/// The executor.
pub struct Stepped {
    board: Board<(), ()>,
    running: BTreeMap<Lane, (Work, Nanos)>,
}

impl Stepped {
    /// A machine before its first block; tiers as [`ExecutorParts`](super::ExecutorParts) has them.
    pub fn new(scheduler: Scheduler, disk: Option<Box<dyn Disk>>, devices: usize) -> Self {
        let scheduler = scheduler.computing(AtOnce::ALL);
        let board = Board::new(scheduler, disk, (devices, Vec::new()), None);
        Self { board, running: BTreeMap::new() }
    }

    /// A block has been routed; the one before is done or given up.
    pub fn begin_block(&mut self, now: Nanos, routing: &Routing<'_>) {
        self.board.poll_disk(now);
        self.board.begin_block(&routing.routed, now);
        self.board.block = Some(Arc::new(()));
        self.board.scheduler.on_routed(now, routing);
        self.board.carry_out(now);
    }

    /// Gives every idle lane what there is for it. The lanes that began.
    pub fn begin(&mut self, now: Nanos) -> Vec<Lane> {
        let devices = 0..self.board.devices.len();
        let lanes = devices.flat_map(|device| [Lane::Device(device), Lane::Link(device)]);
        let lanes = std::iter::once(Lane::Cpu).chain(lanes);
        lanes.filter(|&lane| self.begin_on(now, lane)).collect()
    }

    fn begin_on(&mut self, now: Nanos, lane: Lane) -> bool {
        let stops = self.board.given_up || self.board.failed.is_some();
        let board = &mut self.board;
        let work = match lane {
            _ if self.running.contains_key(&lane) => None,
            Lane::Cpu if stops || board.cpu.is_empty() => None,
            Lane::Cpu => Some(Work::Cpu(std::mem::take(&mut board.cpu))),
            Lane::Device(device) if stops || board.devices[device].orders.is_empty() => None,
            Lane::Device(device) => {
                board.devices[device].runs = true;
                Some(Work::Device(std::mem::take(&mut board.devices[device].orders)))
            }
            Lane::Link(device) => {
                let order = board.devices[device].copies.pop_front();
                board.devices[device].link_runs |= order.is_some();
                order.map(Work::Copy)
            }
        };
        work.map(|work| self.running.insert(lane, (work, now))).is_some()
    }

    /// What `lane` is busy with.
    pub fn work(&self, lane: Lane) -> Option<&Work> {
        self.running.get(&lane).map(|(work, _)| work)
    }

    /// What `lane` is busy with ends.
    pub fn end(&mut self, now: Nanos, lane: Lane, outcome: Result<Flow, UnitFailed>) {
        let Some((work, begun)) = self.running.remove(&lane) else { return };
        let ran = Stretch { begun, ended: now };
        match (lane, work) {
            (Lane::Device(device), Work::Device(orders)) => {
                self.board.devices[device].runs = false;
                self.board.on_device(device, &orders, ran);
                self.board.on_outcome("the device", outcome);
            }
            (Lane::Link(device), Work::Copy(order)) => {
                self.board.devices[device].link_runs = false;
                let what = (order.key, order.purpose);
                drop(order);
                self.board.on_copied(device, what, outcome.is_ok(), ran);
            }
            (_, Work::Cpu(orders)) => {
                let computed: Vec<(ExpertKey, u32)> =
                    orders.into_iter().map(|order| (order.key, order.tokens)).collect();
                self.board.on_cpu(&computed, ran);
                self.board.on_outcome("the CPU", outcome);
            }
            _ => {}
        }
        self.board.carry_out(now);
    }

    /// Takes up reads that have ended.
    pub fn poll_disk(&mut self, now: Nanos) {
        self.board.poll_disk(now);
        self.board.carry_out(now);
    }

    /// How far the block is.
    pub fn progress(&self) -> Progress {
        let computes = self.running.keys().any(|lane| !matches!(lane, Lane::Link(_)));
        if self.board.failed.is_some() || self.board.given_up {
            Progress::GivesUp(self.board.failed.clone())
        } else if self.board.scheduler.layer_is_done() {
            Progress::Done
        } else if computes || !self.board.cpu.is_empty() || self.board.is_busy() {
            Progress::Busy
        } else {
            Progress::Stuck
        }
    }

    /// Gives the block up.
    ///
    /// # Panics
    /// When a unit is still computing.
    pub fn give_up(&mut self, now: Nanos) {
        self.board.given_up = true;
        self.board.abandon(now);
        self.board.failed = None;
        self.board.end_block(now);
    }

    /// Uses so many slots of the memory that is filled from disk for experts that stay, between
    /// blocks (M3).
    pub fn set_cache_slots(&mut self, slots: u32) {
        self.board.set_cache_slots(slots);
    }
}
