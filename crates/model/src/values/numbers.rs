//! Numbers llama.cpp asserts on: `llama_model_base::load_hparams` and the operations its graphs are
//! made of.

use super::error::{ValueError, shown};
use crate::gguf::{MetaValue, Metadata};
use crate::hparams::{MAX_EXPERTS, MAX_LAYERS};
use crate::keys::Keys;

/// Most of a width: hidden state, head, context. Real ones are below 2^21 (contexts) and 2^15.
pub const MAX_WIDTH: u64 = 1 << 28;
/// Ways of stretching rotary embedding that llama.cpp knows by name.
const ROPE_SCALINGS: [&str; 4] = ["none", "linear", "yarn", "longrope"];
/// `llama_expert_gating_func_type`; 0 leaves it to the architecture.
const MAX_GATING: u64 = 4;

pub(super) fn check(keys: &Keys<'_>, metadata: &Metadata) -> Result<(), ValueError> {
    let layers = in_range(keys, "block_count", 1, MAX_LAYERS)?.unwrap_or(0);
    in_range(keys, "nextn_predict_layers", 0, layers.saturating_sub(1))?;
    in_range(keys, "context_length", 1, MAX_WIDTH)?;
    in_range(keys, "embedding_length", 1, MAX_WIDTH)?;
    in_range(keys, "expert_gating_func", 0, MAX_GATING)?;
    heads(keys, layers as u32)?;
    experts(keys, layers as u32)?;
    reals(keys, metadata)?;
    rope(keys)
}

/// A count between `least` and `most`, where the file says it.
fn in_range(keys: &Keys<'_>, key: &str, least: u64, most: u64) -> Result<Option<u64>, ValueError> {
    match keys.count(key)? {
        Some(value) if !(least..=most).contains(&value) => {
            Err(refused(keys, key, value, format!("{least} to {most}")))
        }
        value => Ok(value),
    }
}

fn refused(keys: &Keys<'_>, key: &str, value: impl ToString, allowed: String) -> ValueError {
    ValueError::Value { key: keys.full(key), value: value.to_string(), allowed }
}

/// Query heads share key/value heads evenly; a layer without attention has none.
fn heads(keys: &Keys<'_>, layers: u32) -> Result<(), ValueError> {
    for key in ["attention.key_length", "attention.value_length"] {
        in_range(keys, key, 1, MAX_WIDTH)?;
    }
    for layer in 0..layers {
        let heads = keys.per_layer("attention.head_count", layer)?.unwrap_or(0);
        let kv_heads = keys.per_layer("attention.head_count_kv", layer)?.unwrap_or(heads);
        if heads > 0 && kv_heads > 0 && !heads.is_multiple_of(kv_heads) {
            return Err(ValueError::Heads { layer, heads, kv_heads });
        }
    }
    Ok(())
}

/// As many experts per token as there are at most, and groups that divide them.
fn experts(keys: &Keys<'_>, layers: u32) -> Result<(), ValueError> {
    let experts = in_range(keys, "expert_count", 0, MAX_EXPERTS)?.unwrap_or(0);
    let mut most_used = 0;
    for layer in 0..layers {
        let used = keys.per_layer("expert_used_count", layer)?.unwrap_or(0);
        most_used = most_used.max(used);
    }
    let range = if experts > 0 { 1..=experts } else { 0..=0 };
    if !range.contains(&most_used) {
        let allowed = format!("{} to {} (expert_count)", range.start(), range.end());
        return Err(refused(keys, "expert_used_count", most_used, allowed));
    }
    let groups = in_range(keys, "expert_group_count", 0, experts.saturating_sub(1))?.unwrap_or(0);
    if groups > 1 {
        if !experts.is_multiple_of(groups) {
            let allowed = format!("a divisor of {experts} (expert_count)");
            return Err(refused(keys, "expert_group_count", groups, allowed));
        }
        let used = keys.count("expert_group_used_count")?.unwrap_or(0);
        if !(1..groups).contains(&used) {
            let allowed = format!("1 to {} (below expert_group_count)", groups - 1);
            return Err(refused(keys, "expert_group_used_count", used, allowed));
        }
    }
    Ok(())
}

/// Every real number of the architecture is finite, and what is added below a root is positive.
fn reals(keys: &Keys<'_>, metadata: &Metadata) -> Result<(), ValueError> {
    let prefix = keys.full("");
    let own = metadata.iter().filter_map(|(key, value)| Some((key, value.as_f64()?)));
    for (key, value) in own.filter(|(key, _)| key.starts_with(&prefix)) {
        let allowed = match key.ends_with("epsilon") {
            _ if !value.is_finite() => "a finite number",
            true if value <= 0.0 => "a number above 0",
            _ => continue,
        };
        let (key, value) = (key.to_owned(), value.to_string());
        return Err(ValueError::Value { key, value, allowed: allowed.into() });
    }
    Ok(())
}

fn rope(keys: &Keys<'_>) -> Result<(), ValueError> {
    for key in ["rope.freq_base", "rope.freq_base_swa"] {
        match keys.real(key) {
            Some(base) if base <= 0.0 => {
                return Err(refused(keys, key, base, "a number above 0".into()));
            }
            _ => {}
        }
    }
    let key = "rope.scaling.type";
    let Some(MetaValue::String(name)) = keys.get(key) else { return Ok(()) };
    match name.to_str() {
        Some(name) if ROPE_SCALINGS.contains(&name) => Ok(()),
        _ => {
            let value = format!("{:?}", shown(name.as_bytes()));
            Err(refused(keys, key, value, ROPE_SCALINGS.join(", ")))
        }
    }
}
