//! The threads of a machine, and one block from its routing to its rows. Starts what the scheduler
//! hands out and reports when it has ended; chooses nothing. The simulator's driver does the same
//! in virtual time.

use super::board::{Board, Stretch};
use super::figures::{MachineError, MachineFigures};
use super::units::{Arrivals, CopyOrder, Cpu, Device, Disk, DiskDone, Flow, Link};
use crate::blocks::clock::Clock;
use crate::blocks::resident::ResidentExperts;
use crate::sync::{Builder, Condvar, JoinHandle, Mutex, MutexGuard};
use motley_cost::Nanos;
use motley_sched::scheduler::Place;
use motley_sched::spans::Spans;
use motley_sched::{AtOnce, LeftOut, Purpose, RoutedPairs, Routing, Scheduler, Share};
use motley_trace::ExpertKey;
use std::sync::Arc;

/// What an executor is made of.
pub struct ExecutorParts<D> {
    /// Its first tier is filled from the disk, if there is one; each of the others is a device's.
    pub scheduler: Scheduler,
    pub disk: Option<Box<dyn Disk>>,
    /// Each with the link to it, in the order of their tiers.
    pub devices: Vec<(D, Box<dyn Link>)>,
    /// What is in the memory of each, for others to read; may be empty.
    pub shown: Vec<Arc<ResidentExperts>>,
    pub clock: Clock,
    /// Whether the CPU computes what is there while the rest is read.
    pub overlap: bool,
    /// Whether what ran when is recorded.
    pub records: bool,
}

/// A block that came to its end.
#[derive(Debug)]
pub struct BlockDone<R> {
    /// What devices have computed.
    pub rows: Vec<R>,
    /// Whether all rows are computed.
    pub flow: Flow,
}

/// Runs blocks on all units of a machine at once.
pub struct Executor<D: Device> {
    shared: Arc<Shared<D::Block, D::Rows>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<B, R> {
    board: Mutex<Board<B, R>>,
    lanes: Vec<Lane>,
    /// Something was asked of the disk; something for the driver.
    for_disk: Condvar,
    for_driver: Condvar,
    /// To wait for the disk.
    arrivals: Option<Arc<dyn Arrivals>>,
    clock: Clock,
    overlap: bool,
}

/// Something for a device, for its link.
struct Lane {
    for_device: Condvar,
    for_link: Condvar,
}

impl<D: Device> Executor<D> {
    /// Starts two threads for each device, and one for the disk where there are devices.
    ///
    /// # Panics
    /// When the scheduler knows more than one home lane: there is one CPU.
    pub fn new(parts: ExecutorParts<D>) -> Self {
        let ExecutorParts { scheduler, disk, devices, shown, clock, overlap, records } = parts;
        assert!(scheduler.lanes() <= 1, "one CPU, not {} lanes", scheduler.lanes());
        let scheduler = scheduler.computing(AtOnce::ALL);
        let arrivals = disk.as_ref().map(|disk| disk.arrivals());
        let lane = |_: &_| Lane { for_device: Condvar::new(), for_link: Condvar::new() };
        let spans = records.then(Spans::default);
        let shared = Arc::new(Shared {
            lanes: devices.iter().map(lane).collect(),
            board: Mutex::new(Board::new(scheduler, disk, (devices.len(), shown), spans)),
            for_disk: Condvar::new(),
            for_driver: Condvar::new(),
            arrivals,
            clock,
            overlap,
        });
        let mut threads = Vec::new();
        for (number, (mut device, mut link)) in devices.into_iter().enumerate() {
            let (unit, wire) = (Arc::clone(&shared), Arc::clone(&shared));
            threads.push(spawn("motley-device", move || unit.run_device(number, &mut device)));
            threads.push(spawn("motley-copy", move || wire.run_link(number, &mut *link)));
        }
        if shared.disk_has_a_thread() {
            let disk = Arc::clone(&shared);
            threads.push(spawn("motley-disk", move || disk.run_disk()));
        }
        Self { shared, threads }
    }

    /// Brings experts to the memory of a device before the first block, as many as it keeps, and
    /// waits.
    pub fn preload(&self, device: usize, keys: &[ExpertKey]) -> Result<(), MachineError> {
        let mut board = self.shared.lock();
        let tier = board.tier_of(device);
        for (key, slot) in board.scheduler.preload(tier, keys) {
            let queue = &mut board.devices[device];
            let (share, purpose) = (Share::WHOLE, Purpose::Guess);
            let buffer = queue.buffers.begin(Place::Cache(slot), key, purpose);
            queue.early.push_back(CopyOrder { key, share, buffer, purpose, from: None });
        }
        self.shared.lanes[device].for_link.notify_one();
        while board.failed.is_none()
            && (!board.devices[device].early.is_empty() || board.devices[device].link_runs)
        {
            board = self.shared.wait(&self.shared.for_driver, board);
        }
        board.failed.take().map_or(Ok(()), Err)
    }

    /// One block: its routing, the block as devices need it, and the CPU. Returns when every row
    /// is computed, when a unit was asked to stop, or when something failed.
    pub fn run(
        &self,
        routing: &Routing<'_>,
        block: Option<D::Block>,
        cpu: &mut dyn Cpu,
    ) -> Result<BlockDone<D::Rows>, MachineError> {
        let shared = &*self.shared;
        let now = shared.clock.now();
        let mut board = shared.lock();
        if let Some(ended) = board.ended() {
            return Err(ended);
        }
        board.poll_disk(now);
        board.begin_block(&routing.routed, now);
        board.block = block.map(Arc::new);
        board.scheduler.on_routed(now, routing);
        shared.carry_out(&mut board);
        let mut flow = Flow::Done;
        loop {
            let cpu_waits = !shared.overlap && board.reads_are_under_way();
            if board.failed.is_some() || board.given_up {
                flow = Flow::Cancelled;
                board = shared.give_up(board);
                break;
            } else if !board.cpu.is_empty() && !cpu_waits {
                board = shared.run_cpu(board, cpu);
            } else if board.scheduler.layer_is_done() {
                break;
            } else if !board.is_busy() {
                let layer = routing.routed.layer;
                board.failed = Some(MachineError::Deadlock { layer });
            } else {
                board = shared.wait_for_units(board);
            }
        }
        board.end_block(shared.clock.now());
        let failed = board.ended().or_else(|| board.failed.take());
        let rows = std::mem::take(&mut board.rows);
        failed.map_or(Ok(BlockDone { rows, flow }), Err)
    }

    /// The pairs of a layer that are left out, asked before it is run without them.
    pub fn leave_out(&self, pairs: &RoutedPairs<'_>, left_out: &mut Vec<bool>) -> LeftOut {
        self.shared.lock().scheduler.leave_out(self.shared.clock.now(), pairs, left_out)
    }

    /// Uses `slots` of the memory that is filled from disk for experts that stay, between blocks
    /// (M3).
    pub fn set_cache_slots(&self, slots: u32) {
        self.shared.lock().set_cache_slots(slots);
    }

    /// Sums since the beginning.
    pub fn figures(&self) -> MachineFigures {
        self.shared.lock().sums()
    }

    /// The same with what the disk has done and the slots of the memory it fills, in use now and
    /// at most.
    pub fn report(&self) -> (MachineFigures, DiskDone, [u32; 2]) {
        let board = self.shared.lock();
        let disk = board.disk.as_ref().map(|disk| disk.done()).unwrap_or_default();
        let cache = board.scheduler.cache(0);
        (board.sums(), disk, [cache.usable(), cache.capacity().total()])
    }

    /// What ran when, so far, if it is recorded; later calls begin anew.
    pub fn take_spans(&self) -> Option<Spans> {
        self.shared.lock().spans.as_mut().map(std::mem::take)
    }
}

impl<D: Device> Drop for Executor<D> {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        for lane in &self.shared.lanes {
            lane.for_device.notify_all();
            lane.for_link.notify_all();
        }
        self.shared.for_disk.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

type Locked<'a, B, R> = MutexGuard<'a, Board<B, R>>;

impl<B, R> Shared<B, R> {
    /// A panic elsewhere leaves the board as it is: it is reported, not repeated.
    fn lock(&self) -> Locked<'_, B, R> {
        self.board.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wait<'a>(&self, signal: &Condvar, board: Locked<'a, B, R>) -> Locked<'a, B, R> {
        signal.wait(board).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn since(&self, begun: Nanos) -> Stretch {
        Stretch { begun, ended: self.clock.now() }
    }

    /// Beside devices reads have consequences while the CPU computes. Where the CPU is the only
    /// unit the driver waits for the disk itself: a thread less to wake.
    fn disk_has_a_thread(&self) -> bool {
        self.arrivals.is_some() && !self.lanes.is_empty()
    }

    /// Polls the scheduler and wakes whoever has something to do.
    fn carry_out(&self, board: &mut Board<B, R>) {
        board.carry_out(self.clock.now());
        for (lane, queue) in self.lanes.iter().zip(&board.devices) {
            if !queue.orders.is_empty() && !queue.runs {
                lane.for_device.notify_one();
            }
            if !queue.copies.is_empty() && !queue.link_runs {
                lane.for_link.notify_one();
            }
        }
        if self.disk_has_a_thread() && board.reads_are_under_way() {
            self.for_disk.notify_one();
        }
    }

    /// Waits until something has been reported.
    fn wait_for_units<'a>(&'a self, board: Locked<'a, B, R>) -> Locked<'a, B, R> {
        let begun = self.clock.now();
        let mut board = match &self.arrivals {
            Some(arrivals) if !self.disk_has_a_thread() => {
                drop(board);
                arrivals.wait();
                let mut board = self.lock();
                board.poll_disk(self.clock.now());
                self.carry_out(&mut board);
                board
            }
            _ => self.wait(&self.for_driver, board),
        };
        board.figures.stalled += self.clock.now().since(begun);
        board
    }

    /// Computes everything the CPU has been given, without the lock.
    fn run_cpu<'a>(&'a self, mut board: Locked<'a, B, R>, cpu: &mut dyn Cpu) -> Locked<'a, B, R> {
        let orders = std::mem::take(&mut board.cpu);
        drop(board);
        let begun = self.clock.now();
        let outcome = cpu.compute(&orders);
        // Their bytes go before the scheduler gives their slots to others.
        let computed: Vec<_> = orders.into_iter().map(|order| (order.key, order.tokens)).collect();
        let mut board = self.lock();
        board.on_cpu(&computed, self.since(begun));
        board.poll_disk(self.clock.now());
        board.on_outcome("the CPU", outcome);
        self.carry_out(&mut board);
        board
    }

    /// Waits for devices that compute, then gives the block up.
    fn give_up<'a>(&'a self, mut board: Locked<'a, B, R>) -> Locked<'a, B, R> {
        board.given_up = true;
        while board.devices.iter().any(|device| device.runs) {
            board = self.wait(&self.for_driver, board);
        }
        if board.ended().is_none() {
            board.abandon(self.clock.now());
            self.carry_out(&mut board);
        }
        board
    }

    fn run_device<D: Device<Block = B, Rows = R>>(&self, number: usize, device: &mut D) {
        let _alarm = Alarm { shared: self, whose: Whose::Device(number) };
        let mut board = self.lock();
        while !board.closing {
            let idle = board.devices[number].orders.is_empty() || board.given_up;
            let Some(block) = (if idle { None } else { board.block.clone() }) else {
                board = self.wait(&self.lanes[number].for_device, board);
                continue;
            };
            let orders = std::mem::take(&mut board.devices[number].orders);
            board.devices[number].runs = true;
            drop(board);
            let begun = self.clock.now();
            let outcome = device.compute(&block, &orders);
            drop(block);
            board = self.lock();
            board.devices[number].runs = false;
            board.on_device(number, &orders, self.since(begun));
            let outcome = outcome.map(|(rows, flow)| {
                board.rows.push(rows);
                flow
            });
            board.on_outcome("the device", outcome);
            self.carry_out(&mut board);
            self.for_driver.notify_one();
        }
    }

    fn run_link(&self, number: usize, link: &mut dyn Link) {
        let _alarm = Alarm { shared: self, whose: Whose::Link(number) };
        let mut board = self.lock();
        while !board.closing {
            let queue = &mut board.devices[number];
            let early = queue.early.pop_front();
            let is_early = early.is_some();
            let Some(order) = early.or_else(|| queue.copies.pop_front()) else {
                board = self.wait(&self.lanes[number].for_link, board);
                continue;
            };
            queue.link_runs = true;
            drop(board);
            let begun = self.clock.now();
            let copied = if is_early { link.preload(&order) } else { link.copy(&order) };
            let what = (order.key, order.purpose);
            drop(order);
            board = self.lock();
            board.devices[number].link_runs = false;
            match (is_early, copied) {
                (true, Ok(())) => board.devices[number].buffers.arrived(what.0),
                (true, Err(reason)) => {
                    board.failed.get_or_insert(MachineError::Unit { unit: "the link", reason });
                }
                (false, copied) => {
                    board.on_copied(number, what, copied.is_ok(), self.since(begun));
                    self.carry_out(&mut board);
                }
            }
            self.for_driver.notify_one();
        }
    }

    fn run_disk(&self) {
        let _alarm = Alarm { shared: self, whose: Whose::Disk };
        let Some(arrivals) = &self.arrivals else { return };
        let mut board = self.lock();
        while !board.closing {
            if !board.reads_are_under_way() {
                board = self.wait(&self.for_disk, board);
                continue;
            }
            drop(board);
            arrivals.wait();
            board = self.lock();
            board.poll_disk(self.clock.now());
            self.carry_out(&mut board);
            self.for_driver.notify_one();
        }
    }
}

/// Whose thread.
#[derive(Clone, Copy)]
enum Whose {
    Device(usize),
    Link(usize),
    Disk,
}

/// Tells the driver when a thread ends by a panic, so that it does not wait for ever.
struct Alarm<'a, B, R> {
    shared: &'a Shared<B, R>,
    whose: Whose,
}

impl<B, R> Drop for Alarm<'_, B, R> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut board = self.shared.lock();
            let whose = match self.whose {
                Whose::Device(number) => {
                    board.devices[number].runs = false;
                    "the device"
                }
                Whose::Link(number) => {
                    board.devices[number].link_runs = false;
                    "the link"
                }
                Whose::Disk => "the disk",
            };
            board.failed = Some(MachineError::ThreadEnded(whose));
            self.shared.for_driver.notify_all();
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a driver owns threads")]
fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let thread = Builder::new().name(name.into());
    thread.spawn(body).expect("the system gives a few more threads")
}
