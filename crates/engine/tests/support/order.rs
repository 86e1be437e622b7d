//! An order of a model's experts.

use motley_model::ModelSpec;
use motley_trace::ExpertKey;

/// The first expert of each layer, the second of each, and so on.
pub(crate) fn first_experts(spec: &ModelSpec) -> Vec<ExpertKey> {
    let keys = |expert: u32| {
        spec.expert_layers().map(move |layer| ExpertKey::new(layer.layer as u16, expert as u16))
    };
    (0..spec.experts).flat_map(keys).collect()
}
