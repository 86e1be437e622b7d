//! Small synthetic models with the tensor names and keys of real architectures. Weights are zeros.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::{Path, PathBuf};

use motley_model::gguf::{
    GgmlType, GgufHeader, GgufLimits, GgufWriter, MetaValue, Metadata, StringArray, TensorDesc,
};

/// A model to be written.
#[derive(Clone)]
pub(crate) struct Synth {
    pub(crate) metadata: Metadata,
    pub(crate) tensors: Vec<TensorDesc>,
    architecture: String,
}

pub(crate) const LAYERS: u32 = 3;
pub(crate) const HIDDEN: u64 = 64;
pub(crate) const WIDTH: u64 = 32;
pub(crate) const EXPERTS: u64 = 8;

impl Synth {
    /// Keys and tensors that every model has, for [`LAYERS`] layers.
    pub(crate) fn new(architecture: &str) -> Self {
        let metadata = Metadata::new();
        let mut synth = Self { metadata, tensors: Vec::new(), architecture: architecture.into() };
        synth.metadata.insert("general.architecture", architecture);
        synth.metadata.insert("general.name", "Synth");
        let tokens: StringArray = (0..100).map(|token| format!("t{token}")).collect();
        synth.metadata.insert("tokenizer.ggml.tokens", tokens);
        synth = synth
            .key("block_count", LAYERS)
            .key("context_length", 512u32)
            .key("embedding_length", HIDDEN as u32)
            .key("feed_forward_length", 128u32)
            .key("attention.head_count", 4u32)
            .key("attention.head_count_kv", 2u32)
            .tensor("token_embd.weight", &[HIDDEN, 100], GgmlType::Q8_0)
            .tensor("output.weight", &[HIDDEN, 100], GgmlType::Q8_0);
        for layer in 0..LAYERS {
            synth = synth.tensor(
                &format!("blk.{layer}.attn_q.weight"),
                &[HIDDEN, HIDDEN],
                GgmlType::F16,
            );
        }
        synth
    }

    /// Adds `<architecture>.<key>`.
    pub(crate) fn key(mut self, key: &str, value: impl Into<MetaValue>) -> Self {
        let key = format!("{}.{key}", self.architecture);
        self.metadata.insert(&key, value);
        self
    }

    /// Adds a tensor.
    pub(crate) fn tensor(mut self, name: &str, dims: &[u64], ty: GgmlType) -> Self {
        self.tensors.push(TensorDesc { name: name.into(), dims: dims.into(), ty });
        self
    }

    /// Adds experts to layers from `first` on: gate, up, down and a router.
    pub(crate) fn experts(mut self, first: u32, used: u32) -> Self {
        self = self.key("expert_count", EXPERTS as u32).key("expert_used_count", used);
        for layer in first..LAYERS {
            let name = |stem: &str| format!("blk.{layer}.{stem}.weight");
            self = self
                .tensor(&name("ffn_gate_inp"), &[HIDDEN, EXPERTS], GgmlType::F32)
                .tensor(&name("ffn_gate_exps"), &[HIDDEN, WIDTH, EXPERTS], GgmlType::Q4_0)
                .tensor(&name("ffn_up_exps"), &[HIDDEN, WIDTH, EXPERTS], GgmlType::Q4_0)
                .tensor(&name("ffn_down_exps"), &[WIDTH, HIDDEN, EXPERTS], GgmlType::Q8_0);
        }
        self
    }

    /// The file's bytes; every byte of a tensor is its position's low byte.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut writer = GgufWriter::new(Vec::new(), &self.metadata, &self.tensors).unwrap();
        for tensor in &self.tensors {
            let len = tensor.ty.tensor_bytes(&tensor.dims).unwrap();
            writer.tensor(&tensor.name, &(0..len).map(|at| at as u8).collect::<Vec<_>>()).unwrap();
        }
        writer.finish().unwrap()
    }

    /// The file's header, read back.
    pub(crate) fn header(&self) -> GgufHeader {
        GgufHeader::read(std::io::Cursor::new(self.bytes()), &GgufLimits::default()).unwrap()
    }

    /// Writes the model as `parts` files the way llama-gguf-split does; gives their paths.
    pub(crate) fn write_split(&self, directory: &Path, parts: usize) -> Vec<PathBuf> {
        let chunk = self.tensors.len().div_ceil(parts);
        let chunks = self.tensors.chunks(chunk).enumerate();
        let paths = chunks.map(|(number, tensors)| {
            let mut metadata = if number == 0 { self.metadata.clone() } else { Metadata::new() };
            metadata.insert("split.no", number as u16);
            metadata.insert("split.count", parts as u16);
            metadata.insert("split.tensors.count", self.tensors.len() as i32);
            let part = Self { metadata, tensors: tensors.to_vec(), ..self.clone() };
            let name = format!("synth-{:05}-of-{parts:05}.gguf", number + 1);
            let path = directory.join(name);
            std::fs::write(&path, part.bytes()).unwrap();
            path
        });
        paths.collect()
    }
}
