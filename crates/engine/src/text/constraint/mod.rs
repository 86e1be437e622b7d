//! What an answer may look like, token by token, made from a JSON schema. Pure Rust on top of
//! `llguidance`: knows nothing of llama.cpp, and draws no tokens itself.
//!
//! Accepted means enforced: a schema with anything that would not be is refused by name
//! (`accepted`), and so is one that grows beyond the limits below. Work per token is bounded by
//! the same limits; a constraint that reaches one ends with an error and harms nobody else.
//!
//! * `accepted`: which keywords are taken, and how they are written for the compiler.
//! * `pattern`, `format`: regular expressions and formats of strings.
//! * `expansion`: how much alternatives multiply.
//! * `vocabulary`: tokens as bytes, once per model; compiles.
//! * `progress`: a schema with how much of an answer has been said.

mod accepted;
mod error;
mod expansion;
mod format;
mod pattern;
mod progress;
mod vocabulary;

pub use error::ConstraintError;
pub use progress::{Constraint, TokenMask};
pub use vocabulary::{Token, Vocabulary};
