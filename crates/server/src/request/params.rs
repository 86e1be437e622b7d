//! Sampling fields and limits, checked.

use super::tokens::check_token;
use crate::app::App;
use crate::error::ApiError;
use crate::wire::{SamplingFields, Stop};
use motley_engine::Sampling;
use motley_engine::TokenBias;
use motley_engine::batching::Ask;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Stop strings of a request, and bytes of each.
const STOPS_MAX: usize = 16;
const STOP_BYTES_MAX: usize = 256;
/// Tokens of `logit_bias`, and how far each may go up or down.
const BIASES_MAX: usize = 1024;
const BIAS_MAX: f64 = 100.0;
/// Alternatives listed for a token.
const TOP_LOGPROBS_MAX: u32 = 20;
/// The largest number of tokens that can be asked for.
const COUNT_MAX: u32 = i32::MAX as u32;

/// Fields that are within their ranges.
pub(crate) struct CheckedParams {
    sampling: Sampling,
    biases: Arc<[TokenBias]>,
    stop: Arc<[String]>,
    ignore_end: bool,
    pub(super) choices: u32,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
}

impl CheckedParams {
    /// What all choices share; each draws with its own seed.
    pub(super) fn ask(&self, choice: u32) -> Ask {
        let seed = self.sampling.seed.wrapping_add(choice);
        Ask {
            sampling: Sampling { seed, ..self.sampling },
            biases: Arc::clone(&self.biases),
            stop: Arc::clone(&self.stop),
            ignore_end: self.ignore_end,
            ..Ask::default()
        }
    }
}

/// Checks every field.
pub(crate) fn check(fields: &SamplingFields, app: &App) -> Result<CheckedParams, ApiError> {
    let choices = fields.n.unwrap_or(1);
    let most = app.options.limits.choices;
    if choices == 0 || choices > most {
        return Err(ApiError::invalid("n", format!("`n` must be from 1 to {most}")));
    }
    Ok(CheckedParams {
        sampling: sampling(fields, app.batching.longest())?,
        biases: biases(fields.logit_bias.as_ref(), app)?,
        stop: stops(fields.stop.as_ref())?,
        ignore_end: fields.ignore_eos.unwrap_or(false),
        choices,
        stream: fields.stream.unwrap_or(false),
        include_usage: fields.stream_options.and_then(|o| o.include_usage).unwrap_or(false),
    })
}

fn sampling(fields: &SamplingFields, longest: u32) -> Result<Sampling, ApiError> {
    Ok(Sampling {
        temperature: within("temperature", fields.temperature, 1.0, 0.0, 2.0)?,
        top_k: fields.top_k.unwrap_or(0).min(i32::MAX as u32),
        top_p: within("top_p", fields.top_p, 1.0, 0.0, 1.0)?,
        min_p: within("min_p", fields.min_p, 0.0, 0.0, 1.0)?,
        repeat_penalty: within("repeat_penalty", fields.repeat_penalty, 1.0, 0.1, 10.0)?,
        repeat_window: longest,
        frequency_penalty: within("frequency_penalty", fields.frequency_penalty, 0.0, -2.0, 2.0)?,
        presence_penalty: within("presence_penalty", fields.presence_penalty, 0.0, -2.0, 2.0)?,
        seed: fields.seed.map_or_else(|| fastrand::u32(..), |seed| seed as u32),
    })
}

fn within(
    name: &'static str,
    value: Option<f32>,
    default: f32,
    least: f32,
    most: f32,
) -> Result<f32, ApiError> {
    let value = value.unwrap_or(default);
    // Not written as `value < least`: NaN fails as well.
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(ApiError::invalid(name, format!("`{name}` must be from {least} to {most}")))
}

/// From `{"token": bias}`, keys as texts.
fn biases(biases: Option<&Map<String, Value>>, app: &App) -> Result<Arc<[TokenBias]>, ApiError> {
    let Some(biases) = biases else { return Ok(Arc::default()) };
    if biases.len() > BIASES_MAX {
        let message = format!("at most {BIASES_MAX} tokens in `logit_bias`");
        return Err(ApiError::invalid("logit_bias", message));
    }
    let bias = |(token, bias): (&String, &Value)| {
        let bias = bias.as_f64().filter(|bias| bias.abs() <= BIAS_MAX);
        let (Ok(token), Some(bias)) = (token.parse(), bias) else {
            let message = "`logit_bias` must have tokens as keys and -100 to 100 as values";
            return Err(ApiError::invalid("logit_bias", message));
        };
        check_token(app, "logit_bias", token)?;
        Ok(TokenBias { token, bias: bias as f32 })
    };
    biases.iter().map(bias).collect()
}

fn stops(stop: Option<&Stop>) -> Result<Arc<[String]>, ApiError> {
    let stops = match stop {
        None => &[],
        Some(Stop::One(one)) => std::slice::from_ref(one),
        Some(Stop::Many(many)) => many.as_slice(),
    };
    if stops.len() > STOPS_MAX || stops.iter().any(|stop| stop.len() > STOP_BYTES_MAX) {
        let message = format!("at most {STOPS_MAX} stop strings of {STOP_BYTES_MAX} bytes");
        return Err(ApiError::invalid("stop", message));
    }
    Ok(stops.into())
}

/// How many alternatives to list per token; `None` without log-probabilities.
pub(crate) fn candidates(
    logprobs: Option<bool>,
    top: Option<u32>,
) -> Result<Option<usize>, ApiError> {
    let top = top.unwrap_or(0);
    if top > TOP_LOGPROBS_MAX {
        let message = format!("at most {TOP_LOGPROBS_MAX} alternatives");
        return Err(ApiError::invalid("top_logprobs", message));
    }
    match logprobs {
        Some(true) => Ok(Some(top as usize)),
        _ if top > 0 => {
            Err(ApiError::invalid("top_logprobs", "`top_logprobs` needs `logprobs: true`"))
        }
        _ => Ok(None),
    }
}

/// Refuses a number of tokens that is 0, or more than any engine counts to.
pub(crate) fn check_count(param: &'static str, requested: Option<u32>) -> Result<(), ApiError> {
    if requested.is_none_or(|tokens| (1..=COUNT_MAX).contains(&tokens)) {
        return Ok(());
    }
    Err(ApiError::invalid(param, format!("`{param}` must be from 1 to {COUNT_MAX}")))
}

/// Most tokens of a response: what was requested, and what is left of the context.
pub(crate) fn max_tokens(
    app: &App,
    requested: Option<u32>,
    prompt: usize,
) -> Result<usize, ApiError> {
    check_count("max_tokens", requested)?;
    let left = (app.batching.longest() as usize).saturating_sub(prompt).max(1);
    Ok(requested.map_or(left, |requested| left.min(requested as usize)))
}
