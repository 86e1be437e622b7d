//! Which experts stay in a tier: slots, leases and the policies that rank residents.
//! Decides only: it moves no bytes, reads no clock and starts no thread.
//!
//! A policy turns events into *ranks*: one number per expert, the lowest leaves first. The cache
//! keeps the ranks in a tournament tree, so a policy never searches and never has to know what is
//! resident or leased.
//!
//! ```text
//!   routing of a layer ──on_visit──▶ policy ──set(key, rank)──▶ Ranks ──lowest──▶ ExpertCache
//! ```
//!
//! Modules in reading order:
//! - [`capacity`]: how many slots; [`residency`]: `ExpertCache`, slots and leases on top of one
//!   policy.
//! - `routed`: from a recorded visit to what a layer needs.
//! - [`ranks`]: the tournament tree with the lowest rank of a layer and of everything resident.
//! - [`lru`], [`lfu`], [`lfru`]: recency, frequency, and both.
//! - [`mrs`]: averaged router scores (H3).
//! - [`popularity`]: a fixed order from a profile (N1).
//! - [`blend`]: our own, forecasts of several time scales blended online.
//! - [`belady`]: the bound no online policy passes.
//! - [`choice`]: the online policies by name.
//! - `decay`: fading sums for `lfru` and `mrs`.

use motley_trace::ExpertKey;

pub mod belady;
pub mod blend;
pub mod capacity;
pub mod choice;
mod decay;
pub mod lfru;
pub mod lfu;
pub mod lru;
pub mod mrs;
pub mod popularity;
pub mod ranks;
pub mod residency;
mod routed;

pub use capacity::Capacity;
pub use choice::PolicyChoice;
pub use ranks::{Rank, Ranks};
pub use residency::{AdmitError, Admitted, ExpertCache, Lease, SlotId};
pub use routed::RoutedBuffer;

/// What one layer needs in one forward pass: the unit in which experts are used together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Routed<'a> {
    /// The layer that has been routed.
    pub layer: u16,
    /// Tokens in this visit: 1 in single-sequence decode, the chunk's length in prefill.
    pub tokens: u32,
    /// The distinct experts needed, in order of first appearance.
    pub experts: &'a [u16],
    /// Tokens that chose each of `experts`; empty when each was chosen once.
    pub loads: &'a [u32],
    /// Router weight of each of `experts`, averaged over `tokens`; empty when not known.
    pub weights: &'a [f32],
    /// Router scores of all experts of the layer, averaged over `tokens`; empty when not known.
    pub scores: &'a [f32],
}

impl Routed<'_> {
    /// The keys of the needed experts.
    pub fn keys(&self) -> impl Iterator<Item = ExpertKey> + '_ {
        self.experts.iter().map(|&expert| ExpertKey::new(self.layer, expert))
    }

    /// Tokens that chose the expert at `index` of `experts`.
    pub fn load(&self, index: usize) -> u32 {
        self.loads.get(index).copied().unwrap_or(1)
    }
}

/// A replacement policy: it ranks experts, resident or not.
///
/// Required: [`name`](Self::name) and [`on_visit`](Self::on_visit). Everything else may be
/// omitted; each default says what happens then.
pub trait CachePolicy: Send {
    /// Short lower-case name for tables and flags.
    fn name(&self) -> &'static str;

    /// A layer has been routed. Called once per visit, before its lookups; the ranks set here
    /// already decide this visit's evictions.
    fn on_visit(&mut self, routed: &Routed<'_>, ranks: &mut Ranks);

    /// (optional) `key` has become resident, by demand or by prefetch. Defaults to nothing: it
    /// keeps the rank it had, [`Rank::LOWEST`] if never ranked. A policy that wants a prefetched
    /// expert to survive until its first use ranks it here.
    fn on_admit(&mut self, _key: ExpertKey, _ranks: &mut Ranks) {}

    /// (optional) `key` has left. Defaults to nothing: its rank and history stay.
    fn on_evict(&mut self, _key: ExpertKey, _ranks: &mut Ranks) {}

    /// (optional) Whether `newcomer` may replace a victim. Defaults to yes. A policy that says no
    /// leaves the expert to be computed where it is, or from a staging buffer.
    fn admits(&self, _newcomer: Rank, _victim: Rank) -> bool {
        true
    }

    /// (optional) Whether a needed expert may be used without becoming resident, so that the
    /// experts of one visit may displace each other. Defaults to no: all experts of a visit hold
    /// slots together as far as capacity allows. Yes needs a staging buffer of k slots outside
    /// the cache, or a device that computes misses in place.
    fn bypasses(&self) -> bool {
        false
    }
}
