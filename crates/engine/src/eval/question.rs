//! A kind of questions, and one of them. Read by `tasks`, asked by `choice`.

use serde::Serialize;
use std::fmt;

/// A kind of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Yes or no about a passage (Clark et al. 2019).
    Boolq,
    /// Which of four endings follows (Zellers et al. 2019).
    Hellaswag,
}

impl Task {
    /// Name in reports and messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Boolq => "boolq",
            Self::Hellaswag => "hellaswag",
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A prompt and the ways it may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What the model reads.
    pub prompt: String,
    /// Continuations, each with its leading space.
    pub choices: Vec<String>,
    /// Index of the right one.
    pub answer: usize,
}

impl Question {
    /// The prompt with its right continuation.
    pub(super) fn solved(&self) -> String {
        format!("{}{}", self.prompt, self.choices[self.answer])
    }
}
