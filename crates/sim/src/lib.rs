//! The simulator: the same judgement as the engine, driven by virtual time and recorded or made
//! routing. It depends on nouns and judgement only.
//!
//! Modules in reading order:
//! - [`replay`]: a trace through a cache under a policy, counting hits (M6).
//! - [`synth`]: made routing with chosen statistics, by seed.
//! - [`fit`]: made routing fitted to a recorded trace, and how well.

#![forbid(unsafe_code)]

pub mod fit;
pub mod replay;
pub mod synth;
