//! The simulator: the same judgement as the engine, driven by virtual time and recorded or made
//! routing. It depends on nouns and judgement only.
//!
//! Modules in reading order:
//! - [`replay`]: a trace through a cache under a policy, counting hits (M6).

#![forbid(unsafe_code)]

pub mod replay;
