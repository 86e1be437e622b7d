//! Continuous batching: many answers at once on one context. Requests join and leave
//! between steps; one thread owns the context and does what `motley_sched::batch` says.
//!
//! * `door`: where requests are handed in; `supervise`: the thread, and what its end means.
//! * `worker`: what it does; `compute`: what that needs of a context; `llama`: llama.cpp's as that.
//! * `segments`: beginnings of prompts as files.
//! * `shared`: what thread and handles share; `health`: whether answers come.
//! * `stream`: one request on its way: sampler, text, stop strings, log-probabilities.
//! * `stop`: stop strings in text that arrives in pieces; `times`: where a request's time goes.
//! * `turns`: models in one process compute one step at a time.
//!
//! Sums inside ggml's kernels depend on how many rows are computed together and on
//! where keys lie in the cache, so a stream's last bits depend on its neighbours. With
//! [`BatchOptions::exact`] each stream has its own part of the cache and is computed by
//! itself, in the chunks a [`crate::Session`] would use: its tokens are those of a
//! session, whatever runs beside it.

mod compute;
mod door;
mod health;
mod llama;
mod segments;
mod shared;
mod stop;
mod stream;
mod supervise;
mod times;
mod turns;
mod worker;

pub use compute::{Compute, ComputeError, ComputeFigures};
pub use door::{Door, SubmitError, open};
pub use health::{FAILING_FOR, Health};
pub use motley_ggml::BatchToken;
pub use motley_sched::batch::{
    Client, ClientId, Priority, Refused, Segment, SegmentKey, SegmentLengths, SegmentLimits,
    StateId,
};
pub use segments::PrefixCache;
pub use shared::{BatchFigures, BatchOptions};
pub use stream::{Ask, Candidate, Done, Event, Piece, Reason, SaidToken};
pub use supervise::{Supervised, Turn};
pub use times::AnswerTimes;

use crate::blocks::resident::ExpertPlaces;
use crate::blocks::routing::RoutingWatcher;
use crate::clock::WallClock;
use crate::{Engine, SessionError};
use llama::LlamaCompute;
use motley_ggml::give_back_freed;
use std::ops::Deref;
use std::sync::Arc;
use tokio::sync::watch;

/// The running batch of a model: hands requests to its thread. Cheap to clone; the thread ends
/// when the last clone is gone and every answer is done.
#[derive(Clone)]
pub struct Batching {
    /// Dropped before the door: what the thread frees last is then all there is.
    engine: Arc<Engine>,
    door: Door,
    places: Option<ExpertPlaces>,
    /// Nothing is ever sent; closed when the thread has ended.
    thread: watch::Receiver<()>,
}

impl Batching {
    /// Makes the context and starts its thread. Beginnings of prompts are kept in `prefixes` too,
    /// where streams share a cache. `watcher` sees every routing decision.
    #[allow(clippy::disallowed_methods, reason = "a driver owns threads")]
    pub fn start(
        engine: Arc<Engine>,
        options: &BatchOptions,
        prefixes: Option<&PrefixCache>,
        watcher: Option<Box<dyn RoutingWatcher>>,
    ) -> Result<Self, SessionError> {
        let sharing = options.sharing(engine.keeps_every_position());
        let compute = LlamaCompute::new(&engine, options, sharing, prefixes, watcher)?;
        let places = compute.places();
        let (door, supervised) = open(compute, options, sharing, Arc::new(WallClock::start()));
        let (alive, thread) = watch::channel(());
        std::thread::spawn(move || {
            supervised.run();
            give_back_freed();
            drop(alive);
        });
        Ok(Self { engine, door, places, thread })
    }

    /// The model.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Done when the thread has ended and given back all it held: some time after the last clone of
    /// this is gone.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut thread = self.thread.clone();
        async move { while thread.changed().await.is_ok() {} }
    }

    /// Where experts are; `None` when all are in memory alone.
    pub fn places(&self) -> Option<&ExpertPlaces> {
        self.places.as_ref()
    }
}

/// Requests go in through the door.
impl Deref for Batching {
    type Target = Door;

    fn deref(&self) -> &Door {
        &self.door
    }
}
