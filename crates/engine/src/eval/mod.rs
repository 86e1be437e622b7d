//! How well a model does under given settings: perplexity of text, and multiple choice
//! by log-likelihood. Measures a session; chooses no settings and prints nothing.
//!
//! Modules, in reading order:
//! * [`statistics`]: intervals of means and proportions, paired differences.
//! * [`perplexity`]: windows of a text, scored.
//! * [`divergence`]: how far one setting's distributions are from another's.
//! * [`tasks`]: question files (BoolQ, HellaSwag) as prompts with choices.
//! * [`choice`]: questions answered by the likelihood of their choices.
//! * `prefix`: what a session holds already is not computed again.
//! * `likelihood`: logits to log-probabilities.

pub mod choice;
pub mod divergence;
mod error;
mod likelihood;
pub mod perplexity;
mod prefix;
mod question;
pub mod statistics;
pub mod tasks;

pub use choice::{Answered, Answers, Settings as ChoiceSettings, answer_all};
pub use divergence::{Divergence, Reference, ReferenceError, TokenDivergence};
pub use error::EvalError;
pub use perplexity::{Pace, Perplexity, Windows};
pub use question::{Question, Task};
pub use statistics::{Interval, PairedCounts, mean_interval, wilson};
