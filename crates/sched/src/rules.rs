//! Who decides about experts, and what decides when nobody says: one table of defaults for every
//! regime. The engine and the simulator take their rules from here; neither has its own.

use motley_machine::Regime;
use serde::{Deserialize, Serialize};

use crate::by_memory::{ByMemory, Memories, NotThere};
use crate::cache::PolicyChoice;
use crate::prefetch::PrefetchChoice;
use crate::skip::SkipCold;
use crate::strategy::StrategyChoice;
use crate::work::Phase;

/// Who decides what.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Who computes in prompts.
    pub prefill: StrategyChoice,
    /// Who computes in decode.
    pub decode: StrategyChoice,
    /// RAM that experts come to from disk; as devices where it has every expert.
    pub ram: MemoryRules,
    /// The memory of devices; as RAM where there are none.
    pub devices: MemoryRules,
    /// Which weak experts are left out in place of being read; none unless asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_cold: Option<SkipCold>,
}

/// Who decides about one memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemoryRules {
    /// Which experts stay.
    pub policy: PolicyChoice,
    /// What is brought before it is asked for, into idle time of the link only (M4).
    pub prefetch: PrefetchChoice,
}

impl Rules {
    /// The same strategy in both phases and the same rules in every memory.
    pub fn of(strategy: StrategyChoice, policy: PolicyChoice, prefetch: PrefetchChoice) -> Self {
        let memory = MemoryRules { policy, prefetch };
        let (ram, devices) = (memory, memory);
        Self { prefill: strategy, decode: strategy, ram, devices, skip_cold: None }
    }

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
    /// token's experts fit, where LRU hits nothing. A model's profile may know better for the
    /// machine it was made on (M6).
    pub fn default_for(regime: Regime) -> Self {
        let (strategy, prefetch) = match regime {
            Regime::OneMemory => (StrategyChoice::OnDemand, PrefetchChoice::None),
            Regime::Hybrid => (StrategyChoice::Timelines, PrefetchChoice::WholeLayer),
            Regime::NearData => (StrategyChoice::Balanced, PrefetchChoice::PrefillCounted),
            Regime::BeyondRam => (StrategyChoice::OnDemand, PrefetchChoice::NextLayerDecode),
        };
        Self::of(strategy, PolicyChoice::default(), prefetch)
    }

    /// The defaults beyond RAM with devices behind it: timelines over all units and links. What the
    /// CPU computed is brought to a device while its link is idle, where the policy ranks it
    /// above what is there: that is how devices come to hold what is used most. Nothing is guessed:
    /// the disk is the busiest lane, and wrong guesses cost it more than right ones save
    /// (docs/reproduction/tiers.md).
    pub fn beyond_ram_with_devices() -> Self {
        Self::of(StrategyChoice::Timelines, PolicyChoice::default(), PrefetchChoice::Refill)
    }

    /// What is asked for in place of these, on a machine with `memories`. One that is not there has
    /// the rules of the one that is, so that nothing is asked of it, or said about it.
    pub fn with(
        mut self,
        policy: &ByMemory<PolicyChoice>,
        prefetch: &ByMemory<PrefetchChoice>,
        memories: Memories,
    ) -> Result<Self, NotThere> {
        policy.check(memories)?;
        prefetch.check(memories)?;
        self.ram.policy = policy.for_ram(self.ram.policy);
        self.ram.prefetch = prefetch.for_ram(self.ram.prefetch);
        self.devices.policy = policy.for_devices(self.devices.policy);
        self.devices.prefetch = prefetch.for_devices(self.devices.prefetch);
        match memories {
            Memories { ram: true, devices: false } => self.devices = self.ram,
            Memories { ram: false, devices: true } => self.ram = self.devices,
            _ => {}
        }
        Ok(self)
    }

    /// Policies as a flag writes them.
    pub fn policies(&self) -> String {
        ByMemory::of(self.ram.policy, self.devices.policy).to_string()
    }

    /// Prefetchers as a flag writes them.
    pub fn prefetchers(&self) -> String {
        ByMemory::of(self.ram.prefetch, self.devices.prefetch).to_string()
    }

    /// Whether a policy looks at router scores of all experts.
    pub fn use_scores(&self) -> bool {
        self.ram.policy.uses_scores() || self.devices.policy.uses_scores()
    }

    /// Whether a prefetcher looks at predictions of the coming layers in `phase`.
    pub fn use_predictions_in(&self, phase: Phase) -> bool {
        self.layers_ahead_in(phase) > 0
    }

    /// Of how many coming layers predictions are looked at in `phase`.
    pub fn layers_ahead_in(&self, phase: Phase) -> u16 {
        let [ram, devices] =
            [self.ram, self.devices].map(|memory| memory.prefetch.layers_ahead_in(phase));
        ram.max(devices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_that_is_not_there_follows_the_one_that_is() {
        let default = Rules::default_for(Regime::BeyondRam);
        let both = Memories { ram: true, devices: true };
        let with = |policy: &str, prefetch: &str, memories| {
            default.with(&policy.parse().unwrap(), &prefetch.parse().unwrap(), memories)
        };
        let found = with("ram=lru", "none,gpu=next-layer", both).unwrap();
        assert_eq!(found.policies(), "ram=lru,gpu=blend");
        assert_eq!(found.prefetchers(), "ram=none,gpu=next-layer");
        assert!(found.use_predictions_in(Phase::Prefill) && !found.use_scores());
        let disk = with("ram=mrs", "none", Memories { devices: false, ..both }).unwrap();
        assert_eq!((disk.policies().as_str(), disk.prefetchers().as_str()), ("mrs", "none"));
        assert!(disk.use_scores() && !disk.use_predictions_in(Phase::Decode));
        let refused = with("ram=lru", "none", Memories { ram: false, ..both }).unwrap_err();
        assert_eq!((refused.kind, refused.memory), ("cache policy", "ram"));
    }
}
