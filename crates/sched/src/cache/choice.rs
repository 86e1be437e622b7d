//! The online policies by name, with their parameters: what a flag or a plan chooses from.
//! `popularity` and `belady` are not here: they need a profile, or the future.

use std::fmt;

use super::CachePolicy;
use super::blend::{Blend, BlendParams};
use super::lfru::Lfru;
use super::lfu::Lfu;
use super::lru::Lru;
use super::mrs::{Mrs, MrsParams};
use crate::named::{Named, by_name};
use motley_trace::TraceHeader;

/// Half-life of `lfru` by default, in visits.
pub const DEFAULT_HALF_LIFE_VISITS: f64 = 16.0;
/// α of `mrs` by default; the paper leaves it open.
pub const DEFAULT_ALPHA: f64 = 0.1;

/// An online policy and its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PolicyChoice {
    /// Least recently used.
    Lru,
    /// Least frequently used.
    Lfu,
    /// Fading count.
    Lfru {
        /// Visits in which a count halves.
        half_life_visits: f64,
    },
    /// Averaged router scores (H3), p = 2k.
    Mrs {
        /// Share of the newest score.
        alpha: f64,
    },
    /// Blended forecasts.
    Blend(BlendParams),
}

impl PolicyChoice {
    /// A policy that has seen nothing, for a model or trace of this shape.
    pub fn build(self, header: &TraceHeader) -> Box<dyn CachePolicy> {
        let grid = header.grid();
        match self {
            Self::Lru => Box::new(Lru::new()),
            Self::Lfu => Box::new(Lfu::new(grid)),
            Self::Lfru { half_life_visits } => Box::new(Lfru::new(grid, half_life_visits)),
            Self::Mrs { alpha } => Box::new(Mrs::new(grid, MrsParams { alpha, top: 2 * header.k })),
            Self::Blend(params) => Box::new(Blend::new(grid, params)),
        }
    }

    /// Whether its ranks follow from what was routed alone, so that all caches of a machine have
    /// the same ones.
    pub fn looks_at_visits_only(self) -> bool {
        !matches!(self, Self::Lru)
    }

    /// Whether it looks at router scores of all experts.
    pub fn uses_scores(self) -> bool {
        matches!(self, Self::Mrs { .. })
    }
}

impl Named for PolicyChoice {
    const KIND: &'static str = "cache policy";
    const ALL: &'static [Self] = &[
        Self::Lru,
        Self::Lfu,
        Self::Lfru { half_life_visits: DEFAULT_HALF_LIFE_VISITS },
        Self::Mrs { alpha: DEFAULT_ALPHA },
        Self::Blend(BlendParams { learning_rate: 0.02, succession: true }),
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::Lfu => "lfu",
            Self::Lfru { .. } => "lfru",
            Self::Mrs { .. } => "mrs",
            Self::Blend(_) => "blend",
        }
    }
}

/// `blend`: never far below the best, and it keeps hitting when less than one token's
/// experts fit, where LRU hits nothing.
impl Default for PolicyChoice {
    fn default() -> Self {
        Self::Blend(BlendParams { learning_rate: 0.02, succession: true })
    }
}

impl fmt::Display for PolicyChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lru | Self::Lfu => f.write_str(self.name()),
            Self::Lfru { half_life_visits } => write!(f, "lfru(half-life {half_life_visits})"),
            Self::Mrs { alpha } => write!(f, "mrs(α {alpha})"),
            Self::Blend(params) => {
                let succession = if params.succession { "succession" } else { "no succession" };
                write!(f, "blend(rate {}, {succession})", params.learning_rate)
            }
        }
    }
}

by_name!(PolicyChoice);

#[cfg(test)]
mod tests {
    use motley_trace::record::FORMAT_VERSION;

    use super::*;

    #[test]
    fn every_name_builds_the_policy_of_that_name() {
        let header =
            TraceHeader { version: FORMAT_VERSION, model: "m".into(), layers: 2, experts: 4, k: 2 };
        for choice in PolicyChoice::ALL {
            assert_eq!(choice.build(&header).name(), choice.name());
        }
    }

    #[test]
    fn blend_has_the_parameters_it_defaults_to() {
        assert!(PolicyChoice::ALL.contains(&PolicyChoice::Blend(BlendParams::default())));
    }
}
