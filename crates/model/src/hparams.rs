//! Numbers of a model's shape from its metadata, with llama.cpp's defaults
//! (`llama_model_base::load_hparams`). Knows no tensors.

use serde::Serialize;

use crate::error::SpecError;
use crate::keys::Keys;
use crate::sliding::Windows;

/// Most layers a model may have (`LLAMA_MAX_LAYERS`).
pub const MAX_LAYERS: u64 = 512;
/// Most experts a layer may have (`LLAMA_MAX_EXPERTS`).
pub const MAX_EXPERTS: u64 = 1024;

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
    /// The two of layers that look at a window.
    pub window_widths: (u64, u64),
    /// Multi-head latent attention (DeepSeek): one latent row is cached in place of K and V.
    pub mla: bool,
    /// Layers that keep keys and values; the others are recurrent.
    pub kv_layers: u32,
    /// Sliding window in tokens, if some layers use one.
    pub sliding_window: Option<u64>,
    /// Numbers (not bytes) cached per token, over all layers. An upper bound where layers share
    /// caches.
    pub kv_elements_per_token: u64,
    /// Of them those of layers that are known to look back no further than the window.
    pub window_elements_per_token: u64,
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
        let window_key = keys.count("attention.key_length_swa")?.unwrap_or(key_width);
        let window_value = keys.count("attention.value_length_swa")?.unwrap_or(value_width);
        let mla = keys.count("attention.key_length_mla")?.is_some_and(|width| width > 0);
        let windows = Windows::read(keys, layers)?;
        let named = keys.count("attention.sliding_window")?;
        let window = if windows.any() { Some(windows.tokens) } else { named };
        let mut attention = Self {
            heads: 0,
            kv_heads: 0,
            key_width,
            value_width,
            window_widths: (window_key, window_value),
            mla,
            kv_layers: 0,
            sliding_window: window.filter(|window| *window > 0),
            kv_elements_per_token: 0,
            window_elements_per_token: 0,
            state_elements: 0,
        };
        let cached = |key: u64, value: u64| key + if mla { 0 } else { value };
        let (full, narrow) = (cached(key_width, value_width), cached(window_key, window_value));
        // One more key for each layer, by which tokens to look at are chosen.
        let indexer = keys.count("attention.indexer.key_length")?.unwrap_or(0);
        for layer in 0..layers {
            let heads = heads_of(layer)?.unwrap_or(0);
            let kv_heads = keys.per_layer("attention.head_count_kv", layer)?.unwrap_or(heads);
            attention.heads = attention.heads.max(heads);
            attention.kv_heads = attention.kv_heads.max(kv_heads);
            if kv_heads > 0 && !is_recurrent(keys, layer)? {
                attention.kv_layers += 1;
                let width = match (windows.any(), windows.contains(layer)) {
                    (true, true) => narrow,
                    (true, false) => full,
                    // Windows that the table does not know may have heads of their own.
                    (false, _) => full.max(narrow),
                };
                // Saturates on hostile widths only; real sums are below 2^24.
                let elements = kv_heads.saturating_mul(width).saturating_add(indexer);
                let all = &mut attention.kv_elements_per_token;
                *all = all.saturating_add(elements);
                if windows.contains(layer) {
                    let within = &mut attention.window_elements_per_token;
                    *within = within.saturating_add(elements);
                }
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
