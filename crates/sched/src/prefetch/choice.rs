//! The prefetchers by name: what a flag or a plan chooses from.

use motley_trace::ExpertGrid;

use crate::named::{Named, by_name};
use crate::work::Phase;

use super::{NextLayer, NoPrefetch, Prefetcher, PrefillCounted, PreviousToken, Refill, WholeLayer};

/// A prefetcher, or the pair HybriMoE uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefetchChoice {
    /// No guesses.
    None,
    /// What the last token used in the coming layer.
    PreviousToken,
    /// Predicted loads, ranked by what each would save (H2).
    NextLayer,
    /// The same, in decode only: from disk, a chunk's guesses cost more than they save.
    NextLayerDecode,
    /// The experts most used in prefill (G4).
    PrefillCounted,
    /// What was missed, when the cache's policy wants it.
    Refill,
    /// H2, and after it what was missed.
    NextLayerRefill,
    /// The whole next layer of a prompt (double buffering), H2 in decode.
    WholeLayer,
}

impl PrefetchChoice {
    /// The prefetcher before its first layer.
    pub fn build(self, grid: ExpertGrid) -> Box<dyn Prefetcher> {
        match self {
            Self::None => Box::new(NoPrefetch),
            Self::PreviousToken => Box::new(PreviousToken::new(grid)),
            Self::NextLayer => Box::new(NextLayer::default()),
            Self::NextLayerDecode => Box::new(NextLayer::decode_only()),
            Self::PrefillCounted => Box::new(PrefillCounted::new(grid)),
            Self::Refill => Box::new(Refill::after(Box::new(NoPrefetch))),
            Self::NextLayerRefill => Box::new(Refill::after(Box::new(NextLayer::default()))),
            Self::WholeLayer => {
                Box::new(WholeLayer::before(grid, Box::new(NextLayer::decode_only())))
            }
        }
    }

    /// Whether it looks at predictions of the coming layers.
    pub fn uses_predictions(self) -> bool {
        self.uses_predictions_in(Phase::Decode)
    }

    /// The same in one phase: predictions nobody looks at need not be made.
    pub fn uses_predictions_in(self, phase: Phase) -> bool {
        match self {
            Self::NextLayer | Self::NextLayerRefill => true,
            Self::NextLayerDecode | Self::WholeLayer => phase == Phase::Decode,
            Self::None | Self::PreviousToken | Self::PrefillCounted | Self::Refill => false,
        }
    }
}

impl Named for PrefetchChoice {
    const KIND: &'static str = "prefetcher";
    const ALL: &'static [Self] = &[
        Self::None,
        Self::PreviousToken,
        Self::NextLayer,
        Self::NextLayerDecode,
        Self::PrefillCounted,
        Self::Refill,
        Self::NextLayerRefill,
        Self::WholeLayer,
    ];

    /// A pair is joined by `+`.
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::PreviousToken => "previous-token",
            Self::NextLayer => "next-layer",
            Self::NextLayerDecode => "next-layer-decode",
            Self::PrefillCounted => "prefill-counted",
            Self::Refill => "refill",
            Self::NextLayerRefill => "next-layer+refill",
            Self::WholeLayer => "whole-layer",
        }
    }
}

by_name!(PrefetchChoice);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_builds_the_prefetcher_of_that_name() {
        let grid = ExpertGrid { layers: 2, experts: 4 };
        for choice in PrefetchChoice::ALL {
            let built = choice.build(grid);
            assert!(
                choice.name().contains(built.name()) || *choice == PrefetchChoice::NextLayerRefill
            );
        }
    }
}
