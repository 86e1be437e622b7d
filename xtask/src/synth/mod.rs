//! Random-weight GGUF models of any shape, to test engines on; nothing they say means anything.
//!
//! The shapes, keys and tensors are those the pinned llama.cpp asks for, the tokenizer is a real
//! one, activations keep a sane size through the layers, and routing spreads over the experts
//! (evenly, or Zipf-like with a skew). Same request, same bytes.
//!
//! In reading order:
//! - [`arch`]: one file per architecture: its keys and tensors.
//! - [`shape`]: the numbers an architecture is built from, and the presets.
//! - [`plan`]: metadata and tensors of one model, before any byte exists.
//! - [`fill`]: random bytes for each ggml type, scaled to a standard deviation.
//! - [`router`]: how popular each expert is.
//! - [`file`](mod@file): streams a plan into one file or several shards.

pub mod arch;
pub mod file;
pub mod fill;
pub mod plan;
pub mod router;
pub mod shape;

pub use arch::Arch;
pub use shape::{Preset, Shape};

use crate::gguf_source::Tokenizer;
use crate::output::{Progress, Report};
use anyhow::{Result, ensure};
use motley_model::gguf::GgmlType;
use std::path::{Path, PathBuf};

/// Part of every cached file's name; rises when the same request gives other bytes.
const GENERATOR_VERSION: u32 = 2;

/// What to generate.
#[derive(Debug, Clone)]
pub struct Request {
    /// The architecture.
    pub arch: Arch,
    /// Its numbers.
    pub shape: Shape,
    /// Type of the weight matrices; what it cannot hold falls back (see [`plan`]).
    pub quant: GgmlType,
    /// Every tensor's bytes follow from this and its name.
    pub seed: u64,
    /// Zipf exponent of expert popularity; 0 is even.
    pub skew: f32,
    /// Number of files.
    pub shards: u32,
}

impl Request {
    /// The plain request for a preset: its own type, seed 0, no skew, one file.
    pub fn of_preset(preset: Preset) -> Self {
        let (arch, shape) = (preset.arch(), preset.shape());
        Self { arch, shape, quant: arch.default_quant(), seed: 0, skew: 0.0, shards: 1 }
    }

    /// File name that tells the request.
    pub fn file_name(&self) -> String {
        let Shape { layers, hidden, ff, experts, topk, heads, kv_heads, head_dim } = self.shape;
        let mut name = format!(
            "synth-{}-{layers}x{hidden}-a{heads}.{kv_heads}.{head_dim}-e{experts}k{topk}f{ff}-{}",
            self.arch, self.quant
        );
        if self.skew != 0.0 {
            name += &format!("-skew{}", self.skew);
        }
        format!("{name}-seed{}-v{GENERATOR_VERSION}.gguf", self.seed)
    }

    /// Refuses what no file can hold, in words that name the option.
    fn check(&self) -> Result<()> {
        self.shape.check()?;
        self.arch.check(&self.shape)?;
        let Shape { experts, topk, .. } = self.shape;
        ensure!(
            self.skew >= 0.0 && (self.skew == 0.0 || experts >= 3 * topk),
            "--skew {} needs at least 3 experts per chosen one ({experts} for top-{topk})",
            self.skew
        );
        ensure!(fill::can_fill(self.quant), "--quant {}: no generator for this type", self.quant);
        ensure!((1..=512).contains(&self.shards), "--split takes 1 to 512 files");
        Ok(())
    }
}

/// Writes the requested model to `out` (for shards: names after the manner of gguf-split).
///
/// `progress` hears the total once, then how many bytes came in addition.
pub fn generate(
    request: &Request,
    tokenizer: &Tokenizer,
    out: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<Report> {
    request.check()?;
    let plan = request.arch.plan(request, tokenizer)?;
    file::write(&plan, request, out, progress)
}

/// The requested model in the cache folder, generated with the default tokenizer if missing.
///
/// For tests that want a real file: the second call costs nothing.
pub fn ensure_cached(request: &Request) -> Result<PathBuf> {
    let out = crate::cache::models_folder()?.join(request.file_name());
    let path = file::first_path(&out, request.shards);
    if !path.exists() {
        let tokenizer = Tokenizer::read(&crate::smollm2::cached_path()?)?;
        generate(request, &tokenizer, &out, &mut |_| {})?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests;
