//! What to generate, and the file name that says so.

use super::{Arch, Preset, Shape};
use motley_model::Pooling;
use motley_model::gguf::GgmlType;

/// Part of every cached file's name; rises when the same request gives other bytes.
const GENERATOR_VERSION: u32 = 2;

/// What to generate.
#[derive(Debug, Clone)]
pub struct Request {
    /// The architecture.
    pub arch: Arch,
    /// Its numbers.
    pub shape: Shape,
    /// Type of the weight matrices; what it cannot hold falls back (see [`super::plan`]).
    pub quant: GgmlType,
    /// Every tensor's bytes follow from this and its name.
    pub seed: u64,
    /// Zipf exponent of expert popularity; 0 is even.
    pub skew: f32,
    /// Number of files.
    pub shards: u32,
    /// A model that makes vectors or scores of texts in place of answers.
    pub pooling: Option<Pooling>,
}

impl Request {
    /// The plain request for a preset: its own type, seed 0, no skew, one file.
    pub fn of_preset(preset: Preset) -> Self {
        let (arch, shape) = (preset.arch(), preset.shape());
        Self {
            arch,
            shape,
            quant: arch.default_quant(),
            seed: 0,
            skew: 0.0,
            shards: 1,
            pooling: None,
        }
    }

    /// File name with the whole request.
    pub fn file_name(&self) -> String {
        let Shape { layers, hidden, ff, experts, topk, heads, kv_heads, head_dim } = self.shape;
        let mut name = format!(
            "synth-{}-{layers}x{hidden}-a{heads}.{kv_heads}.{head_dim}-e{experts}k{topk}f{ff}-{}",
            self.arch, self.quant
        );
        if self.skew != 0.0 {
            name += &format!("-skew{}", self.skew);
        }
        if let Some(pooling) = self.pooling {
            name += &format!("-{}", pooling.name());
        }
        format!("{name}-seed{}-v{GENERATOR_VERSION}.gguf", self.seed)
    }
}
