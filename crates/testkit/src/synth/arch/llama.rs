//! Mixtral (`llama.cpp` among the models): the `llama` architecture with experts, normalised.

use crate::synth::Shape;
use crate::synth::plan::{Plan, count};

/// Keys and tensors.
pub(super) fn fill(plan: &mut Plan, shape: &Shape) {
    plan.head_keys();
    plan.key("feed_forward_length", count(shape.ff));
    plan.key("rope.freq_base", 1_000_000f32);
    plan.ends();
    for layer in 0..shape.layers {
        plan.norms(layer);
        plan.attention(layer);
        plan.experts(layer);
    }
}
