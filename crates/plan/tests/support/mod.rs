//! A model of any shape, as its header would describe it. No file is behind it.

use motley_model::gguf::GgmlType;
use motley_model::{
    Attention, ExpertTensor, FileRange, LayerExperts, Matrix, ModelSpec, Role, Shape, SpecTensor,
    TensorPart,
};

/// Numbers of a model.
#[derive(Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) layers: u32,
    pub(crate) experts: u32,
    pub(crate) used: u32,
    pub(crate) hidden: u64,
    pub(crate) width: u64,
    pub(crate) ty: GgmlType,
}

/// Qwen3-30B-A3B at four bits: 16.2 GB, 0.9 GB of it dense.
pub(crate) const QWEN3: Numbers =
    Numbers { layers: 48, experts: 128, used: 8, hidden: 2048, width: 768, ty: GgmlType::Q4_0 };

/// The model.
pub(crate) fn spec(numbers: Numbers) -> ModelSpec {
    let mut tensors = Vec::new();
    let Numbers { hidden, width, ty, .. } = numbers;
    let all = u64::from(numbers.experts);
    let mut layers = Vec::new();
    push(&mut tensors, "token_embd.weight", &[hidden, 151_936], ty, Role::Embedding);
    for layer in 0..numbers.layers {
        for (name, dims) in [
            ("attn_q", [hidden, 2 * hidden]),
            ("attn_k", [hidden, hidden / 4]),
            ("attn_v", [hidden, hidden / 4]),
            ("attn_output", [2 * hidden, hidden]),
        ] {
            push(&mut tensors, &format!("blk.{layer}.{name}.weight"), &dims, ty, Role::Dense);
        }
        let mut matrices = Vec::new();
        for (matrix, name, dims) in [
            (Matrix::Gate, "gate", [hidden, width, all]),
            (Matrix::Up, "up", [hidden, width, all]),
            (Matrix::Down, "down", [width, hidden, all]),
        ] {
            let role = Role::Routed { layer, matrix, part: TensorPart::Weight };
            let name = format!("blk.{layer}.ffn_{name}_exps.weight");
            let tensor = push(&mut tensors, &name, &dims, ty, role);
            matrices.push(ExpertTensor {
                tensor,
                matrix,
                part: TensorPart::Weight,
                ty,
                file: 0,
                base_offset: 0,
                stride_bytes: tensors[tensor].range.len_bytes / all,
            });
        }
        let (experts, used) = (numbers.experts, numbers.used);
        layers.push(Some(LayerExperts { layer, experts, used, tensors: matrices }));
    }
    ModelSpec {
        architecture: "qwen3moe".into(),
        name: Some("made for tests".into()),
        shape: shape(numbers),
        experts: numbers.experts,
        used: numbers.used,
        fewer_of: None,
        expert_width: width,
        shared: None,
        leading_dense_layers: 0,
        router: None,
        chat_template: None,
        rerank_template: None,
        embedding: None,
        sampling: motley_model::SamplingHints::default(),
        tensors,
        layers,
    }
}

fn push(
    tensors: &mut Vec<SpecTensor>,
    name: &str,
    dims: &[u64],
    ty: GgmlType,
    role: Role,
) -> usize {
    let len_bytes = ty.tensor_bytes(dims).expect("whole blocks");
    let range = FileRange { file: 0, offset: 0, len_bytes };
    tensors.push(SpecTensor { name: name.into(), dims: dims.to_vec(), ty, range, role });
    tensors.len() - 1
}

fn shape(numbers: Numbers) -> Shape {
    Shape {
        layers: numbers.layers,
        predictor_layers: 0,
        hidden: numbers.hidden,
        feed_forward: 0,
        context_tokens: 32_768,
        vocabulary: Some(151_936),
        attention: Attention {
            heads: 32,
            kv_heads: 4,
            key_width: 128,
            value_width: 128,
            window_widths: (128, 128),
            mla: false,
            kv_layers: numbers.layers,
            sliding_window: None,
            kv_elements_per_token: u64::from(numbers.layers) * 4 * 256,
            window_elements_per_token: 0,
            state_elements: 0,
        },
    }
}
