//! Why a session could not start or go on.

use crate::blocks::machine::disk::ExpertsError;
use crate::text::sampling::BadLogits;
use motley_ggml::{ContextError, DecodeError};
use motley_plan::budget::TooLittleMemory;
use std::io;
use std::path::PathBuf;

/// Why a session could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No context of that size.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// Experts cannot be read from the model's files.
    #[error(transparent)]
    Experts(#[from] ExpertsError),
    /// The budget is smaller than the model's least.
    #[error(transparent)]
    Memory(#[from] TooLittleMemory),
    /// Decoding failed; the session's tokens up to the failure are kept.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The system gave no threads.
    #[error("cannot start {threads} threads; try fewer with --threads")]
    Threads {
        /// How many were wanted.
        threads: u32,
    },
    /// What was computed is no choice of tokens.
    #[error("token {token} of the context: {source}")]
    Logits { token: usize, source: BadLogits },
    /// Tokens that were guessed wrongly stay in this model's memory; it was emptied.
    #[error("{tokens} guessed tokens cannot be taken back; leave out --speculate")]
    CannotTakeBack { tokens: u32 },
    /// The folder for beginnings of prompts cannot be used, or the model's files not be read.
    #[error("--prefix-cache: {}: {error}", folder.display())]
    PrefixCache { folder: PathBuf, error: io::Error },
    /// More tokens than the context holds.
    #[error(
        "{tokens} tokens do not fit into a context of {context_tokens}; give a larger --context"
    )]
    TooLong {
        tokens: usize,
        /// Length of the context.
        context_tokens: u32,
    },
}

impl SessionError {
    /// Whether somebody ended the work through [`super::Cancel`].
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Decode(DecodeError::Cancelled))
    }
}
