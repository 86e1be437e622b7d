//! Hostile requests as data: what is sent, what the sender does then, and what a sound server
//! may make of it. The short run of the tests and the long one of `cargo xtask hostile` draw
//! from the same list.
//!
//! * `attack`: one of them, and what can come of it.
//! * `list`: all of them.
//! * `carry_out`: sends one over a plain socket and sees what comes of it.
//! * `random`: the same attacks for the same seed.

mod attack;
mod carry_out;
mod list;
mod random;

pub use attack::{Attack, Outcome, Then, head, post};
pub use carry_out::carry_out;
pub use list::{Strength, attack, names, one_class_run};
pub use random::Random;
