//! Everything that decides in one run, as one value: a driver in real time and the simulator build
//! the same scheduler from it. Starts nothing.

use motley_trace::{ExpertKey, TraceHeader};

use crate::by_memory::Memories;
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
        let limits = SchedulerLimits::beyond_ram(slots, rules.ram.prefetch);
        let kept = slots.saturating_sub(u32::from(limits.staging_slots));
        let tier = TierSetup { capacity: Capacity::Global { slots: kept }, limits };
        Self { costs, tiers: vec![tier], rules, parts: false, most_used: Vec::new() }
    }

    /// The same under other rules: what memory before a disk sets aside follows its prefetcher.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        if self.memories().ram {
            let TierSetup { capacity, limits } = &mut self.tiers[0];
            let slots = capacity.total() + u32::from(limits.staging_slots);
            *limits = SchedulerLimits::beyond_ram(slots, rules.ram.prefetch);
            if let Capacity::Global { slots: kept } = capacity {
                *kept = slots.saturating_sub(u32::from(limits.staging_slots));
            }
        }
        Self { rules, ..self }
    }

    /// Which memories experts are brought to.
    pub fn memories(&self) -> Memories {
        let ram = self.costs.home.is_none();
        Memories { ram, devices: !ram || self.tiers.len() > 1 }
    }

    /// For the slots of devices beside a CPU that has every expert.
    pub fn beside_home(
        rules: Rules,
        shares: Vec<Shares>,
        costs: Costs,
        most_used: Vec<ExpertKey>,
    ) -> Self {
        let costs = costs.over_devices(shares.len());
        let tiers = shares.into_iter().map(TierSetup::from).collect();
        Self { costs, tiers, rules, parts: false, most_used }
    }

    /// The same as [`Self::beyond_ram`] with devices behind memory; `beside_home` says what
    /// things would cost if the CPU had every expert.
    #[must_use]
    pub fn with_devices(
        mut self,
        shares: Vec<Shares>,
        beside_home: Costs,
        most_used: Vec<ExpertKey>,
    ) -> Self {
        let disk = self.costs.tiers[0].link;
        self.costs = beside_home.over_devices(shares.len()).behind_disk(disk);
        self.tiers.extend(shares.into_iter().map(TierSetup::from));
        Self { most_used, ..self }
    }

    /// The room of the first tier.
    pub fn first(&self) -> &TierSetup {
        &self.tiers[0]
    }

    /// What each tier begins with, as far as there is room: whole layers under a split by layers,
    /// else the most used experts, dealt to tiers as they have room. Memory that is filled from a
    /// disk begins empty.
    pub fn residents(&self, header: &TraceHeader) -> Vec<Vec<ExpertKey>> {
        let from_disk = self.memories() == Memories { ram: true, devices: true };
        let room = |tier: usize| match from_disk && tier == 0 {
            true => 0,
            false => self.tiers[tier].capacity.total() as usize,
        };
        let rooms: Vec<usize> = (0..self.tiers.len()).map(room).collect();
        let all: usize = rooms.iter().sum();
        let by_layers = self.rules.decode == StrategyChoice::LayerSplit;
        let keys = match by_layers {
            true => LayerSplit::residents(header.grid(), all as u32),
            false => self.most_used.clone(),
        };
        deal(&keys, &rooms, by_layers)
    }

    /// The scheduler before its first layer.
    pub fn scheduler(&self, header: &TraceHeader) -> Scheduler {
        let grid = header.grid();
        let build = if self.parts { StrategyChoice::build } else { StrategyChoice::build_whole };
        let (prefill, decode) = (build(self.rules.prefill), build(self.rules.decode));
        let rules_of = |number: usize| match number {
            0 if self.memories().ram => self.rules.ram,
            _ => self.rules.devices,
        };
        let first = rules_of(0).policy;
        let cache = |number: usize, capacity: Capacity| match rules_of(number).policy {
            same if number > 0 && same == first && same.looks_at_visits_only() => {
                ExpertCache::following(grid, capacity)
            }
            own => ExpertCache::new(grid, capacity, own.build(header)),
        };
        let tier = |(number, tier): (usize, &TierSetup)| TierParts {
            cache: cache(number, tier.capacity.clone()),
            prefetcher: rules_of(number).prefetch.build(grid),
            limits: tier.limits,
        };
        Scheduler::new(SchedulerParts {
            costs: self.costs.clone(),
            tiers: self.tiers.iter().enumerate().map(tier).collect(),
            strategy: Box::new(ByPhase::new(prefill, decode)),
        })
        .skipping(self.rules.skip_cold)
    }
}

impl From<Shares> for TierSetup {
    fn from(Shares { capacity, limits }: Shares) -> Self {
        Self { capacity, limits }
    }
}

/// Deals keys to tiers: one after the other `in_order`, else each to the tier that is emptiest for
/// its size, so that all have a part of the first.
fn deal(keys: &[ExpertKey], rooms: &[usize], in_order: bool) -> Vec<Vec<ExpertKey>> {
    let mut dealt = vec![Vec::new(); rooms.len()];
    for &key in keys {
        let with_room = (0..rooms.len()).filter(|&tier| dealt[tier].len() < rooms[tier]);
        let fullness = |tier: usize| dealt[tier].len() as f64 / rooms[tier] as f64;
        let next = match in_order {
            true => with_room.min(),
            false => with_room.min_by(|&a, &b| fullness(a).total_cmp(&fullness(b))),
        };
        let Some(tier) = next else { break };
        dealt[tier].push(key);
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experts_are_dealt_as_tiers_have_room() {
        let keys: Vec<ExpertKey> = (0..6).map(|expert| ExpertKey::new(0, expert)).collect();
        let numbers = |in_order| {
            let dealt = deal(&keys, &[3, 0, 2], in_order);
            dealt.iter().map(|own| own.iter().map(|key| key.expert).collect()).collect()
        };
        let spread: Vec<Vec<u16>> = numbers(false);
        assert_eq!(spread, [vec![0, 2, 4], vec![], vec![1, 3]]);
        let in_order: Vec<Vec<u16>> = numbers(true);
        assert_eq!(in_order, [vec![0, 1, 2], vec![], vec![3, 4]]);
    }
}
