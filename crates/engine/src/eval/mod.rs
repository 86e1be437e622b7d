//! How well a model does under given settings: perplexity of text, and multiple choice
//! by log-likelihood. Measures a session; chooses no settings and prints nothing.
//!
//! Modules, in reading order:
//! * [`statistics`]: intervals of means and proportions, paired differences.
//! * [`perplexity`]: windows of a text, scored.
//! * [`tasks`]: question files (BoolQ, HellaSwag) as prompts with choices.
//! * [`choice`]: questions answered by the likelihood of their choices.
//! * `prefix`: what a session holds already is not computed again.
//! * `likelihood`: logits to log-probabilities.

use crate::session::SessionError;
use std::path::PathBuf;

pub mod choice;
mod likelihood;
pub mod perplexity;
mod prefix;
pub mod statistics;
pub mod tasks;

pub use choice::{Answered, Answers, Settings as ChoiceSettings, answer_all};
pub use perplexity::{Perplexity, Windows};
pub use statistics::{Interval, PairedCounts, mean_interval, wilson};
pub use tasks::{Question, Task};

/// Why an evaluation could not be done.
#[derive(Debug, thiserror::Error)]
pub enum EvalError {
    /// The session failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A file of text or questions cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is larger than anything an evaluation needs.
    #[error("{}: {bytes} bytes, more than the {limit_bytes} an evaluation reads", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// A line is no question of its task.
    #[error("{}:{line}: not a {task} question: {reason}", path.display())]
    Question {
        /// The file.
        path: PathBuf,
        /// Line number from 1.
        line: usize,
        /// The task whose format was expected.
        task: Task,
        /// What is wrong.
        reason: String,
    },
    /// Too little text for one window, or no question to ask.
    #[error("{}: nothing to evaluate: {have} where at least {least} are needed", path.display())]
    TooLittle {
        /// The file.
        path: PathBuf,
        /// Tokens or questions there are.
        have: usize,
        /// Tokens or questions needed.
        least: usize,
    },
}
