//! What a model needs of a machine's memory, part by part. From a header, or from a shape in a
//! simulation; a budget for any session follows from it.

use std::collections::BTreeMap;

use motley_model::{Matrix, ModelSpec, Role, Sizes, TensorPart};

use crate::budget::{Budget, SessionShape};
use crate::demand::Demand;
use crate::headroom::PROCESS_BYTES;

/// Rows of the widest activations kept per token of a chunk, in hidden widths.
const ACTIVATION_ROWS: u64 = 24;
/// Unit in which slots are laid out.
const PAGE_BYTES: u64 = 4096;

/// A model in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelNeeds {
    /// As people know it.
    pub name: String,
    /// All tensors: tells models of one name apart.
    pub total_bytes: u64,
    /// Dense weights and shared experts, and a second copy of the routers.
    pub dense_bytes: u64,
    pub kv_bytes_per_token: u64,
    /// Logits of one token.
    pub logits_bytes: u64,
    /// One expert's slots, rounding included.
    pub slot_bytes: u64,
    /// The largest expert.
    pub expert_bytes: u64,
    /// Experts over all layers.
    pub experts: u32,
    /// Work and bytes of one token.
    pub demand: Demand,
}

impl ModelNeeds {
    /// The needs of `spec`.
    pub fn of(spec: &ModelSpec) -> Self {
        let sizes = Sizes::of(spec);
        Self {
            name: spec.name.clone().unwrap_or_else(|| spec.architecture.clone()),
            total_bytes: sizes.total_bytes,
            dense_bytes: sizes.dense_bytes + sizes.shared_bytes + router_bytes(spec),
            kv_bytes_per_token: sizes.kv_bytes_per_token,
            logits_bytes: spec.shape.vocabulary.unwrap_or(0).saturating_mul(4),
            slot_bytes: slot_bytes(spec),
            expert_bytes: sizes.expert_bytes_max,
            experts: spec.expert_layers().map(|layer| layer.experts).sum(),
            demand: Demand::of(spec),
        }
    }

    /// How memory divides for a session of this shape.
    pub fn budget(&self, shape: SessionShape) -> Budget {
        let chunk = u64::from(shape.chunk_tokens);
        let row_bytes = self.demand.hidden.saturating_mul(4 * ACTIVATION_ROWS);
        let outputs = u64::from(shape.output_tokens.min(shape.chunk_tokens));
        let outputs = self.logits_bytes.saturating_mul(outputs);
        Budget {
            dense_bytes: self.dense_bytes,
            kv_bytes: self.kv_bytes_per_token.saturating_mul(u64::from(shape.context_tokens)),
            compute_bytes: chunk.saturating_mul(row_bytes).saturating_add(outputs),
            process_bytes: PROCESS_BYTES,
            slot_bytes: self.slot_bytes,
            experts: self.experts,
        }
    }

    /// Whether it has routed experts.
    pub fn is_moe(&self) -> bool {
        self.experts > 0
    }
}

impl Budget {
    /// How the memory of `spec` divides for a session of this shape.
    pub fn of(spec: &ModelSpec, shape: SessionShape) -> Self {
        ModelNeeds::of(spec).budget(shape)
    }
}

/// Bytes one slot takes in all arenas together: the largest matrix of each kind over all layers
/// (quantisation may differ by layer), a page of slack for aligned reads, rounded up.
fn slot_bytes(spec: &ModelSpec) -> u64 {
    let mut largest: BTreeMap<Matrix, u64> = BTreeMap::new();
    let tensors = spec.expert_layers().flat_map(|layer| &layer.tensors);
    // Biases and scales are dense weights to llama.cpp.
    for tensor in tensors.filter(|tensor| tensor.part == TensorPart::Weight) {
        let bytes = largest.entry(tensor.matrix).or_insert(0);
        *bytes = tensor.stride_bytes.max(*bytes);
    }
    largest.values().map(|bytes| (bytes + PAGE_BYTES).next_multiple_of(PAGE_BYTES)).sum()
}

/// Routers are kept a second time, for predictions (H2) and scores (H3).
fn router_bytes(spec: &ModelSpec) -> u64 {
    let routers = spec.tensors.iter().filter(|tensor| {
        matches!(tensor.role, Role::Router { .. }) && tensor.name.ends_with("ffn_gate_inp.weight")
    });
    routers.map(|tensor| tensor.range.len_bytes).sum()
}
