//! What a model asks of a machine for one token, in numbers a prediction can use. From the header
//! alone; reads no weights.

use crate::calibration::Matrices;
use motley_model::gguf::GgmlType;
use motley_model::{ModelSpec, Quantisation, Role, Sizes, SpecTensor};

/// Work and bytes of one token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand {
    /// Layers with routed experts.
    pub expert_layers: u32,
    /// All layers.
    pub layers: u32,
    /// Experts of such a layer.
    pub experts: u32,
    /// Experts a token uses there (k).
    pub used: u32,
    /// Width of a hidden row.
    pub hidden: u64,
    /// Width of one expert.
    pub expert_width: u64,
    /// Mean size of one expert.
    pub expert_bytes: f64,
    /// Weights of one expert.
    pub expert_weights: f64,
    /// Most frequent element type of the experts.
    pub expert_type: GgmlType,
    /// Bytes outside routed experts and the output matrix that every token reads.
    pub dense_bytes: f64,
    /// Weights outside routed experts and the output matrix that every token uses.
    pub dense_weights: f64,
    /// Bytes of the output matrix, which one token of a pass needs.
    pub head_bytes: f64,
    pub head_weights: f64,
    pub head_type: GgmlType,
    /// Most frequent element type outside the experts.
    pub dense_type: GgmlType,
    /// Keys and values of one token.
    pub kv_bytes: f64,
}

impl Demand {
    /// The demand of `spec`.
    pub fn of(spec: &ModelSpec) -> Self {
        let sizes = Sizes::of(spec);
        let quantisation = Quantisation::of(spec);
        let main = |shares: &[motley_model::TypeShare]| shares.first().map(|share| share.ty);
        let dense_type = main(&quantisation.dense).unwrap_or(GgmlType::F16);
        let expert_layers = spec.expert_layers().count() as u32;
        let all = f64::from(expert_layers) * f64::from(spec.experts);
        let routed_active = f64::from(spec.used) * f64::from(expert_layers);
        let expert_type = main(&quantisation.routed).unwrap_or(dense_type);
        let expert_bytes = if all > 0.0 { sizes.routed_bytes as f64 / all } else { 0.0 };
        let expert_weights = expert_bytes * 8.0 / expert_type.bits_per_weight();
        let head = head(spec);
        let head_bytes = head.map_or(0.0, |tensor| tensor.range.len_bytes as f64);
        let head_weights = head.map_or(0.0, |tensor| tensor.elements() as f64);
        let active = sizes.active_parameters as f64 - routed_active * expert_weights;
        let dense_bytes = sizes.token_active_bytes as f64 - sizes.token_routed_bytes as f64;
        Self {
            expert_layers,
            layers: spec.shape.layers,
            experts: spec.experts,
            used: spec.used,
            hidden: spec.shape.hidden,
            expert_width: spec.expert_width,
            expert_bytes,
            expert_weights,
            expert_type,
            dense_bytes: (dense_bytes - head_bytes).max(0.0),
            dense_weights: (active - head_weights).max(0.0),
            dense_type,
            head_bytes,
            head_weights,
            head_type: head.map_or(dense_type, |tensor| tensor.ty),
            kv_bytes: sizes.kv_bytes_per_token as f64,
        }
    }

    /// The matrices of one expert.
    pub fn expert_matrices(&self) -> Matrices {
        Matrices { bytes: self.expert_bytes, weights: self.expert_weights, ty: self.expert_type }
    }

    /// Size of one matrix of an expert, in weights.
    pub fn expert_matrix_weights(&self) -> f64 {
        (self.hidden * self.expert_width) as f64
    }

    /// Experts one token uses over all layers: a cache below that thrashes.
    pub fn token_experts(&self) -> f64 {
        f64::from(self.expert_layers) * f64::from(self.used)
    }

    /// Experts of the model.
    pub fn all_experts(&self) -> f64 {
        f64::from(self.expert_layers) * f64::from(self.experts)
    }
}

/// The output matrix; a model without one uses its embedding.
fn head(spec: &ModelSpec) -> Option<&SpecTensor> {
    let output = spec.tensors.iter().find(|tensor| tensor.name == "output.weight");
    output.or_else(|| spec.tensors.iter().find(|tensor| tensor.role == Role::Embedding))
}
