//! Disk, RAM and GPUs at once beside the best arrangement of two memories, llama.cpp's static split
//! and the kTransformers policy: four machines, three models. Predictions from descriptions.
//!
//! Modules in reading order:
//! - [`models`]: the true shapes at four and at two bits.
//! - [`rooms`]: what each memory holds.
//! - `fixed`: residents that never change; `divided`: whole layers on each GPU.
//! - [`systems`]: how each arrangement is put together.
//! - [`bound`]: what no schedule passes, and what binds.
//! - [`rows`](mod@rows): all of them on all machines.

pub mod bound;
mod divided;
mod fixed;
pub mod models;
pub mod rooms;
pub mod rows;
pub mod systems;

/// The machines, by their names among the ready ones.
pub const MACHINES: [&str; 4] =
    ["laptop-8gb-gpu", "desktop-16gb-gpu", "desktop-24gb-gpu-32gb", "desktop-2gpu-24gb-8gb"];

/// Name of the document.
pub const NAME: &str = "tiers";

pub use rows::{Row, rows};
