//! What to make of a dense model, and the file name that says so.

use std::path::Path;

/// Part of every cached file's name; rises when the same request gives other bytes.
const GENERATOR_VERSION: u32 = 1;

/// What to make of a dense model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Experts per layer.
    pub experts: u64,
    /// Experts chosen per token.
    pub topk: u64,
    /// Neurons that stay together: 32, or 256 for K-quants.
    pub block: u64,
    /// Orders and routers follow from this.
    pub seed: u64,
}

impl Request {
    /// File name with the request and the dense model.
    pub fn file_name(&self, dense: &Path) -> String {
        let stem = dense.file_stem().unwrap_or_default().to_string_lossy();
        let Self { experts, topk, block, seed } = self;
        format!("{stem}-upcycled-e{experts}k{topk}b{block}-seed{seed}-v{GENERATOR_VERSION}.gguf")
    }
}
