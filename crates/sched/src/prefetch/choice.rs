//! The prefetchers by name: what a flag or a plan chooses from.

use motley_trace::ExpertGrid;

use crate::named::{Named, by_name};
use crate::work::Phase;

use super::next_layer::MAX_LAYERS;
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
    /// The same, in decode and of one layer only: from disk, a chunk's guesses cost more than they
    /// save.
    NextLayerDecode,
    /// In decode, of the next three layers.
    NextLayersDecode,
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
            Self::NextLayerDecode => Box::new(NextLayer::decode_only(1)),
            Self::NextLayersDecode => Box::new(NextLayer::decode_only(MAX_LAYERS)),
            Self::PrefillCounted => Box::new(PrefillCounted::new(grid)),
            Self::Refill => Box::new(Refill::after(Box::new(NoPrefetch))),
            Self::NextLayerRefill => Box::new(Refill::after(Box::new(NextLayer::default()))),
            Self::WholeLayer => {
                Box::new(WholeLayer::before(grid, Box::new(NextLayer::decode_only(1))))
            }
        }
    }

    /// Whether it looks at predictions of the coming layers.
    pub fn uses_predictions(self) -> bool {
        self.layers_ahead_in(Phase::Decode) > 0
    }

    /// Of how many coming layers in `phase`: predictions nobody looks at need not be made. In a
    /// prompt of one at most: a chunk needs most experts of a layer anyway.
    pub fn layers_ahead_in(self, phase: Phase) -> u16 {
        let (prompts, decode) = match self {
            Self::NextLayer | Self::NextLayerRefill => (1, MAX_LAYERS as u16),
            Self::NextLayersDecode => (0, MAX_LAYERS as u16),
            Self::NextLayerDecode | Self::WholeLayer => (0, 1),
            Self::None | Self::PreviousToken | Self::PrefillCounted | Self::Refill => (0, 0),
        };
        if phase == Phase::Prefill { prompts } else { decode }
    }
}

impl Named for PrefetchChoice {
    const KIND: &'static str = "prefetcher";
    const ALL: &'static [Self] = &[
        Self::None,
        Self::PreviousToken,
        Self::NextLayer,
        Self::NextLayerDecode,
        Self::NextLayersDecode,
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
            Self::NextLayersDecode => "next-layers-decode",
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
    fn layers_ahead_are_those_whose_predictions_are_looked_at() {
        use PrefetchChoice::{NextLayer, NextLayerDecode, NextLayersDecode, Refill, WholeLayer};
        for (choice, prompts, decode) in [
            (Refill, 0, 0),
            (NextLayer, 1, 3),
            (NextLayerDecode, 0, 1),
            (NextLayersDecode, 0, 3),
            (WholeLayer, 0, 1),
        ] {
            let ahead = [Phase::Prefill, Phase::Decode].map(|phase| choice.layers_ahead_in(phase));
            assert_eq!(ahead, [prompts, decode], "{}", choice.name());
        }
    }

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
