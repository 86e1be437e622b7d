//! Who computes an expert: one trait, one strategy per file. A strategy sees one layer and writes
//! a plan; it neither starts nor waits for anything.
//!
//! Files in reading order:
//! - [`on_demand`]: every absent expert is loaded (DeepSpeed-style offloading).
//! - [`cpu_on_miss`]: each absent expert goes where it is done sooner (Fiddler).
//! - [`layer_split`]: whole layers here or there (llama.cpp).
//! - [`pinned`]: the most used experts pinned, misses at home in decode (kTransformers).
//! - [`monde`]: near-data units with whole experts, hot ones moved (MoNDE).
//! - [`timelines`]: three timelines filled in advance (H1).
//! - [`parts`]: the same with a part of one expert over the idle link (G2).
//! - [`balanced`]: G2, G3 and G5.
//! - [`whole_layers`]: a layer is streamed whole or computed in place (W7).
//! - [`by_phase`]: one for prompts, one for decoding.
//! - [`choice`]: all of them by name.

use crate::work::{LayerPlan, LayerWork, Waits};

pub mod balanced;
pub mod by_phase;
pub mod choice;
pub mod cpu_on_miss;
pub mod layer_split;
pub mod monde;
pub mod on_demand;
pub mod parts;
pub mod pinned;
pub mod timelines;
pub mod whole_layers;

pub use balanced::Balanced;
pub use by_phase::ByPhase;
pub use choice::StrategyChoice;
pub use cpu_on_miss::CpuOnMiss;
pub use layer_split::LayerSplit;
pub use monde::Monde;
pub use on_demand::OnDemand;
pub use parts::PartsStrategy;
pub use pinned::Pinned;
pub use timelines::TimelineStrategy;
pub use whole_layers::WholeLayers;

/// Decides who computes the experts of one layer.
///
/// Required: [`name`](Self::name) and [`plan`](Self::plan).
pub trait Strategy: Send {
    /// Short lower-case name for tables and flags.
    fn name(&self) -> &'static str;

    /// Writes a plan that computes every item once. `plan` arrives empty.
    ///
    /// Without home lanes (`work.costs.lanes() == 0`) `plan.home` must stay empty.
    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan);

    /// (optional) Whether a loaded expert may stay in the cache. Defaults to yes; a strategy with
    /// a fixed set of residents says no and its loads pass through the staging area.
    fn keeps_loaded(&self) -> bool {
        true
    }
}

/// Near items to the units of their tiers, high load first, those on their way but too far to their
/// home; returns the positions of the absent ones, high load first, in `rest`.
fn near_to_tiers(work: &LayerWork<'_>, plan: &mut LayerPlan, rest: &mut Vec<u16>) {
    rest.clear();
    for (i, item) in work.items.iter().enumerate() {
        match work.waits_at(item) {
            Waits::Tier(tier) => plan.tiers[usize::from(tier)].compute.push(i as u16),
            Waits::Home => plan.home.push(i as u16),
            Waits::Anywhere => rest.push(i as u16),
        }
    }
    plan.tiers.iter_mut().for_each(|tier| high_load_first(work, &mut tier.compute));
    high_load_first(work, rest);
}

fn high_load_first(work: &LayerWork<'_>, items: &mut [u16]) {
    items.sort_unstable_by_key(|&i| {
        let item = work.items[usize::from(i)];
        (std::cmp::Reverse(item.tokens), item.expert)
    });
}

/// Loads `items` to the first tier in order and computes them there.
fn load(plan: &mut LayerPlan, items: &[u16]) {
    plan.tiers[0].load.extend_from_slice(items);
    plan.tiers[0].compute.extend_from_slice(items);
}
