//! Why an evaluation could not be done.

use super::question::Task;
use crate::session::SessionError;
use motley_ggml::TokenizeError;
use std::path::PathBuf;

/// Why an evaluation could not be done.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The session failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The text was not tokenized.
    #[error(transparent)]
    Tokenize(#[from] TokenizeError),
    /// A file of text or questions cannot be read.
    #[error("{}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    /// A file is larger than anything an evaluation needs.
    #[error("{}: {bytes} bytes, more than the {limit_bytes} an evaluation reads", path.display())]
    TooLarge { path: PathBuf, bytes: u64, limit_bytes: u64 },
    /// A line is not a question of its task.
    #[error("{}:{line}: not a {task} question: {reason}", path.display())]
    Question {
        path: PathBuf,
        /// Line number from 1.
        line: usize,
        /// The task whose format was expected.
        task: Task,
        reason: String,
    },
    /// Too little text for one window, or no question to ask.
    #[error("{}: nothing to evaluate: {have} where at least {least} are needed", path.display())]
    TooLittle {
        path: PathBuf,
        /// Tokens or questions there are.
        have: usize,
        /// Tokens or questions needed.
        least: usize,
    },
}
