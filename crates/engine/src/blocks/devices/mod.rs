//! The hybrid regime in real time: experts in RAM, some of them also in a device's memory, both
//! computing at once (H1–H4, G2–G5). Drives the same scheduler as the simulator; chooses nothing.
//!
//! ```text
//!   driver's thread   block ─ route ─▶ uncached experts on the CPU ─▶ rows ─▶ block is done
//!   fast thread       takes what the scheduler hands to the device, all that is ready at once
//!   copy thread       brings experts over the link; an arrived one joins the device's queue
//! ```
//!
//! All three report to one board and poll it themselves, so that the device and the link go on
//! while the CPU computes.
//!
//! Modules in reading order:
//! - [`units`]: what a device, a link and the CPU have to offer.
//! - `buffers`: which buffer of the device a place of the scheduler is, and what is in it.
//! - `board`: the scheduler with its queues; events in, orders out.
//! - [`executor`]: the threads, and one block from routing to rows.
//! - [`figures`]: what it did, and why it could not go on.
//! - [`device`]: a device of ggml's behind these traits; [`several`]: several of them as one.
//! - [`helper`]: the blocks of a session through it.
//! - [`artificial`]: units that sleep for what they would take, and drives over them.

pub mod artificial;
mod board;
mod buffers;
pub mod device;
pub mod executor;
pub mod figures;
pub mod helper;
pub mod several;
pub mod units;

pub use crate::blocks::clock::Clock;
pub use executor::{BlockDone, Executor, ExecutorParts};
pub use figures::{HybridError, HybridFigures};
pub use helper::{HybridHandle, HybridOptions, HybridReport};
pub use several::DeviceRoom;
pub use units::{CopyOrder, FastOrder, FastUnit, Flow, HomeOrder, HomeUnit, Link, UnitFailed};
