//! Numbers of a model's shape from its metadata, with llama.cpp's defaults
//! (`llama_model_base::load_hparams`). Knows keys, not tensors.

use serde::Serialize;

use crate::error::SpecError;
use crate::gguf::{MetaValue, Metadata};

/// Most layers a model may have (`LLAMA_MAX_LAYERS`).
pub const MAX_LAYERS: u64 = 512;
/// Most experts a layer may have (`LLAMA_MAX_EXPERTS`).
pub const MAX_EXPERTS: u64 = 1024;

/// Metadata of one architecture: keys are looked up as `<architecture>.<key>`.
pub(crate) struct Keys<'a> {
    metadata: &'a Metadata,
    /// `general.architecture`.
    pub(crate) architecture: &'a str,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(metadata: &'a Metadata) -> Result<Self, SpecError> {
        let architecture = metadata
            .get("general.architecture")
            .and_then(MetaValue::as_str)
            .ok_or(SpecError::Missing { key: "general.architecture".into() })?;
        Ok(Self { metadata, architecture })
    }

    /// The value of `<architecture>.<key>`.
    pub(crate) fn get(&self, key: &str) -> Option<&'a MetaValue> {
        self.metadata.get(&self.full(key))
    }

    /// `<architecture>.<key>`.
    pub(crate) fn full(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    /// A count, if the file says it.
    pub(crate) fn count(&self, key: &str) -> Result<Option<u64>, SpecError> {
        self.per_layer(key, 0)
    }

    /// A count that must be there.
    pub(crate) fn required(&self, key: &str) -> Result<u64, SpecError> {
        self.count(key)?.ok_or_else(|| SpecError::Missing { key: self.full(key) })
    }

    /// A count that must be there and not exceed `limit`.
    pub(crate) fn bounded(&self, key: &str, limit: u64) -> Result<Option<u32>, SpecError> {
        match self.count(key)? {
            Some(value) if value > limit => {
                Err(SpecError::TooLarge { key: self.full(key), value, limit })
            }
            value => Ok(value.map(|value| value as u32)),
        }
    }

    /// A count that is one number for all layers or an array with one for each.
    pub(crate) fn per_layer(&self, key: &str, layer: u32) -> Result<Option<u64>, SpecError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let count = match value {
            MetaValue::Array(array) => array.get_u64(layer as usize),
            scalar => scalar.as_u64(),
        };
        // A value that must fit 32 bits in llama.cpp keeps every product below 2^64 here.
        match count.and_then(|count| u32::try_from(count).ok()) {
            Some(count) => Ok(Some(count.into())),
            None => Err(SpecError::NotACount { key: self.full(key) }),
        }
    }

    /// A real number, if the file says it.
    pub(crate) fn real(&self, key: &str) -> Option<f64> {
        self.get(key).and_then(MetaValue::as_f64)
    }

    /// A truth value, if the file says it.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.get(key).and_then(MetaValue::as_bool)
    }

    /// Vocabulary: the key, or the length of the token list.
    fn vocabulary(&self) -> Result<Option<u64>, SpecError> {
        let tokens = self.metadata.get("tokenizer.ggml.tokens").and_then(MetaValue::as_array);
        Ok(self.count("vocab_size")?.or(tokens.map(|tokens| tokens.len() as u64)))
    }
}

/// How attention keeps its keys and values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attention {
    /// Query heads of the layer that has most.
    pub heads: u64,
    /// Key/value heads of the layer that has most.
    pub kv_heads: u64,
    /// Width of one key head as cached; for MLA the latent and the rotary part.
    pub key_width: u64,
    /// Width of one value head; nothing is cached for it under MLA.
    pub value_width: u64,
    /// Multi-head latent attention (DeepSeek): one latent row is cached in place of K and V.
    pub mla: bool,
    /// Layers that keep keys and values; the others are recurrent.
    pub kv_layers: u32,
    /// Sliding window in tokens, if some layers use one.
    pub sliding_window: Option<u64>,
    /// Numbers (not bytes) cached per token, over all layers. An upper bound where layers share
    /// caches or slide a window.
    pub kv_elements_per_token: u64,
    /// Numbers of one sequence's recurrent state, over all layers; 0 where no layer has one, or
    /// its kind is not known.
    pub state_elements: u64,
}

/// The shape of a model, without its experts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// Layers that run in plain decoding.
    pub layers: u32,
    /// Further layers that predict more tokens (`nextn`); not run in plain decoding.
    pub predictor_layers: u32,
    /// Width of the hidden state.
    pub hidden: u64,
    /// Width of a dense feed-forward layer, 0 if none is named.
    pub feed_forward: u64,
    /// Context the model was trained for, in tokens.
    pub context_tokens: u64,
    /// Number of tokens in the vocabulary, if named.
    pub vocabulary: Option<u64>,
    pub attention: Attention,
}

impl Shape {
    pub(crate) fn read(keys: &Keys<'_>) -> Result<Self, SpecError> {
        let all = keys.bounded("block_count", MAX_LAYERS)?;
        let all = all.ok_or_else(|| SpecError::Missing { key: keys.full("block_count") })?;
        let predictor_layers = keys.bounded("nextn_predict_layers", all.into())?.unwrap_or(0);
        let layers = all - predictor_layers;
        let hidden = keys.required("embedding_length")?;
        Ok(Self {
            layers,
            predictor_layers,
            hidden,
            feed_forward: keys.per_layer("feed_forward_length", 0)?.unwrap_or(0),
            context_tokens: keys.required("context_length")?,
            vocabulary: keys.vocabulary()?,
            attention: Attention::read(keys, layers, hidden)?,
        })
    }
}

impl Attention {
    fn read(keys: &Keys<'_>, layers: u32, hidden: u64) -> Result<Self, SpecError> {
        let heads_of = |layer| keys.per_layer("attention.head_count", layer);
        let first = heads_of(0)?.unwrap_or(0);
        let default_width = hidden.checked_div(first).unwrap_or(0);
        let key_width = keys.count("attention.key_length")?.unwrap_or(default_width);
        let value_width = keys.count("attention.value_length")?.unwrap_or(default_width);
        let mla = keys.count("attention.key_length_mla")?.is_some_and(|width| width > 0);
        let mut attention = Self {
            heads: 0,
            kv_heads: 0,
            key_width,
            value_width,
            mla,
            kv_layers: 0,
            sliding_window: keys.count("attention.sliding_window")?.filter(|window| *window > 0),
            kv_elements_per_token: 0,
            state_elements: 0,
        };
        let cached_width = key_width + if mla { 0 } else { value_width };
        for layer in 0..layers {
            let heads = heads_of(layer)?.unwrap_or(0);
            let kv_heads = keys.per_layer("attention.head_count_kv", layer)?.unwrap_or(heads);
            attention.heads = attention.heads.max(heads);
            attention.kv_heads = attention.kv_heads.max(kv_heads);
            if kv_heads > 0 && !is_recurrent(keys, layer)? {
                attention.kv_layers += 1;
                // Saturates on hostile widths only; real sums are below 2^24.
                let elements = kv_heads.saturating_mul(cached_width);
                attention.kv_elements_per_token =
                    attention.kv_elements_per_token.saturating_add(elements);
            } else {
                attention.state_elements =
                    attention.state_elements.saturating_add(layer_state(keys)?);
            }
        }
        Ok(attention)
    }
}

/// Numbers one recurrent layer keeps of a sequence: the state itself, and the inputs that its
/// convolution looks back at (llama.cpp's `n_embd_s` and `n_embd_r` for Mamba 2 and gated delta nets).
fn layer_state(keys: &Keys<'_>) -> Result<u64, SpecError> {
    let number = |name: &str| Ok::<u64, SpecError>(keys.count(name)?.unwrap_or(0));
    let (inner, state) = (number("ssm.inner_size")?, number("ssm.state_size")?);
    let groups = number("ssm.group_count")?;
    let looked_back = number("ssm.conv_kernel")?.saturating_sub(1);
    let convolved = inner.saturating_add(groups.saturating_mul(state).saturating_mul(2));
    Ok(inner.saturating_mul(state).saturating_add(looked_back.saturating_mul(convolved)))
}

/// Whether a layer keeps a recurrent state in place of keys and values (qwen3next and its kin).
fn is_recurrent(keys: &Keys<'_>, layer: u32) -> Result<bool, SpecError> {
    if let Some(recurrent) = keys.get("attention.recurrent_layers") {
        let array = recurrent.as_array();
        return Ok(array.and_then(|array| array.get_u64(layer as usize)).is_some_and(|v| v > 0));
    }
    const INTERVAL_ARCHITECTURES: [&str; 3] = ["qwen3next", "qwen35", "qwen35moe"];
    let default = INTERVAL_ARCHITECTURES.contains(&keys.architecture).then_some(4);
    let interval = keys.count("full_attention_interval")?.or(default);
    Ok(interval.is_some_and(|interval| interval > 0 && (u64::from(layer) + 1) % interval != 0))
}
