//! What handlers share, made of an engine and options. Listens to nobody.

use crate::app::App;
use crate::clock::unix_s;
use crate::expert_counts::ExpertCounts;
use crate::gate::Gate;
use crate::kept::Kept;
use crate::metrics::Metrics;
use crate::options::{ServeLimits, ServeOptions};
use crate::request::size::prompt_bytes_max;
use motley_engine::admission::AdmissionLimits;
use motley_engine::{BatchOptions, Batching, Engine, SessionError};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Makes the context and starts its thread.
pub(crate) fn begin(
    engine: Arc<Engine>,
    batch: &BatchOptions,
    options: ServeOptions,
) -> Result<App, SessionError> {
    let expert_counts = Arc::new(ExpertCounts::new(engine.spec()));
    let watcher = ExpertCounts::watcher(&expert_counts);
    let template = engine.chat_template().unwrap_or_default();
    let format = engine.output_format();
    let batching = Batching::start(engine, batch, options.prefix_cache.as_ref(), Some(watcher))?;
    let gate = Gate::new(admission_limits(batch, &options.limits));
    Ok(App {
        metrics: Metrics::new(batching.clone(), Arc::clone(&gate), Arc::clone(&options.energy)),
        gate,
        prompt_bytes_max: prompt_bytes_max(batching.engine(), batching.longest()),
        batching,
        options,
        expert_counts,
        kept: Arc::new(Kept::default()),
        format,
        shows_tools: template.contains("tools"),
        started_unix_s: unix_s(),
        draining: AtomicBool::new(false),
    })
}

/// The engine's own queue is as long as that before it: what waits in either counts for both.
fn admission_limits(batch: &BatchOptions, limits: &ServeLimits) -> AdmissionLimits {
    AdmissionLimits {
        waiting: batch.waiting,
        body_bytes: limits.bodies_bytes,
        preparers: limits.preparers,
    }
}
