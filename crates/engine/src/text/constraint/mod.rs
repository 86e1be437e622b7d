//! What an answer may look like, token by token, made from a JSON schema, a grammar, a regular
//! expression or a list of choices. Pure Rust on top of `llguidance`: knows nothing of llama.cpp, and
//! draws no tokens itself.
//!
//! Accepted means enforced: a schema with anything that would not be is refused by name
//! (`accepted`), and so is one that grows beyond the limits below. Work per token is bounded by
//! the same limits; a constraint that reaches one ends with an error and harms nobody else.
//!
//! * `accepted`: which keywords are taken, and how they are written for the compiler.
//! * `pattern`, `format`: regular expressions and formats of strings.
//! * `expansion`: how much alternatives multiply.
//! * `text_form`: what is no JSON; `gbnf`: llama.cpp's grammars.
//! * `vocabulary`: tokens as bytes, once per model; compiles.
//! * `progress`: a schema with how much of an answer has been said.

mod accepted;
mod error;
mod expansion;
mod format;
mod gbnf;
mod pattern;
mod progress;
mod text_form;
mod vocabulary;

pub use error::ConstraintError;
pub use progress::{Constraint, TokenMask};
pub use text_form::TextForm;
pub use vocabulary::{Token, Vocabulary};
