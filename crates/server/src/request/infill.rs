//! llama.cpp's `/infill`: a text with a gap to be filled.

use super::gap::gap_prompt;
use super::params::{self, CheckedParams};
use super::{PreparedRequest, log_text, prepared, schema};
use crate::app::App;
use crate::error::ApiError;
use crate::wire::InfillRequest;
use motley_engine::batching::Ask;
use motley_engine::text::output::OutputFormat;

/// Checks a text with a gap.
pub(crate) fn prepare_infill(
    app: &App,
    request: &InfillRequest,
) -> Result<PreparedRequest, ApiError> {
    let checked: CheckedParams = params::check(&request.sampling, app)?;
    if checked.choices != 1 {
        return Err(ApiError::invalid("n", "one answer at a time"));
    }
    let before = format!("{}{}", request.input_prefix, request.prompt.as_deref().unwrap_or(""));
    let constraint = schema::text_constraint(app, &request.form)?;
    let prompt = gap_prompt(app, "input_suffix", [&before, &request.input_suffix])?;
    let most = match request.n_predict {
        None | Some(-1) => None,
        Some(most) => Some(u32::try_from(most).unwrap_or(0)),
    };
    params::check_count("n_predict", most)?;
    let max_tokens = params::max_tokens(app, most, prompt.len())?;
    log_text(app, || vec![before.clone(), request.input_suffix.clone()]);
    let ask = Ask { prompt, constraint, max_tokens, ..checked.ask(0) };
    Ok(prepared(vec![ask], OutputFormat::PLAIN, &checked, vec![String::new()]))
}
