//! Metadata and tensors of one model before any byte of weights exists.
//!
//! A plan is filled by an architecture through helpers that carry the conventions all of them
//! share: names of ggml's tensors, dimensions fastest first, `1/sqrt(fan_in)` as the standard
//! deviation of a matrix, F32 for everything that is not a matrix.
//!
//! Random attention is nearly a plain average, so what it adds is nearly the same for all tokens.
//! If that grew beside the token's own part, routers would choose the same experts for every
//! token. Hence embeddings of unit size, and attention outputs scaled by `1/sqrt(2 layers)`, so
//! that all layers together add half as much as the embedding brought.

use super::{Request, router};
use crate::gguf_source::Tokenizer;
use motley_model::Pooling;
use motley_model::gguf::{GgmlType, MetaValue, Metadata, StringArray, TensorDesc};

/// Standard deviation of token embeddings as they enter the first layer.
const EMBEDDING_STD: f32 = 1.0;

/// Standard deviation of biases: seen in the results, but not ruling them.
const BIAS_STD: f32 = 0.1;

/// Standard deviation of a classifier's weights: scores of different texts differ, and none is nearly
/// certain.
const CLASSIFIER_STD: f32 = 0.05;

/// `LLAMA_EXPERT_GATING_FUNC_TYPE_SIGMOID`.
pub(super) const GATING_SIGMOID: u32 = 2;

/// How the values of a tensor are drawn.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// All the same (F32 only).
    Constant {
        /// The number.
        value: f32,
    },
    /// Zero mean and this standard deviation.
    Random {
        /// Standard deviation.
        std: f32,
    },
    /// One standard deviation per row (F32 only): a router with unlike experts.
    Rows {
        /// Standard deviation of each row.
        stds: Vec<f32>,
    },
}

/// One tensor and how to fill it.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Name, dimensions and type.
    pub desc: TensorDesc,
    /// Its values.
    pub values: Values,
}

/// Everything about a file but its bytes.
#[derive(Debug, Clone)]
pub struct Plan {
    /// All metadata in file order.
    pub metadata: Metadata,
    /// Tensors in file order.
    pub tensors: Vec<Planned>,
    request: Request,
    vocab: u64,
}

impl Plan {
    /// A plan with the keys every architecture has and the tokenizer's.
    pub fn new(request: &Request, tokenizer: &Tokenizer) -> Self {
        let mut metadata = Metadata::new();
        metadata.insert("general.architecture", request.arch.name());
        metadata.insert("general.name", request.file_name().trim_end_matches(".gguf"));
        metadata.insert("general.file_type", file_type(request.quant));
        metadata.insert("general.quantization_version", 2u32);
        let (vocab, request) = (tokenizer.vocab(), request.clone());
        let mut plan = Self { metadata, tensors: Vec::new(), request, vocab };
        plan.shape_keys();
        for (key, value) in tokenizer.entries() {
            plan.metadata.insert(key, value.clone());
        }
        plan
    }

    fn shape_keys(&mut self) {
        let shape = self.request.shape;
        self.key("vocab_size", count(self.vocab));
        self.key("block_count", count(shape.layers));
        self.key("context_length", 32768u32);
        self.key("embedding_length", count(shape.hidden));
        self.key("attention.head_count", count(shape.heads));
        self.key("attention.head_count_kv", count(shape.kv_heads));
        self.key("attention.layer_norm_rms_epsilon", 1e-6f32);
        self.key("expert_count", count(shape.experts));
        self.key("expert_used_count", count(shape.topk));
        if let Some(pooling) = self.request.pooling {
            self.key("pooling_type", pooling.number());
        }
    }

    /// Sets a key of the architecture: `<arch>.<name>`.
    pub fn key(&mut self, name: &str, value: impl Into<MetaValue>) {
        let key = format!("{}.{name}", self.request.arch.name());
        self.metadata.insert(&key, value);
    }

    /// Sets the keys of a head width that is not `hidden / heads`.
    pub fn head_keys(&mut self) {
        let width = count(self.request.shape.head_dim);
        self.key("attention.key_length", width);
        self.key("attention.value_length", width);
        self.key("rope.dimension_count", width);
    }

    /// Sets the keys of models with some layers without experts first, then one shared expert and a
    /// router by sigmoid in each: DeepSeek V3, and those after it.
    pub fn keys_after_dense(&mut self, dense_layers: u64) {
        let (ff, topk) = (self.request.shape.ff, self.request.shape.topk);
        self.key("leading_dense_block_count", count(dense_layers));
        self.key("feed_forward_length", count(ff * topk));
        self.key("expert_feed_forward_length", count(ff));
        self.key("expert_shared_count", 1u32);
        self.key("expert_weights_scale", 2.5f32);
        self.key("expert_weights_norm", true);
        self.key("expert_gating_func", GATING_SIGMOID);
    }

    /// Token embeddings, final norm and output matrix.
    pub fn ends(&mut self) {
        self.ends_scaled(1.0);
    }

    /// The same, where the graph multiplies embeddings by `scale`.
    pub fn ends_scaled(&mut self, scale: f32) {
        let std = EMBEDDING_STD / scale;
        let (hidden, vocab) = (self.request.shape.hidden, self.vocab);
        let ty = self.type_for(hidden, self.dense_type());
        self.push("token_embd.weight", &[hidden, vocab], ty, Values::Random { std });
        self.norm("output_norm.weight", hidden);
        self.matrix("output.weight", &[hidden, vocab]);
    }

    /// A matrix of two scores, where texts are ranked: yes and no.
    pub fn classifier(&mut self) {
        if self.request.pooling == Some(Pooling::Rank) {
            self.key("classifier.output_labels", StringArray::from_iter(["yes", "no"]));
            self.random("cls.output.weight", &[self.request.shape.hidden, 2], CLASSIFIER_STD);
        }
    }

    /// Attention matrices `q`, `k`, `v` and `output` of heads of one width.
    pub fn attention(&mut self, layer: u64) {
        let shape = self.request.shape;
        let (q, kv) = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim);
        self.matrix(&format!("blk.{layer}.attn_q.weight"), &[shape.hidden, q]);
        self.matrix(&format!("blk.{layer}.attn_k.weight"), &[shape.hidden, kv]);
        self.matrix(&format!("blk.{layer}.attn_v.weight"), &[shape.hidden, kv]);
        self.attention_output(layer, q);
    }

    /// The matrix from heads of `width` in sum back to the residual stream.
    pub fn attention_output(&mut self, layer: u64, width: u64) {
        self.residual_output(&format!("blk.{layer}.attn_output.weight"), width);
    }

    /// The same under another name, where something else stands in for attention.
    pub fn residual_output(&mut self, name: &str, width: u64) {
        let shape = self.request.shape;
        let ty = self.type_for(width, self.dense_type());
        let std = matrix_std(width) / (2.0 * shape.layers as f32).sqrt();
        self.push(name, &[width, shape.hidden], ty, Values::Random { std });
    }

    /// Biases of `q`, `k` and `v`.
    pub fn attention_biases(&mut self, layer: u64) {
        let shape = self.request.shape;
        let (q, kv) = (shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim);
        self.bias(&format!("blk.{layer}.attn_q.bias"), &[q]);
        self.bias(&format!("blk.{layer}.attn_k.bias"), &[kv]);
        self.bias(&format!("blk.{layer}.attn_v.bias"), &[kv]);
    }

    /// Norm before attention and norm before the experts.
    pub fn norms(&mut self, layer: u64) {
        self.norm(&format!("blk.{layer}.attn_norm.weight"), self.request.shape.hidden);
        self.norm(&format!("blk.{layer}.ffn_norm.weight"), self.request.shape.hidden);
    }

    /// Router and the three matrices of all routed experts.
    pub fn experts(&mut self, layer: u64) {
        let shape = self.request.shape;
        self.router(layer);
        self.expert_matrix(layer, "gate", shape.hidden, shape.ff);
        self.expert_matrix(layer, "up", shape.hidden, shape.ff);
        self.expert_matrix(layer, "down", shape.ff, shape.hidden);
    }

    /// The same with gate and up in one matrix.
    pub fn experts_fused(&mut self, layer: u64) {
        let shape = self.request.shape;
        self.router(layer);
        self.expert_matrix(layer, "gate_up", shape.hidden, 2 * shape.ff);
        self.expert_matrix(layer, "down", shape.ff, shape.hidden);
    }

    fn router(&mut self, layer: u64) {
        let stds = router::row_stds(&self.request, layer);
        let name = format!("blk.{layer}.ffn_gate_inp.weight");
        let dims = [self.request.shape.hidden, self.request.shape.experts];
        self.push(&name, &dims, GgmlType::F32, Values::Rows { stds });
    }

    fn expert_matrix(&mut self, layer: u64, part: &str, inputs: u64, outputs: u64) {
        let dims = [inputs, outputs, self.request.shape.experts];
        let ty = self.type_for(inputs, self.request.quant);
        let name = format!("blk.{layer}.ffn_{part}_exps.weight");
        self.push(&name, &dims, ty, Values::Random { std: matrix_std(inputs) });
    }

    /// A dense gated FFN named `ffn_{gate,up,down}<suffix>`, as of shared experts.
    pub fn dense_ffn(&mut self, layer: u64, suffix: &str, ff: u64) {
        let hidden = self.request.shape.hidden;
        self.matrix(&format!("blk.{layer}.ffn_gate{suffix}.weight"), &[hidden, ff]);
        self.matrix(&format!("blk.{layer}.ffn_up{suffix}.weight"), &[hidden, ff]);
        self.matrix(&format!("blk.{layer}.ffn_down{suffix}.weight"), &[ff, hidden]);
    }

    /// A weight matrix (or one per head), dimensions fastest first.
    pub fn matrix(&mut self, name: &str, dims: &[u64]) {
        let ty = self.type_for(dims[0], self.dense_type());
        self.push(name, dims, ty, Values::Random { std: matrix_std(dims[0]) });
    }

    /// A weight matrix (or one per head) that is BF16 whatever the file's type.
    pub fn matrix_bf16(&mut self, name: &str, dims: &[u64]) {
        self.push(name, dims, GgmlType::BF16, Values::Random { std: matrix_std(dims[0]) });
    }

    /// A vector of ones: a norm that only normalises.
    pub fn norm(&mut self, name: &str, len: u64) {
        self.constant(name, &[len], 1.0);
    }

    /// F32 that are all the same.
    pub fn constant(&mut self, name: &str, dims: &[u64], value: f32) {
        self.push(name, dims, GgmlType::F32, Values::Constant { value });
    }

    /// A small random bias.
    pub fn bias(&mut self, name: &str, dims: &[u64]) {
        self.random(name, dims, BIAS_STD);
    }

    /// Random F32 of a given spread.
    pub fn random(&mut self, name: &str, dims: &[u64], std: f32) {
        self.push(name, dims, GgmlType::F32, Values::Random { std });
    }

    fn push(&mut self, name: &str, dims: &[u64], ty: GgmlType, values: Values) {
        let desc = TensorDesc { name: name.to_owned(), dims: dims.to_vec(), ty };
        self.tensors.push(Planned { desc, values });
    }

    /// MXFP4 is a type for experts; files that use it keep the rest in Q8_0.
    fn dense_type(&self) -> GgmlType {
        match self.request.quant {
            GgmlType::MXFP4 => GgmlType::Q8_0,
            quant => quant,
        }
    }

    /// `wanted` if a row is whole blocks of it, else the first of Q8_0 and F16 that fits.
    fn type_for(&self, row: u64, wanted: GgmlType) -> GgmlType {
        [wanted, GgmlType::Q8_0]
            .into_iter()
            .find(|ty| ty.row_bytes(row).is_some())
            .unwrap_or(GgmlType::F16)
    }
}

/// A count as GGUF holds it; [`super::Shape::check`] keeps every one far below the limit.
pub fn count(value: u64) -> u32 {
    u32::try_from(value).expect("a checked shape")
}

fn matrix_std(fan_in: u64) -> f32 {
    1.0 / (fan_in as f32).sqrt()
}

/// llama.cpp's `llama_ftype` for a file that is mostly of this type; it is only shown.
fn file_type(quant: GgmlType) -> u32 {
    match quant {
        GgmlType::F16 => 1,
        GgmlType::Q4_0 => 2,
        GgmlType::Q4_1 => 3,
        GgmlType::Q8_0 => 7,
        GgmlType::Q5_0 => 8,
        GgmlType::Q5_1 => 9,
        GgmlType::Q2_K => 10,
        GgmlType::Q3_K => 11,
        GgmlType::Q4_K => 14,
        GgmlType::Q5_K => 16,
        GgmlType::Q6_K => 18,
        GgmlType::IQ4_NL => 25,
        GgmlType::BF16 => 32,
        GgmlType::MXFP4 => 38,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::{Arch, Preset};

    fn types_of(request: &Request) -> Vec<(String, GgmlType)> {
        let tokenizer = Tokenizer::for_tests(&["a", "b"]);
        let plan = crate::synth::arch::plan(request, &tokenizer);
        plan.tensors.into_iter().map(|t| (t.desc.name, t.desc.ty)).collect()
    }

    #[test]
    fn a_type_that_does_not_fit_a_row_falls_back() {
        let mut request = Request::of_preset(Preset::Test(Arch::Qwen3moe));
        request.quant = GgmlType::Q4_K;
        request.shape.ff = 96;
        let types = types_of(&request);
        let of = |name: &str| types.iter().find(|t| t.0 == name).expect(name).1;
        assert_eq!(of("blk.0.ffn_gate_exps.weight"), GgmlType::Q4_K);
        assert_eq!(of("blk.0.ffn_down_exps.weight"), GgmlType::Q8_0);
    }

    #[test]
    fn mxfp4_is_for_experts_only() {
        let types = types_of(&Request::of_preset(Preset::Test(Arch::GptOss)));
        for (name, ty) in types {
            let expert = name.ends_with("_exps.weight");
            assert_eq!(ty == GgmlType::MXFP4, expert, "{name}: {ty}");
        }
    }

    #[test]
    fn names_are_unique_and_rows_fit() {
        for preset in Preset::all() {
            let request = Request::of_preset(preset);
            let plan = crate::synth::arch::plan(&request, &Tokenizer::for_tests(&["a"]));
            let mut names: Vec<&str> = plan.tensors.iter().map(|t| t.desc.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), plan.tensors.len(), "{preset}");
            for tensor in &plan.tensors {
                let bytes = tensor.desc.ty.tensor_bytes(&tensor.desc.dims);
                assert!(bytes.is_some_and(|bytes| bytes > 0), "{preset} {:?}", tensor.desc);
            }
        }
    }
}
