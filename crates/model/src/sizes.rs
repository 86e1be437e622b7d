//! How many bytes a model takes, and the least memory it can run in (technique M3). Arithmetic on
//! a `ModelSpec`; measures nothing.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::gguf::GgmlType;
use crate::kv_type::KvType;
use crate::role::Role;
use crate::spec::{ModelSpec, SpecTensor};

/// Bytes and weights of a model by purpose.
///
/// Sums cannot overflow: tensors are disjoint ranges of real files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// All tensors.
    pub total_bytes: u64,
    /// Needed by every token: everything but routed and shared experts and predictors.
    pub dense_bytes: u64,
    pub shared_bytes: u64,
    pub routed_bytes: u64,
    /// Predictor layers (`nextn`), not run in plain decoding.
    pub predictor_bytes: u64,
    /// One routed expert, in the layer where it is smallest.
    pub expert_bytes_min: u64,
    /// One routed expert, in the layer where it is largest.
    pub expert_bytes_max: u64,
    /// The k experts of the layer where they are largest.
    pub layer_routed_bytes_max: u64,
    /// The routed experts one token uses, over all layers.
    pub token_routed_bytes: u64,
    /// Everything one token reads: dense (of an untied embedding one row), shared, routed.
    pub token_active_bytes: u64,
    /// Keys and values of one token at f16.
    pub kv_bytes_per_token: u64,
    /// Recurrent state of one sequence at f32.
    pub state_bytes: u64,
    /// Weights in all, without predictors.
    pub parameters: u64,
    /// Weights one token uses.
    pub active_parameters: u64,
}

impl Sizes {
    /// Adds up a model.
    pub fn of(spec: &ModelSpec) -> Self {
        let mut sizes = Self::default();
        let tied = !spec.tensors.iter().any(|tensor| tensor.name == "output.weight");
        for tensor in &spec.tensors {
            sizes.add(tensor, spec, tied);
        }
        for layer in spec.expert_layers() {
            let bytes = layer.expert_bytes();
            let smallest = sizes.expert_bytes_min;
            sizes.expert_bytes_min = if smallest == 0 { bytes } else { smallest.min(bytes) };
            sizes.expert_bytes_max = sizes.expert_bytes_max.max(bytes);
            sizes.layer_routed_bytes_max = sizes.layer_routed_bytes_max.max(layer.token_bytes());
            sizes.token_routed_bytes += layer.token_bytes();
        }
        sizes.token_active_bytes += sizes.token_routed_bytes + sizes.shared_bytes;
        let elements = spec.shape.attention.kv_elements_per_token;
        sizes.kv_bytes_per_token = KvType::F16.bytes(elements);
        sizes.state_bytes = spec.shape.attention.state_elements.saturating_mul(4);
        sizes
    }

    fn add(&mut self, tensor: &SpecTensor, spec: &ModelSpec, tied: bool) {
        let (bytes, elements) = (tensor.range.len_bytes, tensor.elements());
        self.total_bytes += bytes;
        match tensor.role {
            Role::Predictor { .. } => {
                self.predictor_bytes += bytes;
                return;
            }
            Role::Routed { layer, .. } => {
                self.routed_bytes += bytes;
                let used = spec.layer(layer).map_or(0, |layer| u64::from(layer.used));
                self.active_parameters += elements / u64::from(spec.experts.max(1)) * used;
            }
            Role::Shared { .. } => {
                self.shared_bytes += bytes;
                self.active_parameters += elements;
            }
            Role::Embedding if !tied => {
                let rows = tensor.dims.get(1).copied().unwrap_or(1).max(1);
                self.dense_bytes += bytes;
                self.token_active_bytes += bytes / rows;
                self.active_parameters += elements / rows;
            }
            _ => {
                self.dense_bytes += bytes;
                self.token_active_bytes += bytes;
                self.active_parameters += elements;
            }
        }
        self.parameters += elements;
    }
}

/// One element type's share of a group of tensors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TypeShare {
    #[serde(rename = "type")]
    pub ty: GgmlType,
    pub tensors: u64,
    pub bytes: u64,
}

/// Element types by group, the largest share first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Quantisation {
    /// Everything outside the experts.
    pub dense: Vec<TypeShare>,
    pub shared: Vec<TypeShare>,
    pub routed: Vec<TypeShare>,
}

impl Quantisation {
    /// Groups a model's tensors; predictors are left out.
    pub fn of(spec: &ModelSpec) -> Self {
        let group = |wanted: fn(&Role) -> bool| {
            shares(spec.tensors.iter().filter(|tensor| wanted(&tensor.role)))
        };
        Self {
            dense: group(|role| {
                !matches!(role, Role::Routed { .. } | Role::Shared { .. } | Role::Predictor { .. })
            }),
            shared: group(|role| matches!(role, Role::Shared { .. })),
            routed: group(|role| matches!(role, Role::Routed { .. })),
        }
    }
}

fn shares<'a>(tensors: impl Iterator<Item = &'a SpecTensor>) -> Vec<TypeShare> {
    let mut by_type: BTreeMap<GgmlType, TypeShare> = BTreeMap::new();
    for tensor in tensors {
        let share =
            by_type.entry(tensor.ty).or_insert(TypeShare { ty: tensor.ty, tensors: 0, bytes: 0 });
        share.tensors += 1;
        share.bytes += tensor.range.len_bytes;
    }
    let mut shares: Vec<_> = by_type.into_values().collect();
    shares.sort_by_key(|share| std::cmp::Reverse(share.bytes));
    shares
}
