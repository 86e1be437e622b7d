//! What requests for one loaded model share.

use crate::error::ApiError;
use crate::expert_counts::ExpertCounts;
use crate::kept::Kept;
use crate::metrics::Metrics;
use crate::options::ServeOptions;
use motley_engine::batching::Health;
use motley_engine::text::output::OutputFormat;
use motley_engine::{Batching, SubmitError};
use std::sync::Arc;

/// A model that answers.
pub(crate) struct App {
    /// Its name in requests.
    pub(crate) name: String,
    pub(crate) batching: Batching,
    pub(crate) options: Arc<ServeOptions>,
    pub(crate) metrics: Arc<Metrics>,
    /// Responses that others may continue.
    pub(crate) kept: Arc<Kept>,
    pub(crate) expert_counts: Arc<ExpertCounts>,
    /// How the model writes thoughts and calls.
    pub(crate) format: OutputFormat,
    /// Whether the model's template has a place for tools.
    pub(crate) shows_tools: bool,
    /// Bytes of a prompt's text; a longer one has more tokens than fit.
    pub(crate) prompt_bytes_max: usize,
}

impl App {
    /// Requests that wait in the engine.
    pub(crate) fn queued(&self) -> usize {
        self.batching.figures().planner.waiting
    }

    /// JSON values of prompts given as tokens, in the largest request that is not refused.
    pub(crate) fn prompt_values(&self) -> usize {
        self.batching.longest() as usize * self.options.limits.choices as usize
    }

    /// What a client is told of a request that failed. Reasons may name files of this machine, so
    /// they go to its log only.
    pub(crate) fn failed(&self, reason: &str) -> ApiError {
        tracing::error!(target: "motley", reason, "a request failed");
        let message = "the engine could not compute this; the server's log says why";
        self.check_alive().err().unwrap_or_else(|| ApiError::server(message))
    }

    /// Refuses what nobody would answer.
    pub(crate) fn check_alive(&self) -> Result<(), ApiError> {
        match self.batching.health() {
            Health::Dead { .. } => Err(SubmitError::Dead.into()),
            Health::Answering | Health::Failing { .. } => Ok(()),
        }
    }
}
