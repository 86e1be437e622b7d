//! The strategies by name: what a flag or a plan chooses from.

use std::str::FromStr;

use thiserror::Error;

use super::{
    Balanced, CpuOnMiss, LayerSplit, Monde, OnDemand, PartsStrategy, Pinned, Strategy,
    TimelineStrategy, WholeLayers,
};

/// A strategy with its usual parameters.
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
    /// Every strategy.
    pub const ALL: [Self; 9] = [
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

    /// The strategy's name.
    pub fn name(self) -> &'static str {
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

/// A name no strategy has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no strategy is called `{name}`; there are {}", StrategyChoice::ALL.map(StrategyChoice::name).join(", "))]
pub struct UnknownStrategy {
    /// The name given.
    pub name: String,
}

impl FromStr for StrategyChoice {
    type Err = UnknownStrategy;

    fn from_str(name: &str) -> Result<Self, UnknownStrategy> {
        let found = Self::ALL.into_iter().find(|choice| choice.name() == name);
        found.ok_or_else(|| UnknownStrategy { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_builds_the_strategy_of_that_name() {
        for choice in StrategyChoice::ALL {
            assert_eq!(choice.name().parse(), Ok(choice));
            assert_eq!(choice.build().name(), choice.name());
        }
        let error = "magic".parse::<StrategyChoice>().expect_err("not there").to_string();
        assert!(error.contains("`magic`") && error.contains("timelines"), "{error}");
    }
}
