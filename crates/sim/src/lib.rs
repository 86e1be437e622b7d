//! The simulator: the same judgement as the engine, driven by virtual time and recorded or made
//! routing. It depends on nouns and judgement only.
//!
//! Modules in reading order:
//! - [`replay`]: a trace through a cache under a policy, counting hits (M6).
//! - [`holdout`]: policies compared on the half of a trace their parameters have not seen.
//! - [`synth`]: made routing with chosen statistics, by seed.
//! - [`fit`]: made routing fitted to a recorded trace, and how well.
//! - [`curves`]: hit rate over cache size for every policy.
//! - [`chart`]: the curves as a picture.
//! - [`report`]: all of it as one document.

#![forbid(unsafe_code)]

pub mod chart;
pub mod curves;
pub mod fit;
pub mod holdout;
pub mod replay;
pub mod report;
pub mod synth;
