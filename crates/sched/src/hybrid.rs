//! Everything that decides in the hybrid regime, as one value: a driver in real time and the
//! simulator build the same scheduler from it. Starts nothing.

use motley_trace::{ExpertKey, TraceHeader};

use crate::cache::{Capacity, ExpertCache, PolicyChoice};
use crate::prefetch::PrefetchChoice;
use crate::scheduler::{Limits, Scheduler, SchedulerParts};
use crate::strategy::{ByPhase, LayerSplit, StrategyChoice};
use crate::work::Costs;

/// Who decides what, with which room.
#[derive(Debug, Clone, PartialEq)]
pub struct HybridSetup {
    /// What things cost, as far as is known before the run.
    pub costs: Costs,
    /// Slots whose experts stay.
    pub capacity: Capacity,
    /// Limits, with the slots that let experts through.
    pub limits: Limits,
    /// Who computes in prompts.
    pub prefill: StrategyChoice,
    /// Who computes in decode.
    pub decode: StrategyChoice,
    /// Which experts stay.
    pub policy: PolicyChoice,
    /// What is brought before it is asked for.
    pub prefetch: PrefetchChoice,
    /// Experts known to be used much, the most used first; none where nothing is known.
    pub most_used: Vec<ExpertKey>,
}

impl HybridSetup {
    /// What the device begins with, as far as there is room: whole layers under a split by
    /// layers, else the most used experts.
    pub fn residents(&self, header: &TraceHeader) -> Vec<ExpertKey> {
        match self.decode {
            StrategyChoice::LayerSplit => {
                LayerSplit::residents(header.grid(), self.capacity.total())
            }
            _ => self.most_used.clone(),
        }
    }

    /// The scheduler before its first layer. Its units compute whole experts only.
    pub fn scheduler(&self, header: &TraceHeader) -> Scheduler {
        let grid = header.grid();
        let (prefill, decode) = (self.prefill.build_whole(), self.decode.build_whole());
        Scheduler::new(SchedulerParts {
            costs: self.costs,
            cache: ExpertCache::new(grid, self.capacity.clone(), self.policy.build(header)),
            strategy: Box::new(ByPhase::new(prefill, decode)),
            prefetcher: self.prefetch.build(grid),
            limits: self.limits,
        })
    }
}
