//! Two texts and the gap between them as a prompt: for `suffix` of `/v1/completions` and for `/infill`.

use super::size;
use crate::app::App;
use crate::error::ApiError;
use std::sync::Arc;

/// Tokens that ask for what belongs between two texts; `param` is the field that asks for it.
pub(super) fn gap_prompt(
    app: &App,
    param: &'static str,
    texts: [&str; 2],
) -> Result<Arc<[i32]>, ApiError> {
    let engine = app.batching.engine();
    let Some(marks) = engine.infill_tokens() else {
        let model = &app.name;
        let words = format!("`{param}`: `{model}` has no tokens that mark a gap in a text (FIM)");
        return Err(ApiError::invalid(param, words));
    };
    size::check_text(app, param, texts[0].len().saturating_add(texts[1].len()))?;
    let tokens = engine.infill_prompt(marks, texts, app.batching.longest() as usize);
    tokens.map(Arc::from).map_err(|error| ApiError::invalid(param, error.to_string()))
}
