//! One worker on a thread of its own: asks and waits for it, so that the driver computes meanwhile,
//! and looks for it again when it was lost.

use crate::clock::now;
use motley_wire::frame::Rows;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Pauses between two attempts to reach a lost worker: the first, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What a worker says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Welcomed {
    /// Its ggml and CPU.
    pub build: String,
    /// Layers it computes.
    pub layers: Vec<u16>,
    /// First expert of each, and one past the last.
    pub experts: (u16, u16),
}

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// One row for each that was asked for.
    pub rows: Vec<f32>,
    /// Time the worker says it took to compute them, in microseconds.
    pub compute_us: u32,
}

/// A connection to a worker.
pub trait Exchange: Send {
    /// Rows there, and rows back: one each, in their order. After an error it is not used again.
    fn exchange(&mut self, block: u64, rows: Rows, deadline: Duration) -> Result<Answer, String>;

    /// Bytes of frames so far: sent, received.
    fn counts(&self) -> (u64, u64);
}

/// Makes a connection to a worker, which computes what it said when it was first reached.
pub type Connect = Arc<dyn Fn() -> Result<Box<dyn Exchange>, String> + Send + Sync>;

/// Rows for a worker.
pub(super) struct Job {
    pub(super) block: u64,
    pub(super) rows: Rows,
    pub(super) deadline: Duration,
}

/// What came of a job.
pub(super) struct Returned {
    pub(super) answer: Result<Answer, String>,
    pub(super) took: Duration,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
}

/// The thread.
pub(super) struct LaneThread {
    /// `None` when it is to end.
    jobs: Option<Sender<Job>>,
    returned: Receiver<Returned>,
    first: Receiver<Result<(), String>>,
    /// Whether it has a connection.
    connected: Arc<AtomicBool>,
    /// Whether the one it has is not to be used any more.
    forgotten: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LaneThread {
    #[allow(clippy::disallowed_methods, reason = "a driver owns threads")]
    pub(super) fn start(connect: Connect) -> Self {
        let (jobs, for_thread) = channel();
        let (answers, returned) = channel();
        let (reached, first) = channel();
        let connected = Arc::new(AtomicBool::new(false));
        let forgotten = Arc::new(AtomicBool::new(false));
        let state = State {
            lane: None,
            connect,
            connected: Arc::clone(&connected),
            forgotten: Arc::clone(&forgotten),
            pause: FIRST_PAUSE,
        };
        let name = std::thread::Builder::new().name("motley-lane".into());
        let begin = move || {
            let mut state = state;
            // Whoever started it may not want to know any more.
            let _ = reached.send(state.reconnect());
            state.run(&for_thread, &answers);
        };
        let thread = name.spawn(begin).ok();
        Self { jobs: Some(jobs), returned, first, connected, forgotten, thread }
    }

    /// What came of the first attempt to connect; waits for it. Once.
    pub(super) fn first(&self) -> Result<(), String> {
        self.first.recv().unwrap_or_else(|_| Err("its thread has ended".into()))
    }

    /// Hands a job over; each comes back by one [`LaneThread::wait`], in their order.
    pub(super) fn ask(&self, job: Job) {
        // Without its thread nothing comes back, which `wait` says.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    /// The oldest job that has not been waited for.
    pub(super) fn wait(&self) -> Returned {
        self.returned.recv().unwrap_or_else(|_| Returned {
            answer: Err("its thread has ended".into()),
            took: Duration::ZERO,
            sent_bytes: 0,
            received_bytes: 0,
        })
    }

    /// Whether it has been reached again.
    pub(super) fn is_back(&self) -> bool {
        self.connected.load(Ordering::Acquire)
    }

    /// Its connection is given up: what came over it was wrong.
    pub(super) fn forget(&self) {
        self.connected.store(false, Ordering::Release);
        self.forgotten.store(true, Ordering::Release);
    }
}

impl Drop for LaneThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct State {
    lane: Option<Box<dyn Exchange>>,
    connect: Connect,
    connected: Arc<AtomicBool>,
    forgotten: Arc<AtomicBool>,
    pause: Duration,
}

impl State {
    fn run(mut self, jobs: &Receiver<Job>, answers: &Sender<Returned>) {
        use std::sync::mpsc::RecvTimeoutError;
        loop {
            self.forget_if_told();
            let next = match self.lane {
                Some(_) => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                None => jobs.recv_timeout(self.pause),
            };
            match next {
                Ok(job) => {
                    self.forget_if_told();
                    if answers.send(self.do_job(job)).is_err() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => drop(self.reconnect()),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn do_job(&mut self, job: Job) -> Returned {
        let begun = now();
        let before = self.lane.as_ref().map_or((0, 0), |lane| lane.counts());
        let answer = match &mut self.lane {
            Some(lane) => lane.exchange(job.block, job.rows, job.deadline),
            None => Err("it is lost".into()),
        };
        let after = self.lane.as_ref().map_or((0, 0), |lane| lane.counts());
        if answer.is_err() {
            self.lose();
        }
        Returned {
            answer,
            took: begun.elapsed(),
            sent_bytes: after.0 - before.0,
            received_bytes: after.1 - before.1,
        }
    }

    fn forget_if_told(&mut self) {
        if self.forgotten.swap(false, Ordering::AcqRel) {
            self.lose();
        }
    }

    fn lose(&mut self) {
        self.lane = None;
        self.connected.store(false, Ordering::Release);
    }

    fn reconnect(&mut self) -> Result<(), String> {
        let lane = (self.connect)();
        if lane.is_err() {
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        self.lane = Some(lane?);
        self.pause = FIRST_PAUSE;
        self.connected.store(true, Ordering::Release);
        Ok(())
    }
}
