//! The task that loads and unloads models, one at a time.

use super::offered::LoadError;
use super::{Loaded, Models};
use crate::app::App;
use crate::begin::begin;
use motley_engine::Phase;
use motley_engine::models::{ModelIndex, Step};
use std::sync::Arc;
use std::time::Duration;

/// Carries out what is decided, for as long as the server runs.
pub(crate) async fn keep(models: Arc<Models>) {
    loop {
        // Before the question, so that nothing changes unseen between the two.
        let changed = models.changed.notified();
        tokio::pin!(changed);
        changed.as_mut().enable();
        let now = models.now();
        let (step, wakes_at) = {
            let set = &mut models.loaded().set;
            (set.next_step(now), set.wakes_at())
        };
        match step {
            Some(Step::Load(model)) => load(&models, model).await,
            Some(Step::Unload(model)) => unload(&models, model).await,
            None => {
                let wait = wakes_at.map_or(Duration::MAX, |at| at.saturating_sub(now));
                let _ = tokio::time::timeout(wait, changed).await;
            }
        }
    }
}

async fn load(models: &Arc<Models>, model: ModelIndex) {
    let name = &models.offered[model].name;
    tracing::info!(target: "motley", model = name, "loading");
    let loading = Arc::clone(models);
    let made = tokio::task::spawn_blocking(move || loading.make(model));
    let made = made.await.unwrap_or_else(|panicked| Err(panicked.into()));
    let mut loaded = models.loaded();
    match made {
        Ok(app) => {
            loaded.apps[model] = Some(Arc::new(app));
            loaded.set.loaded(model, models.now());
        }
        Err(error) => {
            tracing::error!(target: "motley", model = name, "cannot be loaded: {error}");
            loaded.set.failed(model);
        }
    }
    drop(loaded);
    models.changed.notify_waiters();
}

/// Nobody uses it: the thread that computes ends with the last handle, and frees the weights.
async fn unload(models: &Models, model: ModelIndex) {
    let app = models.loaded().take(model);
    if let Some(app) = app {
        let ended = app.batching.ended();
        drop(app);
        ended.await;
    }
    tracing::info!(target: "motley", model = models.offered[model].name, "unloaded");
    models.loaded().set.unloaded(model);
    models.changed.notify_waiters();
}

impl Models {
    /// For the server's end, when no request uses a model. Done when nothing computes any more.
    pub(crate) async fn unload_all(&self) {
        let models = 0..self.offered.len();
        let apps: Vec<_> = models.filter_map(|model| self.loaded().take(model)).collect();
        let ended: Vec<_> = apps.iter().map(|app| app.batching.ended()).collect();
        drop(apps);
        for thread in ended {
            thread.await;
        }
    }

    /// Loads a model before anybody asks for it.
    pub(crate) fn load_now(&self, model: ModelIndex) -> Result<(), LoadError> {
        let app = self.make(model)?;
        let now = self.now();
        let mut loaded = self.loaded();
        loaded.apps[model] = Some(Arc::new(app));
        let claim = loaded.set.claim(model);
        let step = loaded.set.next_step(now);
        debug_assert_eq!(step, Some(Step::Load(model)), "the first to be asked for");
        loaded.set.loaded(model, now);
        loaded.set.release(claim, None, now);
        Ok(())
    }

    fn make(&self, model: ModelIndex) -> Result<App, LoadError> {
        let loaded = self.loader.load(model)?;
        Ok(begin(self, &self.offered[model].name, loaded)?)
    }
}

impl Loaded {
    fn take(&mut self, model: ModelIndex) -> Option<Arc<App>> {
        let app = self.apps[model].take()?;
        let figures = app.batching.figures();
        for (busy, phase) in self.past_busy.iter_mut().zip([Phase::Prefill, Phase::Decode]) {
            *busy += figures.busy_in(phase);
        }
        Some(app)
    }
}
