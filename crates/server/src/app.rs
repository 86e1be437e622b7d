//! What every handler shares.

use crate::expert_counts::ExpertCounts;
use crate::metrics::Metrics;
use crate::options::ServeOptions;
use crate::tools::Format;
use motley_engine::Batching;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The state of a server.
pub(crate) struct App {
    pub(crate) batching: Batching,
    pub(crate) options: ServeOptions,
    pub(crate) metrics: Metrics,
    pub(crate) expert_counts: Arc<ExpertCounts>,
    /// How the model writes calls.
    pub(crate) format: Format,
    /// Whether the model's template has a place for tools.
    pub(crate) shows_tools: bool,
    /// When the server started, in Unix seconds.
    pub(crate) started_unix_s: u64,
    /// Set when a shutdown has begun.
    pub(crate) draining: AtomicBool,
}
