//! Random-weight GGUF models of any shape, to test engines on; nothing they say means anything.
//!
//! The shapes, keys and tensors are those the pinned llama.cpp asks for, the tokenizer is a real
//! one, activations keep a sane size through the layers, and routing spreads over the experts
//! (evenly, or Zipf-like with a skew). Same request, same bytes.
//!
//! In reading order:
//! - [`arch`]: one file per architecture: its keys and tensors.
//! - [`shape`]: the numbers an architecture is built from, and the presets.
//! - [`Request`]: what to generate.
//! - [`plan`]: metadata and tensors of one model, before any byte exists.
//! - [`fill`]: random bytes for each ggml type, scaled to a standard deviation.
//! - [`router`]: how popular each expert is.
//! - [`file`](mod@file): streams a plan into one file or several shards.

pub mod arch;
pub mod file;
pub mod fill;
pub mod plan;
mod request;
pub mod router;
pub mod shape;

pub use arch::Arch;
pub use request::Request;
pub use shape::{Preset, Shape};

use crate::gguf_source::Tokenizer;
use crate::output::{Progress, WrittenModel};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};

/// Writes the requested model to `out` (for shards: names after the manner of gguf-split).
///
/// `progress` gets the total once, then how many bytes were added.
pub fn generate(
    request: &Request,
    tokenizer: &Tokenizer,
    out: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<WrittenModel> {
    check(request)?;
    let plan = arch::plan(request, tokenizer);
    file::write(&plan, request, out, progress)
}

/// Refuses what no file can hold, in words that name the option.
fn check(request: &Request) -> Result<()> {
    request.shape.check()?;
    arch::check(request.arch, &request.shape)?;
    let Shape { experts, topk, .. } = request.shape;
    ensure!(
        request.skew >= 0.0 && (request.skew == 0.0 || experts >= 3 * topk),
        "--skew {} needs at least 3 experts per chosen one ({experts} for top-{topk})",
        request.skew
    );
    ensure!(fill::can_fill(request.quant), "--quant {}: no generator for this type", request.quant);
    ensure!((1..=512).contains(&request.shards), "--split takes 1 to 512 files");
    Ok(())
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
