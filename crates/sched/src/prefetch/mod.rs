//! Which expert to fetch before it is asked for: one trait, one guess per file.
//!
//! A prefetcher only names candidates. Whether one is fetched is the scheduler's decision, and it
//! does so only into idle link time (M4), never evicts a resident for a guess, and never while a
//! demanded expert waits.
//!
//! Files in reading order:
//! - [`none`]: no guesses.
//! - [`previous_token`]: what the last token used in the coming layers.
//! - [`next_layer`]: predicted loads, ranked by what each would save (H2).
//! - [`prefill_counted`]: the experts most used in prefill, before decode begins (G4).
//! - [`refill`]: what was missed, when the cache's policy wants it.
//! - [`whole_layer`]: the next layer of a prompt, whole (double buffering).
//! - [`choice`]: all of them by name.

use motley_cost::Nanos;
use motley_trace::ExpertKey;

use crate::work::{Costs, LayerWork, Phase, Whereabouts};

pub mod choice;
pub mod next_layer;
pub mod none;
pub mod prefill_counted;
pub mod previous_token;
pub mod refill;
pub mod whole_layer;

pub use choice::PrefetchChoice;
pub use next_layer::NextLayer;
pub use none::NoPrefetch;
pub use prefill_counted::PrefillCounted;
pub use previous_token::PreviousToken;
pub use refill::Refill;
pub use whole_layer::WholeLayer;

/// Loads a coming layer is expected to have, from its gate on the current hidden state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prediction {
    /// The coming layer.
    pub layer: u16,
    /// (expert, tokens), each expert once, the surer one first.
    pub loads: Vec<(u16, u32)>,
}

/// An expert worth fetching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidate {
    /// It may be needed soon. It never evicts: it takes a free slot or a staging buffer.
    Guess(ExpertKey),
    /// It was needed and was not there. It may evict what the policy ranks lower.
    Refill(ExpertKey),
}

impl Candidate {
    /// The expert.
    pub fn key(self) -> ExpertKey {
        let (Self::Guess(key) | Self::Refill(key)) = self;
        key
    }
}

/// What a prefetcher may look at.
pub struct PrefetchView<'a> {
    /// The tier it fetches for.
    pub tier: u16,
    /// The layer just routed.
    pub layer: u16,
    /// Layers of the model.
    pub layers: u16,
    pub phase: Phase,
    /// Predictions for the coming layers, nearest first; empty when nobody makes any.
    pub predictions: &'a [Prediction],
    pub costs: &'a Costs,
    /// In which tiers the experts of `predictions` are, prediction after prediction.
    pub at: &'a [Whereabouts],
    /// Whether an expert need not be fetched: it is in the tier, in one that is not on the way
    /// there, or will be.
    pub is_near: &'a dyn Fn(ExpertKey) -> bool,
    /// Whether an expert is where the tier is filled from, and on no link.
    pub can_come: &'a dyn Fn(ExpertKey) -> bool,
    /// How long after a layer is routed a guess started now would be there; zero when in time.
    pub late_by: &'a dyn Fn(u16) -> Nanos,
}

/// Names experts worth fetching.
///
/// Required: [`name`](Self::name) and [`candidates`](Self::candidates).
pub trait Prefetcher: Send {
    /// Short lower-case name for tables and flags.
    fn name(&self) -> &'static str;

    /// Appends candidates to `out`, best first. Asked at most once per layer, when the link is
    /// idle. Those near already are skipped.
    fn candidates(&mut self, view: &PrefetchView<'_>, out: &mut Vec<Candidate>);

    /// (optional) A layer has been routed. Defaults to nothing.
    fn on_routed(&mut self, _work: &LayerWork<'_>) {}
}
