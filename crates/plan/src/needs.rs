//! What a model needs of a machine's memory, part by part. From a header, or from a shape in a
//! simulation; a budget for any session follows from it.

use std::collections::BTreeMap;

use motley_model::gguf::GgmlType;
use motley_model::{KvType, Matrix, ModelSpec, NotInBlocks, Role, Sizes, TensorPart, Unweighed};

use crate::budget::{Budget, SessionShape};
use crate::demand::Demand;
use crate::headroom::PROCESS_BYTES;

/// Rows of the widest activations kept per token of a chunk, in hidden widths.
const ACTIVATION_ROWS: u64 = 24;
/// llama.cpp's mask of attention: one number for each token of a chunk and each cell, as f32, and
/// as f16 for its fast kernels.
const MASK_BYTES: u64 = 6;
/// llama.cpp rounds caches up to so many cells.
const CELLS: u64 = 256;
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
    /// Of them the token embedding.
    pub input_bytes: u64,
    /// Numbers of keys and values of one token.
    pub kv_elements_per_token: u64,
    /// Of them those of layers that look back at a window only, and its tokens; 0 without.
    pub window_elements_per_token: u64,
    pub window_tokens: u64,
    /// Tokens it was trained for in one sequence; 0 where nobody says.
    pub trained_tokens: u32,
    /// Why its keys and values cannot be in blocks of 8 or 4 bits; `None` where they can.
    pub not_in_blocks: Option<NotInBlocks>,
    /// Recurrent state of one sequence.
    pub state_bytes: u64,
    /// Logits of one token.
    pub logits_bytes: u64,
    /// One expert's slots, rounding included.
    pub slot_bytes: u64,
    /// The largest expert.
    pub expert_bytes: u64,
    /// Experts over all layers.
    pub experts: u32,
    /// Experts of a token by the file, where fewer are used.
    pub fewer_of: Option<u32>,
    /// Why nobody but llama.cpp knows the weights of a token's experts; none where they follow from
    /// the rows experts read.
    pub unweighed: Option<Unweighed>,
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
            input_bytes: input_bytes(spec),
            kv_elements_per_token: spec.shape.attention.kv_elements_per_token,
            window_elements_per_token: spec.shape.attention.window_elements_per_token,
            window_tokens: match spec.shape.attention.window_elements_per_token {
                0 => 0,
                _ => spec.shape.attention.sliding_window.unwrap_or(0),
            },
            trained_tokens: u32::try_from(spec.shape.context_tokens).unwrap_or(u32::MAX),
            not_in_blocks: NotInBlocks::of(spec),
            state_bytes: sizes.state_bytes,
            logits_bytes: spec.shape.vocabulary.unwrap_or(0).saturating_mul(4),
            slot_bytes: slot_bytes(spec),
            expert_bytes: sizes.expert_bytes_max,
            experts: spec.expert_layers().map(|layer| layer.experts).sum(),
            fewer_of: spec.fewer_of,
            unweighed: spec.weighs_by_rows().err(),
            demand: Demand::of(spec),
        }
    }

    /// How memory divides for a session of this shape.
    pub fn budget(&self, shape: SessionShape) -> Budget {
        let chunk = u64::from(shape.chunk_tokens);
        let row_bytes = self.demand.hidden.saturating_mul(4 * ACTIVATION_ROWS);
        let outputs = u64::from(shape.output_tokens.min(shape.chunk_tokens));
        let outputs = self.logits_bytes.saturating_mul(outputs);
        let cells = u64::from(shape.context_tokens).next_multiple_of(CELLS);
        let narrow = self.window_bytes_per_token(shape.kv);
        let wide = self.kv_bytes_per_token(shape.kv).saturating_sub(narrow);
        let kv = wide.saturating_mul(cells);
        let kv = kv.saturating_add(narrow.saturating_mul(self.window_cells(&shape)));
        let mask = mask_bytes(&shape).saturating_mul(cells);
        Budget {
            dense_bytes: self.dense_bytes,
            input_bytes: self.input_bytes,
            kv_bytes: kv.saturating_add(self.state_bytes.saturating_mul(u64::from(shape.states))),
            compute_bytes: chunk
                .saturating_mul(row_bytes)
                .saturating_add(outputs)
                .saturating_add(mask),
            process_bytes: PROCESS_BYTES,
            slot_bytes: self.slot_bytes,
            experts: self.experts,
        }
    }

    /// Keys and values of one token.
    pub fn kv_bytes_per_token(&self, kv: KvType) -> u64 {
        kv.bytes(self.kv_elements_per_token)
    }

    /// Of them those of layers with a window.
    fn window_bytes_per_token(&self, kv: KvType) -> u64 {
        kv.bytes(self.window_elements_per_token)
    }

    /// Cells of layers with a window (`llama_kv_cache_iswa`, one sequence): the window, and a chunk
    /// that is being computed.
    fn window_cells(&self, shape: &SessionShape) -> u64 {
        let all = u64::from(shape.context_tokens).next_multiple_of(CELLS);
        let within = self.window_tokens.saturating_add(shape.chunk_tokens.into());
        match shape.windows {
            true => all.min(within.next_multiple_of(CELLS)),
            false => all,
        }
    }

    /// What one cell more costs a session of this shape.
    pub fn cell_bytes(&self, shape: &SessionShape) -> u64 {
        let full = self.window_cells(shape) < u64::from(shape.context_tokens);
        let narrow = if full { self.window_bytes_per_token(shape.kv) } else { 0 };
        let kv = self.kv_bytes_per_token(shape.kv).saturating_sub(narrow);
        kv.saturating_add(mask_bytes(shape))
    }

    /// Whether it has routed experts.
    pub fn is_moe(&self) -> bool {
        self.experts > 0
    }
}

/// A model that is only described: what a simulation knows of one.
#[derive(Debug, Clone, PartialEq)]
pub struct ShapeNumbers {
    pub name: String,
    /// Layers with routed experts.
    pub layers: u32,
    /// Routed experts of one layer.
    pub experts: u32,
    /// Experts a token uses in a layer.
    pub used: u32,
    /// Width of a hidden row.
    pub hidden: u64,
    /// Width of one expert.
    pub expert_width: u64,
    pub expert_bytes: u64,
    /// Outside routed experts and the output matrix: bytes, weights.
    pub dense: (f64, f64),
    /// The output matrix: bytes, weights.
    pub head: (f64, f64),
    pub kv_bytes_per_token: u64,
}

impl ModelNeeds {
    /// The needs of a described model, as if all its weights had one type.
    pub fn of_shape(shape: &ShapeNumbers) -> Self {
        let experts = shape.layers * shape.experts;
        let expert_weights = 3.0 * (shape.hidden * shape.expert_width) as f64;
        let bits = shape.expert_bytes as f64 * 8.0 / expert_weights.max(1.0);
        let distance = |ty: &&GgmlType| (ty.bits_per_weight() - bits).abs();
        let nearest = GgmlType::ALL.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let ty = nearest.copied().unwrap_or(GgmlType::F16);
        let dense_bytes = (shape.dense.0 + shape.head.0) as u64;
        Self {
            name: shape.name.clone(),
            total_bytes: dense_bytes + u64::from(experts) * shape.expert_bytes,
            dense_bytes,
            // As large as the output matrix.
            input_bytes: shape.head.0 as u64,
            kv_elements_per_token: shape.kv_bytes_per_token / 2,
            window_elements_per_token: 0,
            window_tokens: 0,
            trained_tokens: 0,
            not_in_blocks: None,
            state_bytes: 0,
            logits_bytes: (4.0 * shape.head.1 / shape.hidden.max(1) as f64) as u64,
            slot_bytes: shape.expert_bytes,
            expert_bytes: shape.expert_bytes,
            experts,
            fewer_of: None,
            unweighed: None,
            demand: Demand {
                expert_layers: shape.layers,
                layers: shape.layers,
                experts: shape.experts,
                used: shape.used,
                hidden: shape.hidden,
                expert_width: shape.expert_width,
                expert_bytes: shape.expert_bytes as f64,
                expert_weights,
                expert_type: ty,
                dense_bytes: shape.dense.0,
                dense_weights: shape.dense.1,
                head_bytes: shape.head.0,
                head_weights: shape.head.1,
                head_type: ty,
                dense_type: ty,
                kv_bytes: shape.kv_bytes_per_token as f64,
            },
        }
    }
}

impl Budget {
    /// How the memory of `spec` divides for a session of this shape.
    pub fn of(spec: &ModelSpec, shape: SessionShape) -> Self {
        ModelNeeds::of(spec).budget(shape)
    }
}

/// One cell's part of the mask.
fn mask_bytes(shape: &SessionShape) -> u64 {
    MASK_BYTES.saturating_mul(u64::from(shape.chunk_tokens))
}

/// The token embedding.
fn input_bytes(spec: &ModelSpec) -> u64 {
    let embedding = spec.tensors.iter().filter(|tensor| tensor.role == Role::Embedding);
    embedding.map(|tensor| tensor.range.len_bytes).sum()
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
