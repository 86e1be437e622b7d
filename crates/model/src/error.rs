//! Why a model could not be opened.

use std::path::PathBuf;

use crate::files::OpenError;

/// Why headers do not describe a model Motley can work with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No header at all.
    #[error("a model needs at least one file")]
    Empty,
    /// A metadata key that every model has.
    #[error("metadata key {key:?} is missing; this may not be a language model")]
    Missing { key: String },
    /// A key whose value is not a count (or, per layer, has too few of them).
    #[error("metadata key {key:?} does not hold a count for every layer")]
    NotACount { key: String },
    /// A count beyond what llama.cpp supports.
    #[error("metadata key {key:?} is {value}, more than the limit of {limit}")]
    TooLarge { key: String, value: u64, limit: u64 },
    /// Each expert in a tensor of its own, as converters wrote until April 2024.
    #[error(
        "tensor {tensor:?} holds a single expert: the file is in the old format from before April \
         2024; convert the model again with a current convert_hf_to_gguf.py or download a newer file"
    )]
    OldFormat {
        /// The first such tensor.
        tensor: String,
    },
    /// The same tensor in two files of a split model.
    #[error("tensor {tensor:?} appears twice; the parts of different models may be mixed")]
    Duplicate { tensor: String },
    /// An expert tensor whose slowest dimension is not the number of experts.
    #[error("tensor {tensor:?} of shape {dims:?} does not hold {experts} experts")]
    ExpertShape {
        tensor: String,
        /// Its dimensions, fastest first.
        dims: Vec<u64>,
        /// `expert_count`.
        experts: u32,
    },
    /// A number of experts used per token that cannot be.
    #[error("layer {layer}: {used} experts per token of {experts}")]
    Used {
        layer: u32,
        /// Experts per token.
        used: u64,
        experts: u32,
    },
    /// Groups that do not divide the experts.
    #[error("{count} groups, {used} used, do not divide {experts} experts")]
    Groups {
        experts: u32,
        count: u32,
        /// Groups used per token.
        used: u32,
    },
}

/// Why a model could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Its files were refused.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Its files are sound, its description is not.
    #[error("{}: cannot be used", path.display())]
    Spec { path: PathBuf, source: SpecError },
}
