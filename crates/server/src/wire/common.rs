//! What both routes share.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// How tokens are chosen and when to stop; part of every request.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
pub struct SamplingFields {
    /// 0 takes the most likely token; 1 when absent.
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f32>,
    /// Keep the smallest set of tokens that reaches this probability.
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f32>,
    /// Keep tokens at least this times as likely as the best.
    #[schema(minimum = 0, maximum = 1)]
    pub min_p: Option<f32>,
    /// Keep so many of the most likely tokens; 0 keeps all.
    pub top_k: Option<u32>,
    /// -2 to 2: subtracted for any earlier occurrence.
    #[schema(minimum = -2, maximum = 2)]
    pub presence_penalty: Option<f32>,
    /// -2 to 2: subtracted per earlier occurrence.
    #[schema(minimum = -2, maximum = 2)]
    pub frequency_penalty: Option<f32>,
    /// Divides logits of earlier tokens; 1 is none.
    #[schema(minimum = 0.1, maximum = 10)]
    pub repeat_penalty: Option<f32>,
    /// The same seed gives the same draw.
    pub seed: Option<i64>,
    #[schema(minimum = 1, maximum = 16)]
    pub n: Option<u32>,
    /// Strings that end the response.
    pub stop: Option<Stop>,
    /// Send server-sent events.
    pub stream: Option<bool>,
    pub stream_options: Option<StreamOptions>,
    /// Added to the logits of tokens, -100 to 100; keys are tokens of the vocabulary.
    #[schema(value_type = Option<Object>)]
    pub logit_bias: Option<serde_json::Map<String, serde_json::Value>>,
    /// Continue past the model's end token.
    pub ignore_eos: Option<bool>,
}

/// A field that is an object or nothing. Left to itself, a type with named fields is read from a
/// list as well.
pub(super) fn object<'a, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'a>,
    T: DeserializeOwned,
{
    let fields = Option::<Map<String, Value>>::deserialize(deserializer)?;
    fields.map(|fields| T::deserialize(Value::Object(fields)).map_err(D::Error::custom)).transpose()
}

/// One stop string or several.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum Stop {
    One(String),
    Many(Vec<String>),
}

/// What else a stream contains.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
pub struct StreamOptions {
    /// A last chunk with the token counts.
    pub include_usage: Option<bool>,
}

/// Tokens of a request.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct Usage {
    pub prompt_tokens: usize,
    pub completion_tokens: usize,
    pub total_tokens: usize,
    pub prompt_tokens_details: UsageDetails,
}

/// More about a prompt's tokens.
#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
pub struct UsageDetails {
    /// Tokens that an earlier request had computed already.
    pub cached_tokens: usize,
}

/// A model that is served.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Model {
    /// Name in requests.
    pub id: String,
    /// Always `model`.
    pub object: &'static str,
    /// When the server loaded it, in Unix seconds.
    pub created: u64,
    /// Always `motley`.
    pub owned_by: &'static str,
}

/// The models that are served: one.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ModelList {
    /// Always `list`.
    pub object: &'static str,
    pub data: Vec<Model>,
}
