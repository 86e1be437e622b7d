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
    /// A draft model could not guess, or not follow the text.
    #[error("the draft model: {0}; leave out --draft")]
    Draft(Box<Self>),
    /// A draft model that cannot be used.
    #[error(transparent)]
    DraftRefused(#[from] DraftRefused),
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
        match self {
            Self::Draft(error) => error.is_cancelled(),
            _ => matches!(self, Self::Decode(DecodeError::Cancelled)),
        }
    }
}

/// Why a draft model cannot be used with a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DraftRefused {
    /// Nothing is guessed, or nothing could be taken back.
    #[error("this session guesses no tokens ahead")]
    NothingGuessed,
    /// Guesses that were wrong have to leave its memory.
    #[error(
        "the draft model has layers with one state for all tokens, which takes none back; \
         --draft needs one without"
    )]
    TakesNoneBack,
    /// Its tokens are not the model's.
    #[error("the draft model has {draft} tokens, and the model {model}; --draft needs the same")]
    Tokens { draft: usize, model: usize },
}
