//! The models of a server: found by name, loaded when somebody asks, unloaded when idle or when
//! another needs the room. Which and when is decided by [`motley_engine::models`]; this carries it
//! out.
//!
//! * [`offered`]: what is known of each, and who loads them.
//! * `in_use`: a model that stays while a request uses it.
//! * `keeper`: the task that loads and unloads.

mod in_use;
mod keeper;
pub mod offered;

pub(crate) use in_use::InUse;
pub(crate) use keeper::keep;

use crate::app::App;
use crate::clock::unix_s;
use crate::error::ApiError;
use crate::gate::Gate;
use crate::kept::Kept;
use crate::metrics::Metrics;
use crate::options::{ServeLimits, ServeOptions};
use axum::http::StatusCode;
use motley_engine::Phase;
use motley_engine::admission::AdmissionLimits;
use motley_engine::models::{ModelIndex, ModelSet};
use offered::{Loader, Memory, OfferedModel, OfferedModels};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore};

/// What every handler shares, whichever models are loaded.
pub(crate) struct Models {
    pub(crate) options: Arc<ServeOptions>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) metrics: Arc<Metrics>,
    /// Responses that others may continue.
    pub(crate) kept: Arc<Kept>,
    /// When the server started, in Unix seconds.
    pub(crate) started_unix_s: u64,
    /// Set when a shutdown has begun.
    pub(crate) draining: AtomicBool,
    pub(crate) offered: Vec<OfferedModel>,
    pub(crate) memories: Vec<Memory>,
    loader: Arc<dyn Loader>,
    /// Those whose bodies are looked at for a model's name.
    pub(crate) looking: Semaphore,
    loaded: Mutex<Loaded>,
    /// Somebody asked for a model or left, or one was loaded or unloaded.
    changed: Notify,
    started: Instant,
}

/// Which models are here.
pub(crate) struct Loaded {
    pub(crate) set: ModelSet,
    /// As long as there are models.
    pub(crate) apps: Vec<Option<Arc<App>>>,
    /// Time that models spent computing that are here no longer: prefill, decode.
    past_busy: [Duration; 2],
}

impl Models {
    /// None is loaded.
    pub(crate) fn new(offered: OfferedModels, options: ServeOptions) -> Self {
        let OfferedModels { models, memories, keep_alive, loader } = offered;
        let rooms = memories.iter().map(|memory| memory.bytes).collect();
        let needs = models.iter().map(|model| model.needs.clone()).collect();
        let set = ModelSet::new(rooms, needs, keep_alive);
        let gate = Gate::new(admission_limits(&options.limits));
        Self {
            metrics: Arc::new(Metrics::new(Arc::clone(&options.energy))),
            gate,
            kept: Arc::new(Kept::default()),
            started_unix_s: unix_s(),
            draining: AtomicBool::new(false),
            loaded: Mutex::new(Loaded {
                set,
                apps: vec![None; models.len()],
                past_busy: Default::default(),
            }),
            offered: models,
            memories,
            loader,
            looking: Semaphore::new(options.limits.preparers),
            changed: Notify::new(),
            started: Instant::now(),
            options: Arc::new(options),
        }
    }

    /// A model by its name in a request; the first where none is named. A server with one model
    /// answers to any name unless it is strict: most programs have one built in.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<ModelIndex, ApiError> {
        let Some(name) = name else { return Ok(0) };
        // Ollama's programs add a tag to names without one.
        let plain = name.strip_suffix(":latest").unwrap_or(name);
        let found = self.offered.iter().position(|model| [name, plain].contains(&&*model.name));
        match found {
            Some(model) => Ok(model),
            None if self.offered.len() == 1 && !self.options.strict_model => Ok(0),
            None => Err(self.unknown()),
        }
    }

    /// The models that are loaded, in the list's order.
    pub(crate) fn apps(&self) -> Vec<Arc<App>> {
        self.loaded().apps.iter().flatten().map(Arc::clone).collect()
    }

    /// A loaded model by name; without one the first that is.
    pub(crate) fn app(&self, name: Option<&str>) -> Result<Arc<App>, ApiError> {
        let loaded = match name {
            Some(_) => self.loaded().apps[self.find(name)?].as_ref().map(Arc::clone),
            None => self.apps().into_iter().next(),
        };
        let message = "the model is not loaded; the first request for it loads it";
        loaded.ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "model_not_loaded", message))
    }

    /// Most tokens of a prompt and its answer together.
    pub(crate) fn longest(&self, model: ModelIndex) -> u32 {
        let loaded = self.loaded();
        let here = loaded.apps[model].as_ref().map(|app| app.batching.longest());
        here.unwrap_or(self.offered[model].longest)
    }

    /// Requests that wait: in engines, or for a model.
    pub(crate) fn queued(&self) -> usize {
        let loaded = self.loaded();
        let engines = loaded.apps.iter().flatten().map(|app| app.queued());
        let waiting = (0..self.offered.len()).map(|model| loaded.set.requests(model).1);
        engines.chain(waiting).sum()
    }

    /// JSON values of prompts given as tokens, in the largest request that is not refused.
    pub(crate) fn prompt_values(&self) -> usize {
        let longest = self.offered.iter().map(|model| model.longest as usize).max();
        longest.unwrap_or(0).saturating_mul(self.options.limits.choices as usize)
    }

    /// Time spent on steps of `phase` since the start, by all models.
    pub(crate) fn busy_in(&self, phase: Phase) -> Duration {
        let loaded = self.loaded();
        let here = loaded.apps.iter().flatten().map(|app| app.batching.figures().busy_in(phase));
        here.sum::<Duration>() + loaded.past_busy[usize::from(phase == Phase::Decode)]
    }

    /// Refuses what nobody would answer.
    pub(crate) fn check_alive(&self) -> Result<(), ApiError> {
        self.apps().iter().try_for_each(|app| app.check_alive())
    }

    /// Usable after a panic: [`ModelSet`] panics nowhere between two changes.
    pub(crate) fn loaded(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the server started, as the set of models counts it.
    pub(crate) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// What is said of a name that no model has.
    pub(crate) fn unknown(&self) -> ApiError {
        let names: Vec<_> = self.offered.iter().map(|model| format!("`{}`", model.name)).collect();
        let message = format!("unknown model; this server has {}", names.join(", "));
        ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message)
    }
}

/// The engines' own queues are as long as that before them: what waits in any counts for all.
fn admission_limits(limits: &ServeLimits) -> AdmissionLimits {
    AdmissionLimits {
        waiting: limits.waiting,
        body_bytes: limits.bodies_bytes,
        preparers: limits.preparers,
    }
}
