//! What comparisons of systems share: models, one stream of tokens, and the sums of a drive.
//!
//! Modules in reading order:
//! - [`model`]: a model's shape and how it routes.
//! - `cut`: one stream of tokens cut up.
//! - [`routing`]: tokens to count, to decode and to read as prompts.
//! - `sums`: what a drive came to, and what of it came before.

pub(crate) mod cut;
pub mod model;
pub mod routing;
pub(crate) mod sums;
