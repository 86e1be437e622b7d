//! What requests for a model share, made when it is loaded. Listens to nobody.

use crate::app::App;
use crate::expert_counts::ExpertCounts;
use crate::models::Models;
use crate::models::offered::LoadedModel;
use crate::request::size::prompt_bytes_max;
use motley_engine::{Batching, SessionError};
use std::sync::Arc;

/// Makes the context and starts its thread.
pub(crate) fn begin(models: &Models, name: &str, loaded: LoadedModel) -> Result<App, SessionError> {
    let LoadedModel { engine, batch, prefix_cache } = loaded;
    let expert_counts = Arc::new(ExpertCounts::new(engine.spec()));
    let watcher = ExpertCounts::watcher(&expert_counts);
    let template = engine.chat_template().unwrap_or_default();
    let format = engine.output_format();
    let batching = Batching::start(engine, &batch, prefix_cache.as_ref(), Some(watcher))?;
    Ok(App {
        name: name.to_owned(),
        options: Arc::clone(&models.options),
        metrics: Arc::clone(&models.metrics),
        kept: Arc::clone(&models.kept),
        prompt_bytes_max: prompt_bytes_max(batching.engine(), batching.longest()),
        batching,
        expert_counts,
        format,
        shows_tools: template.contains("tools"),
    })
}
