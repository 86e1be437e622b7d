//! A recorded run explained (M2): where its time went, what bound it, and what other
//! circumstances would have given. Pure; reads records, measures nothing.
//!
//! - [`parts`]: the time of a phase, cut into parts, and the part that bound it.
//! - [`change`]: what other circumstances there are.
//! - [`mod@what_if`]: the same routing again under other circumstances.
//! - `gpu`: one of them, a GPU known by its description.
//! - [`picture`]: both as SVG.

pub mod change;
mod gpu;
pub mod parts;
pub mod picture;
pub mod what_if;

pub use change::Change;
pub use parts::{Bottleneck, PhaseParts, TimePart};
pub use what_if::{Answer, Scaling, WhatIf, what_if};
