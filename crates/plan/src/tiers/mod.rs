//! Static shapes for a device that only runs graphs compiled ahead (N2, N4, N5). Shapes; nothing
//! is compiled here.
//!
//! - [`capacity`]: N2, how many rows each expert gets.
//! - [`groups`]: N4, experts of one tier in one graph.
//! - [`residency`]: N5, which groups run on the device and which on the CPU.

pub mod capacity;
pub mod groups;
pub mod residency;

pub use capacity::{LayerTiers, TierRule, Used};
pub use groups::{Group, GroupRule, group};
pub use residency::{GroupCosts, Home, Placed, place};
