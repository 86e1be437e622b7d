//! What the compared systems keep on GPUs is fixed: whole layers, or the most used experts of each.
//! The strategy and the cache policy of that; both choose nothing while tokens run.

use motley_sched::cache::{CachePolicy, Rank, Ranks, Routed};
use motley_sched::{LayerPlan, LayerWork, Phase, Presence, Strategy};

/// Residents never leave, and nobody takes their place.
#[derive(Debug, Default)]
pub(super) struct FixedResidents;

impl CachePolicy for FixedResidents {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn on_visit(&mut self, _routed: &Routed<'_>, _ranks: &mut Ranks) {}

    fn admits(&self, _newcomer: Rank, _victim: Rank) -> bool {
        false
    }
}

/// Experts on a GPU are computed there, the others by the CPU; for large passes of a prompt the
/// others can be copied to the GPU of their layer.
#[derive(Debug)]
pub(super) struct FixedSplit {
    /// The tier of RAM, when experts come from disk.
    pub(super) ram: Option<u16>,
    /// The tier of the GPU each layer belongs to.
    pub(super) gpu_of: Vec<u16>,
    /// Tokens of a prompt's pass from which experts are copied.
    pub(super) copies_from: Option<u32>,
    pub(super) keeps: bool,
}

impl FixedSplit {
    fn compute(plan: &mut LayerPlan, i: u16, to: u16) {
        plan.tiers[usize::from(to)].compute.push(i);
    }

    fn load(plan: &mut LayerPlan, i: u16, to: u16) {
        plan.tiers[usize::from(to)].load.push(i);
    }
}

impl Strategy for FixedSplit {
    fn name(&self) -> &'static str {
        "fixed-split"
    }

    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        let is_large = self.copies_from.is_some_and(|from| work.tokens >= from);
        let copies = is_large && work.phase == Phase::Prefill;
        let own = self.gpu_of[usize::from(work.layer)];
        let first_gpu = self.ram.map_or(0, |ram| ram + 1);
        for (i, item) in (0..).zip(work.items) {
            let is_in = |tier: &u16| item.at.in_tier(*tier) == Presence::Resident;
            if let Some(gpu) = (first_gpu..work.costs.tiers.len() as u16).find(is_in) {
                Self::compute(plan, i, gpu);
                continue;
            }
            if let Some(ram) = self.ram.filter(|ram| !item.at.is_near(*ram)) {
                Self::load(plan, i, ram);
            }
            match (copies, self.ram) {
                (true, _) => {
                    Self::load(plan, i, own);
                    Self::compute(plan, i, own);
                }
                (false, Some(ram)) => Self::compute(plan, i, ram),
                (false, None) => plan.home.push(i),
            }
        }
    }

    fn keeps_loaded(&self) -> bool {
        self.keeps
    }
}
