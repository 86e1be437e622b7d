//! Continuous batching: many answers at once on one context. Requests join and leave
//! between steps; one thread owns the context and does what `motley_sched::batch` says.
//!
//! * `worker`: that thread.
//! * `stream`: one request on its way: sampler, text, stop strings, log-probabilities.
//! * `stop`: stop strings in text that arrives in pieces.
//!
//! Sums inside ggml's kernels depend on how many rows are computed together and on
//! where keys lie in the cache, so a stream's last bits depend on its neighbours. With
//! [`BatchOptions::exact`] each stream has its own part of the cache and is computed by
//! itself, in the chunks a [`crate::Session`] would use: its tokens are those of a
//! session, whatever runs beside it.

mod stop;
mod stream;
mod worker;

pub use motley_sched::batch::Refused;
pub use stream::{Ask, Candidate, Done, Event, Piece, Reason, SaidToken};

use crate::blocks::figures::StreamFigures;
use crate::blocks::resident::ResidentExperts;
use crate::blocks::routing::RoutingWatcher;
use crate::{Engine, SessionError};
use motley_ggml::SeamCounts;
use motley_sched::batch;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use worker::Worker;

/// Shape of the context all requests share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchOptions {
    /// KV cache length in tokens, all sequences together.
    pub context_tokens: u32,
    /// Most requests answered at once.
    pub sequences: u16,
    /// Most tokens computed together.
    pub step_tokens: u32,
    /// Most prompt tokens computed in a step in which others decode: bounds the time
    /// between two tokens of a stream.
    pub prefill_beside_decode: u32,
    /// Most requests that wait for a sequence.
    pub waiting: usize,
    /// Each stream has an equal part of the cache to itself instead of a share of one:
    /// attention then looks at its own tokens only, which pays with many streams, and no
    /// stream can get longer than its part. Models whose memory cannot be cut share one.
    pub own_caches: bool,
    /// Each stream's tokens equal those of a session by itself.
    pub exact: bool,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            context_tokens: 8192,
            sequences: 16,
            step_tokens: 512,
            prefill_beside_decode: 128,
            waiting: 128,
            own_caches: false,
            exact: false,
        }
    }
}

/// Why a request was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The planner refuses it.
    #[error(transparent)]
    Refused(#[from] batch::Refused),
    /// No more requests are taken.
    #[error("the engine is shutting down")]
    Closed,
}

/// Counts of the batching thread so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchFigures {
    /// Where the planner stands.
    pub planner: batch::Figures,
    /// Steps computed.
    pub steps: u64,
    /// Prompt tokens computed.
    pub prompt_tokens: u64,
    /// Tokens sampled.
    pub answer_tokens: u64,
    /// Requests answered.
    pub answered: u64,
    /// Requests whose client went away.
    pub cancelled: u64,
    /// Requests that ended with an error.
    pub failed: u64,
    /// Of them steps in which streams decoded and no prompt was computed.
    pub decode_steps: u64,
    /// Time spent computing.
    pub busy: Duration,
    /// Of it in steps that only decoded.
    pub decode_busy: Duration,
    /// The longest step.
    pub longest_step: Duration,
    /// What went through the seam.
    pub seam: SeamCounts,
    /// What streaming did, when experts are read on demand.
    pub stream: Option<StreamFigures>,
}

/// The running batch: hands requests to its thread. Cheap to clone; the thread ends
/// when the last clone is gone and every answer is done.
#[derive(Clone)]
pub struct Batching {
    requests: mpsc::Sender<Incoming>,
    shared: Arc<Shared>,
    engine: Arc<Engine>,
    options: BatchOptions,
    longest: u32,
    resident: Option<Arc<ResidentExperts>>,
}

/// A request on its way to the thread.
struct Incoming {
    id: batch::RequestId,
    ask: Ask,
    events: mpsc::Sender<Event>,
}

/// What the thread and its handles share.
#[derive(Default)]
struct Shared {
    next_id: AtomicU64,
    /// Submitted and without a sequence.
    waiting: AtomicUsize,
    figures: Mutex<BatchFigures>,
}

impl Batching {
    /// Makes the context and starts its thread. `watcher` sees every routing decision.
    #[allow(clippy::disallowed_methods, reason = "a driver owns threads")]
    pub fn start(
        engine: Arc<Engine>,
        options: &BatchOptions,
        watcher: Option<Box<dyn RoutingWatcher>>,
    ) -> Result<Self, SessionError> {
        let (sender, receiver) = mpsc::channel(options.waiting.max(1));
        let shared = Arc::new(Shared::default());
        let worker = Worker::new(&engine, options, watcher, Arc::clone(&shared))?;
        let (longest, resident) = (worker.longest(), worker.resident());
        std::thread::spawn(move || worker.run(receiver));
        Ok(Self { requests: sender, shared, engine, options: *options, longest, resident })
    }

    /// Takes a request in. Its events arrive at the receiver; dropping the receiver
    /// stops it within one step.
    pub fn submit(&self, ask: Ask) -> Result<mpsc::Receiver<Event>, SubmitError> {
        self.check(&ask)?;
        // Never full: at most one event per token, and the end.
        let most = ask.max_tokens.min(self.longest as usize) + 2;
        let (events, receiver) = mpsc::channel(most);
        let id = batch::RequestId(self.shared.next_id.fetch_add(1, Relaxed));
        self.shared.waiting.fetch_add(1, Relaxed);
        match self.requests.try_send(Incoming { id, ask, events }) {
            Ok(()) => Ok(receiver),
            Err(error) => {
                let waiting = self.shared.waiting.fetch_sub(1, Relaxed) - 1;
                Err(match error {
                    mpsc::error::TrySendError::Full(_) => {
                        batch::Refused::QueueFull { waiting }.into()
                    }
                    mpsc::error::TrySendError::Closed(_) => SubmitError::Closed,
                })
            }
        }
    }

    /// Longest sequence: prompt and answer together.
    pub fn longest(&self) -> u32 {
        self.longest
    }

    /// The shape it was started with.
    pub fn options(&self) -> &BatchOptions {
        &self.options
    }

    /// The model.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Counts so far, as of the last step.
    pub fn figures(&self) -> BatchFigures {
        let mut figures = *self.shared.figures.lock().expect("no panic holds this lock");
        figures.planner.waiting = self.shared.waiting.load(Relaxed);
        figures
    }

    /// Which experts are in memory; `None` when all are.
    pub fn resident(&self) -> Option<&ResidentExperts> {
        self.resident.as_deref()
    }

    fn check(&self, ask: &Ask) -> Result<(), batch::Refused> {
        if ask.prompt.is_empty() {
            return Err(batch::Refused::Empty);
        }
        if ask.prompt.len() >= self.longest as usize {
            let tokens = ask.prompt.len();
            return Err(batch::Refused::TooLong { tokens, longest: self.longest });
        }
        let waiting = self.shared.waiting.load(Relaxed);
        if waiting >= self.options.waiting {
            return Err(batch::Refused::QueueFull { waiting });
        }
        Ok(())
    }
}
