//! Static shapes for a device that only runs graphs compiled ahead (N2, N4, N5), the block a
//! device wants (W4) and how several units share experts (W6). Shapes; nothing is compiled here.
//!
//! - [`capacity`]: N2, how many rows each expert gets.
//! - [`groups`]: N4, experts of one tier in one graph.
//! - [`residency`]: N5, which groups run on the device and which on the CPU.
//! - [`block`]: W2 and W4, blocks of tokens.
//! - [`sharing`]: W6, tensor or expert parallel.

pub mod block;
pub mod capacity;
pub mod groups;
pub mod residency;
pub mod sharing;

pub use block::{block_tokens, blocks_needed};
pub use capacity::{LayerTiers, TierRule, Used};
pub use groups::{Group, GroupRule, group};
pub use residency::{GroupCosts, Home, Placed, place};
pub use sharing::{Sharing, share_experts};
