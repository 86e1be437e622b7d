//! A model that stays while a request uses it, and the wait for it.

use super::Models;
use crate::app::App;
use crate::error::ApiError;
use axum::http::StatusCode;
use motley_engine::models::{Claim, ClaimState, KeepAlive, ModelIndex};
use std::ops::Deref;
use std::sync::Arc;

/// A loaded model; not unloaded before this is dropped.
pub(crate) struct InUse {
    app: Arc<App>,
    _place: Place,
}

impl Deref for InUse {
    type Target = App;

    fn deref(&self) -> &App {
        &self.app
    }
}

impl InUse {
    /// For threads that prepare; to be dropped before this.
    pub(crate) fn app(&self) -> Arc<App> {
        Arc::clone(&self.app)
    }
}

/// A request's claim on a model, given back when dropped.
struct Place {
    models: Arc<Models>,
    claim: Claim,
    keep_alive: Option<KeepAlive>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let now = self.models.now();
        self.models.loaded().set.release(self.claim, self.keep_alive, now);
        self.models.changed.notify_waiters();
    }
}

impl Models {
    /// Waits until a model is here, and keeps it; afterwards it stays for `keep_alive`, or as long
    /// as the server says.
    pub(crate) async fn use_model(
        self: &Arc<Self>,
        model: ModelIndex,
        keep_alive: Option<KeepAlive>,
    ) -> Result<InUse, ApiError> {
        let claim = self.loaded().set.claim(model);
        let place = Place { models: Arc::clone(self), claim, keep_alive };
        self.changed.notify_waiters();
        loop {
            // Before the question, so that nothing changes unseen between the two.
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if let Some(app) = self.claimed(claim)? {
                return Ok(InUse { app, _place: place });
            }
            changed.await;
        }
    }

    fn claimed(&self, claim: Claim) -> Result<Option<Arc<App>>, ApiError> {
        let loaded = self.loaded();
        match loaded.set.state_of(claim) {
            ClaimState::Ready => Ok(loaded.apps[claim.model].as_ref().map(Arc::clone)),
            ClaimState::Waiting => Ok(None),
            ClaimState::Failed => {
                let name = &self.offered[claim.model].name;
                let message =
                    format!("the model `{name}` could not be loaded; the server's log says why");
                Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "model_not_loaded", message))
            }
        }
    }
}
