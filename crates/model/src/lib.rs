//! What a model is: GGUF files read into shapes, sizes and the place of every expert.
//!
//! Contains no FFI, no threads, no clock and no tensor data: only headers are read. Hostile bytes
//! meet this crate first and never panic it.
//!
//! Modules in reading order:
//!
//! * [`gguf`]: the container format: types, reader with limits, writer, virtual layout.
//! * `error`: why a model could not be opened.
//! * `opened`: a file, opened once and watched; `files`: the files of a model, split ones too.
//! * `role`: what each tensor is for, by its name.
//! * `keys`: metadata of one architecture; `hparams`: the shape, from it; `sliding`: which layers
//!   look back at a window only.
//! * `embedding`: vectors of whole texts, where it was made for them.
//! * `kv_type`: what keys and values are kept in.
//! * `router`: how experts are chosen (W1).
//! * `experts`: where each expert lies.
//! * `sampling`: how its makers want tokens chosen.
//! * `spec`: all of it together, [`ModelSpec`].
//! * `vocabulary`: whether two models have the same.
//! * `weighed`: whether the weights of experts can be computed beside llama.cpp.
//! * `fewer`: the same with fewer experts per token.
//! * `values`: what must not reach llama.cpp, because it would end the process.
//! * `sizes`: bytes by purpose.
//! * `summary`: the model in brief, serialisable.
//! * `bytes`: numbers of bytes, written for people.
#![forbid(unsafe_code)]

pub mod gguf;

mod bytes;
mod embedding;
mod error;
mod experts;
mod fewer;
mod files;
mod hparams;
mod keys;
mod kv_type;
mod opened;
mod positioned;
mod role;
mod router;
mod sampling;
mod sizes;
mod sliding;
mod spec;
mod summary;
mod values;
mod vocabulary;
mod weighed;

pub use bytes::format_bytes;
pub use embedding::{Embedding, Pooling};
pub use error::{ModelError, SpecError};
pub use experts::{ExpertTensor, FileRange, LayerExperts};
pub use fewer::FewerError;
pub use files::{MAX_SHARDS, ModelFiles, OpenError};
pub use hparams::{Attention, MAX_EXPERTS, MAX_LAYERS, Shape};
pub use kv_type::{KvType, NotInBlocks};
pub use opened::{FileIdentity, OpenedFile};
pub use positioned::{read_at, read_exact_at};
pub use role::{Matrix, Role, TensorPart};
pub use router::{Gating, Groups, Router};
pub use sampling::SamplingHints;
pub use sizes::{Quantisation, Sizes, TypeShare};
pub use spec::{ModelSpec, SharedExperts, SpecTensor};
pub use summary::{FileSummary, LayerSummary, Summary};
pub use values::{MAX_TOKEN_BYTES, MAX_WIDTH, ValueError, check_values};
pub use vocabulary::{OtherVocabulary, same_vocabulary};
pub use weighed::Unweighed;
