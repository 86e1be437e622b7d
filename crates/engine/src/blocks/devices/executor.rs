//! The threads of the hybrid regime, and one block from its routing to its rows. Starts what the
//! scheduler hands out and reports when it has ended; chooses nothing. The simulator's driver does
//! the same in virtual time.

use super::board::{Board, Stretch};
use super::buffers::Buffers;
use super::figures::{HybridError, HybridFigures};
use super::units::{CopyOrder, FastUnit, Flow, HomeUnit, Link};
use crate::blocks::clock::Clock;
use crate::sync::{Builder, Condvar, JoinHandle, Mutex, MutexGuard};
use motley_cost::Nanos;
use motley_sched::scheduler::Place;
use motley_sched::spans::Spans;
use motley_sched::{AtOnce, Purpose, Routing, Scheduler, Share};
use motley_trace::ExpertKey;
use std::sync::Arc;

/// What an executor is made of.
pub struct ExecutorParts<F, L> {
    pub scheduler: Scheduler,
    /// Staging buffers, as the scheduler's limits have them.
    pub staging_slots: u16,
    pub fast: F,
    /// The link to it.
    pub link: L,
    pub clock: Clock,
    /// Whether what ran when is recorded.
    pub records: bool,
}

/// A block that came to its end.
#[derive(Debug)]
pub struct BlockDone<J> {
    /// The job, with the rows the fast unit computed.
    pub job: J,
    /// Whether all rows are computed.
    pub flow: Flow,
}

/// Runs blocks on a device and the CPU at once.
pub struct Executor<F: FastUnit> {
    shared: Arc<Shared<F::Job>>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared<J> {
    board: Mutex<Board<J>>,
    /// Something for the fast thread, the copy thread, the driver.
    for_fast: Condvar,
    for_link: Condvar,
    for_driver: Condvar,
    clock: Clock,
}

impl<F: FastUnit> Executor<F> {
    /// Starts the two threads.
    ///
    /// # Panics
    /// When the scheduler knows more than one home lane: there is one CPU.
    pub fn new<L: Link>(parts: ExecutorParts<F, L>) -> Self {
        let ExecutorParts { scheduler, staging_slots, mut fast, mut link, clock, records } = parts;
        assert!(scheduler.lanes() <= 1, "one CPU, not {} lanes", scheduler.lanes());
        let scheduler = scheduler.computing(AtOnce::ALL);
        let buffers = Buffers::new(scheduler.cache(0).capacity().total(), staging_slots);
        let spans = records.then(Spans::default);
        let shared = Arc::new(Shared {
            board: Mutex::new(Board::new(scheduler, buffers, spans)),
            for_fast: Condvar::new(),
            for_link: Condvar::new(),
            for_driver: Condvar::new(),
            clock,
        });
        let fast_shared = Arc::clone(&shared);
        let link_shared = Arc::clone(&shared);
        let threads = vec![
            spawn("motley-fast", move || fast_shared.run_fast(&mut fast)),
            spawn("motley-copy", move || link_shared.run_link(&mut link)),
        ];
        Self { shared, threads }
    }

    /// Brings experts to the cache before the first block, as many as it holds, and waits.
    pub fn preload(&self, keys: &[ExpertKey]) -> Result<(), HybridError> {
        let mut board = self.shared.lock();
        for (key, slot) in board.scheduler.preload(0, keys) {
            let buffer = board.buffers.begin(Place::Cache(slot), key, Purpose::Guess);
            let (share, purpose) = (Share::WHOLE, Purpose::Guess);
            board.early.push_back(CopyOrder { key, share, buffer, purpose });
        }
        self.shared.for_link.notify_one();
        while board.failed.is_none() && (!board.early.is_empty() || board.link_runs) {
            board = self.shared.wait(&self.shared.for_driver, board);
        }
        board.failed.take().map_or(Ok(()), Err)
    }

    /// One block: its routing, the block as the fast unit needs it, and the CPU. Returns when
    /// every row is computed, when the CPU was asked to stop, or when something failed.
    pub fn run(
        &self,
        routing: &Routing<'_>,
        job: F::Job,
        home: &mut dyn HomeUnit,
    ) -> Result<BlockDone<F::Job>, HybridError> {
        let shared = &*self.shared;
        let now = shared.clock.now();
        let mut board = shared.lock();
        if let Some(ended) = board.ended() {
            return Err(ended);
        }
        board.begin_block(&routing.routed, now);
        board.job = Some(job);
        board.scheduler.on_routed(now, routing);
        shared.carry_out(&mut board);
        let mut flow = Flow::Done;
        loop {
            if board.failed.is_some() || board.given_up {
                flow = Flow::Cancelled;
                board = shared.give_up(board);
                break;
            } else if !board.home.is_empty() {
                board = shared.run_home(board, home);
            } else if board.scheduler.layer_is_done() {
                break;
            } else if !board.is_busy() {
                let layer = routing.routed.layer;
                board.failed = Some(HybridError::Deadlock { layer });
            } else {
                board = shared.wait(&shared.for_driver, board);
            }
        }
        board.end_block(shared.clock.now());
        let failed = board.ended().or_else(|| board.failed.take());
        let job = board.job.take();
        drop(board);
        let job = job.ok_or(HybridError::ThreadEnded("the device"));
        failed.map_or(Ok(()), Err).and(job).map(|job| BlockDone { job, flow })
    }

    /// Sums since the beginning.
    pub fn figures(&self) -> HybridFigures {
        let board = self.shared.lock();
        let unused = board.buffers.unused();
        HybridFigures {
            counts: board.scheduler.counts(),
            demanded_unused: unused.demanded,
            guessed_unused: unused.guessed,
            ..board.figures
        }
    }

    /// What ran when, so far, if it is recorded; later calls begin anew.
    pub fn take_spans(&self) -> Option<Spans> {
        self.shared.lock().spans.as_mut().map(std::mem::take)
    }
}

impl<F: FastUnit> Drop for Executor<F> {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.for_fast.notify_all();
        self.shared.for_link.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

impl<J> Shared<J> {
    /// A panic elsewhere leaves the board as it is: it is reported, not repeated.
    fn lock(&self) -> MutexGuard<'_, Board<J>> {
        self.board.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn wait<'a>(
        &self,
        signal: &Condvar,
        board: MutexGuard<'a, Board<J>>,
    ) -> MutexGuard<'a, Board<J>> {
        signal.wait(board).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn since(&self, begun: Nanos) -> Stretch {
        Stretch { begun, ended: self.clock.now() }
    }

    /// Polls the scheduler and wakes whoever has something to do.
    fn carry_out(&self, board: &mut Board<J>) {
        board.carry_out(self.clock.now());
        if !board.fast.is_empty() && !board.fast_runs {
            self.for_fast.notify_one();
        }
        if !board.copies.is_empty() && !board.link_runs {
            self.for_link.notify_one();
        }
    }

    /// Computes everything the CPU has been given, without the lock.
    fn run_home<'a>(
        &'a self,
        mut board: MutexGuard<'a, Board<J>>,
        home: &mut dyn HomeUnit,
    ) -> MutexGuard<'a, Board<J>> {
        let orders = std::mem::take(&mut board.home);
        drop(board);
        let begun = self.clock.now();
        let outcome = home.compute(&orders);
        let mut board = self.lock();
        board.on_home(&orders, self.since(begun));
        let flow = outcome.unwrap_or_else(|reason| {
            board.failed.get_or_insert(HybridError::Unit { unit: "the CPU", reason });
            Flow::Cancelled
        });
        board.given_up |= flow == Flow::Cancelled;
        self.carry_out(&mut board);
        board
    }

    /// Waits for the fast unit, then gives the block up.
    fn give_up<'a>(&'a self, mut board: MutexGuard<'a, Board<J>>) -> MutexGuard<'a, Board<J>> {
        board.given_up = true;
        while board.fast_runs {
            board = self.wait(&self.for_driver, board);
        }
        if board.ended().is_none() {
            board.abandon(self.clock.now());
            self.carry_out(&mut board);
        }
        board
    }

    fn run_fast<F: FastUnit<Job = J>>(&self, fast: &mut F) {
        let _alarm = Alarm { shared: self, whose: "the device" };
        let mut board = self.lock();
        while !board.closing {
            let idle = board.fast.is_empty() || board.given_up;
            let Some(mut job) = (if idle { None } else { board.job.take() }) else {
                board = self.wait(&self.for_fast, board);
                continue;
            };
            let orders = std::mem::take(&mut board.fast);
            board.fast_runs = true;
            drop(board);
            let begun = self.clock.now();
            let outcome = fast.compute(&mut job, &orders);
            board = self.lock();
            board.job = Some(job);
            board.fast_runs = false;
            board.on_fast(&orders, self.since(begun));
            match outcome {
                Ok(Flow::Done) => {}
                Ok(Flow::Cancelled) => board.given_up = true,
                Err(reason) => {
                    board.failed.get_or_insert(HybridError::Unit { unit: "the device", reason });
                }
            }
            self.carry_out(&mut board);
            self.for_driver.notify_one();
        }
    }

    fn run_link<L: Link>(&self, link: &mut L) {
        let _alarm = Alarm { shared: self, whose: "the link" };
        let mut board = self.lock();
        while !board.closing {
            let early = board.early.pop_front();
            let is_early = early.is_some();
            let Some(order) = early.or_else(|| board.copies.pop_front()) else {
                board = self.wait(&self.for_link, board);
                continue;
            };
            board.link_runs = true;
            drop(board);
            let begun = self.clock.now();
            let copied = if is_early { link.preload(&order) } else { link.copy(&order) };
            board = self.lock();
            board.link_runs = false;
            match (is_early, copied) {
                (true, Ok(())) => {}
                (true, Err(reason)) => {
                    board.failed.get_or_insert(HybridError::Unit { unit: "the link", reason });
                }
                (false, copied) => {
                    board.on_copied(&order, copied.is_ok(), self.since(begun));
                    self.carry_out(&mut board);
                }
            }
            self.for_driver.notify_one();
        }
    }
}

/// Tells the driver when a thread ends by a panic, so that it does not wait for ever.
struct Alarm<'a, J> {
    shared: &'a Shared<J>,
    whose: &'static str,
}

impl<J> Drop for Alarm<'_, J> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut board = self.shared.lock();
            (board.fast_runs, board.link_runs) = (false, false);
            board.failed = Some(HybridError::ThreadEnded(self.whose));
            self.shared.for_driver.notify_all();
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "a driver owns threads")]
fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let thread = Builder::new().name(name.into());
    thread.spawn(body).expect("the system gives two more threads")
}
