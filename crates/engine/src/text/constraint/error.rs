//! Why there is no constraint, or no next token within one. Words for clients; decides nothing.

/// Why there is no constraint, or no next token within one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConstraintError {
    /// A keyword would not be enforced.
    #[error("`{keyword}` at {at} {why}")]
    Refused { keyword: String, at: String, why: String },
    /// The schema is too long.
    #[error("a schema may have at most {limit_bytes} bytes")]
    TooLarge { limit_bytes: usize },
    /// A grammar, a regular expression or choices are too long.
    #[error("it may have at most {limit_bytes} bytes")]
    TooLong { limit_bytes: usize },
    /// It grows beyond what is compiled.
    #[error("it is too complex: its alternatives, repetitions or patterns multiply")]
    TooComplex,
    /// Nothing satisfies it, or the compiler does not take it; its words.
    #[error("the schema cannot be enforced: {0}")]
    Schema(String),
    /// The same of a grammar, a regular expression or choices.
    #[error("it cannot be enforced: {0}")]
    Text(String),
    /// The model's tokens cannot be arranged.
    #[error("the model's vocabulary is too large to constrain answers")]
    Vocabulary,
    /// A token took more work than is allowed.
    #[error("the answer reached a state of its schema that is too complex to go on")]
    Exhausted,
    /// No token of the vocabulary continues the answer.
    #[error("no token fits the schema")]
    Stuck,
}
