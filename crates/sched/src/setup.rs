//! Everything that decides in one run, as one value: a driver in real time and the simulator build
//! the same scheduler from it. Starts nothing.

use motley_trace::{ExpertKey, TraceHeader};

use crate::cache::{Capacity, ExpertCache};
use crate::rules::Rules;
use crate::scheduler::{Scheduler, SchedulerLimits, SchedulerParts, TierParts};
use crate::shares::Shares;
use crate::strategy::{ByPhase, LayerSplit, StrategyChoice};
use crate::work::Costs;

/// Who decides what, with which room.
#[derive(Debug, Clone, PartialEq)]
pub struct SchedulerSetup {
    /// What things cost, as far as is known before the run.
    pub costs: Costs,
    /// One for each tier of the costs.
    pub tiers: Vec<TierSetup>,
    pub rules: Rules,
    /// Whether the units compute parts of experts (G2), or whole ones only.
    pub parts: bool,
    /// Experts known to be used much, the most used first; none where nothing is known.
    pub most_used: Vec<ExpertKey>,
}

/// The room of one tier.
#[derive(Debug, Clone, PartialEq)]
pub struct TierSetup {
    /// Slots whose experts stay.
    pub capacity: Capacity,
    /// Limits, with the slots that let experts through.
    pub limits: SchedulerLimits,
}

impl SchedulerSetup {
    /// For `slots` of memory beside experts on disk.
    pub fn beyond_ram(rules: Rules, slots: u32, costs: Costs) -> Self {
        let limits = SchedulerLimits::beyond_ram(slots, rules.prefetch);
        let kept = slots.saturating_sub(u32::from(limits.staging_slots));
        let tier = TierSetup { capacity: Capacity::Global { slots: kept }, limits };
        Self { costs, tiers: vec![tier], rules, parts: false, most_used: Vec::new() }
    }

    /// For the slots of devices beside a CPU that has every expert.
    pub fn beside_home(
        rules: Rules,
        shares: Shares,
        costs: Costs,
        most_used: Vec<ExpertKey>,
    ) -> Self {
        let Shares { capacity, limits } = shares;
        Self { costs, tiers: vec![TierSetup { capacity, limits }], rules, parts: false, most_used }
    }

    /// The room of the first tier.
    pub fn first(&self) -> &TierSetup {
        &self.tiers[0]
    }

    /// What the first tier begins with, as far as there is room: whole layers under a split by
    /// layers, else the most used experts.
    pub fn residents(&self, header: &TraceHeader) -> Vec<ExpertKey> {
        match self.rules.decode {
            StrategyChoice::LayerSplit => {
                LayerSplit::residents(header.grid(), self.first().capacity.total())
            }
            _ => self.most_used.clone(),
        }
    }

    /// The scheduler before its first layer.
    pub fn scheduler(&self, header: &TraceHeader) -> Scheduler {
        let grid = header.grid();
        let build = if self.parts { StrategyChoice::build } else { StrategyChoice::build_whole };
        let (prefill, decode) = (build(self.rules.prefill), build(self.rules.decode));
        let policy = self.rules.policy;
        let cache = |number: usize, capacity: Capacity| match number {
            1.. if policy.looks_at_visits_only() => ExpertCache::following(grid, capacity),
            _ => ExpertCache::new(grid, capacity, policy.build(header)),
        };
        let tier = |(number, tier): (usize, &TierSetup)| TierParts {
            cache: cache(number, tier.capacity.clone()),
            prefetcher: self.rules.prefetch.build(grid),
            limits: tier.limits,
        };
        Scheduler::new(SchedulerParts {
            costs: self.costs.clone(),
            tiers: self.tiers.iter().enumerate().map(tier).collect(),
            strategy: Box::new(ByPhase::new(prefill, decode)),
        })
    }
}
