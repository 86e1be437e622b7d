//! The strategies by name: what a flag or a plan chooses from.

use crate::named::{Named, by_name};

use super::{
    Balanced, CpuOnMiss, LayerSplit, Monde, OnDemand, PartsStrategy, Pinned, Strategy,
    TimelineStrategy, WholeLayers,
};

/// A strategy with its default parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrategyChoice {
    /// Every absent expert is loaded.
    OnDemand,
    /// Each absent expert goes where it is done sooner.
    CpuOnMiss,
    /// Whole layers here or there.
    LayerSplit,
    /// The most used pinned, misses at home in decode.
    Pinned,
    /// Hot experts moved, the others on their near-data unit.
    Monde,
    /// Three timelines filled in advance (H1).
    Timelines,
    /// The same with a part of one expert over the idle link.
    Parts,
    /// G2, G3 and G5.
    Balanced,
    /// A layer is streamed whole or computed in place.
    WholeLayers,
}

impl StrategyChoice {
    /// The strategy before its first layer.
    pub fn build(self) -> Box<dyn Strategy> {
        match self {
            Self::OnDemand => Box::new(OnDemand::default()),
            Self::CpuOnMiss => Box::new(CpuOnMiss::default()),
            Self::LayerSplit => Box::new(LayerSplit::default()),
            Self::Pinned => Box::new(Pinned::default()),
            Self::Monde => Box::new(Monde::default()),
            Self::Timelines => Box::new(TimelineStrategy::default()),
            Self::Parts => Box::new(PartsStrategy::default()),
            Self::Balanced => Box::new(Balanced::new(true, true)),
            Self::WholeLayers => Box::new(WholeLayers::default()),
        }
    }

    /// The same for units that compute whole experts only.
    pub fn build_whole(self) -> Box<dyn Strategy> {
        match self {
            Self::Balanced => Box::new(Balanced::new(true, false)),
            Self::Parts => Box::new(TimelineStrategy::default()),
            other => other.build(),
        }
    }
}

impl Named for StrategyChoice {
    const KIND: &'static str = "strategy";
    const ALL: &'static [Self] = &[
        Self::OnDemand,
        Self::CpuOnMiss,
        Self::LayerSplit,
        Self::Pinned,
        Self::Monde,
        Self::Timelines,
        Self::Parts,
        Self::Balanced,
        Self::WholeLayers,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::OnDemand => "on-demand",
            Self::CpuOnMiss => "cpu-on-miss",
            Self::LayerSplit => "layer-split",
            Self::Pinned => "pinned",
            Self::Monde => "monde",
            Self::Timelines => "timelines",
            Self::Parts => "timelines+parts",
            Self::Balanced => "balanced",
            Self::WholeLayers => "whole-layers",
        }
    }
}

by_name!(StrategyChoice);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_builds_the_strategy_of_that_name() {
        for choice in StrategyChoice::ALL {
            assert_eq!(choice.build().name(), choice.name());
        }
    }
}
