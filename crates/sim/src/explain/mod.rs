//! A recorded run explained (M2): where its time went, what bound it, and what other
//! circumstances would have given. Pure; reads records, measures nothing.
//!
//! - [`parts`]: the time of a phase, cut into parts, and the part that bound it.
//! - [`mod@what_if`]: the same routing again under other circumstances.
//! - `gpu`: one of them, a GPU known by its description.
//! - [`picture`]: both as SVG.

mod gpu;
pub mod parts;
pub mod picture;
pub mod what_if;

pub use parts::{Bound, Part, PhaseParts};
pub use what_if::{Answer, Change, Scaling, WhatIf, what_if};
