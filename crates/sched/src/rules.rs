//! Who decides about experts, and what decides when nobody says: one table of defaults for every
//! regime. The engine and the simulator take their rules from here; neither has its own.

use motley_machine::Regime;
use serde::{Deserialize, Serialize};

use crate::cache::PolicyChoice;
use crate::prefetch::PrefetchChoice;
use crate::strategy::StrategyChoice;

/// Who decides what.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Who computes in prompts.
    pub prefill: StrategyChoice,
    /// Who computes in decode.
    pub decode: StrategyChoice,
    /// Which experts stay.
    pub policy: PolicyChoice,
    /// What is brought before it is asked for, into idle time of the link only (M4).
    pub prefetch: PrefetchChoice,
}

impl Rules {
    /// The defaults of `regime`.
    ///
    /// | regime | who computes | prefetch | because |
    /// |---|---|---|---|
    /// | one memory | where it is | none | nothing is ever brought |
    /// | hybrid | timelines (H1) | whole layers of a prompt, H2 in decode | a prompt uses nearly all experts of a layer |
    /// | near data | balance (G2) | most used in the prompt (G4) | as its source |
    /// | beyond RAM | on demand | H2 in decode | a chunk's guesses cost the disk more than they save |
    ///
    /// `blend` everywhere: never far below the best policy, and it still hits when less than one
    /// token's experts fit, where LRU hits nothing.
    pub fn default_for(regime: Regime) -> Self {
        let (strategy, prefetch) = match regime {
            Regime::OneMemory => (StrategyChoice::OnDemand, PrefetchChoice::None),
            Regime::Hybrid => (StrategyChoice::Timelines, PrefetchChoice::WholeLayer),
            Regime::NearData => (StrategyChoice::Balanced, PrefetchChoice::PrefillCounted),
            Regime::BeyondRam => (StrategyChoice::OnDemand, PrefetchChoice::NextLayerDecode),
        };
        Self { prefill: strategy, decode: strategy, policy: PolicyChoice::default(), prefetch }
    }

    /// The defaults beyond RAM with devices behind it: timelines over all units and links. What the
    /// CPU computed is brought to a device while its link is idle, where the policy ranks it
    /// above what is there: that is how devices come to hold what is used most. Nothing is guessed:
    /// the disk is the busiest lane, and wrong guesses cost it more than right ones save
    /// (docs/reproduction/tiers.md).
    pub fn beyond_ram_with_devices() -> Self {
        let (prefill, decode) = (StrategyChoice::Timelines, StrategyChoice::Timelines);
        let (policy, prefetch) = (PolicyChoice::default(), PrefetchChoice::Refill);
        Self { prefill, decode, policy, prefetch }
    }
}
