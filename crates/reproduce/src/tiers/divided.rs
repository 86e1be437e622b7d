//! Today's way with several GPUs: each has whole layers, and H1 and H2 see the one a layer belongs
//! to. A mask over the machine's tiers; it judges nothing.

use motley_sched::prefetch::{Candidate, PrefetchView, Prefetcher};
use motley_sched::timeline::Timelines;
use motley_sched::{Costs, LayerPlan, LayerWork, Presence, Strategy, Tier, Whereabouts, WorkItem};

/// The machine as layers of each tier see it.
#[derive(Debug, Clone)]
pub(super) struct Division {
    /// The tier of each layer.
    pub(super) tier_of: Vec<u16>,
    /// What the machine costs with that tier alone.
    costs: Vec<Costs>,
}

impl Division {
    pub(super) fn new(tier_of: Vec<u16>, costs: &Costs) -> Self {
        let alone = |tier: &Tier| Costs { tiers: vec![*tier], ..costs.clone() };
        Self { tier_of, costs: costs.tiers.iter().map(alone).collect() }
    }

    /// The tier of a layer.
    fn tier(&self, layer: u16) -> u16 {
        self.tier_of[usize::from(layer)]
    }
}

/// Where it is, of one tier, as if that were the only one.
fn seen_from(at: Whereabouts, tier: u16) -> Whereabouts {
    match at.in_tier(tier) {
        Presence::Absent => Whereabouts::default(),
        Presence::Resident => Whereabouts::default().and_in(0),
        Presence::Arriving(here) => Whereabouts::default().and_coming(0, here),
    }
}

fn items_from(items: &[WorkItem], tier: u16, seen: &mut Vec<WorkItem>) {
    seen.clear();
    seen.extend(items.iter().map(|item| WorkItem { at: seen_from(item.at, tier), ..*item }));
}

/// H1 over the CPU and the GPU of the layer.
#[derive(Debug)]
pub(super) struct DividedTimelines {
    division: Division,
    timelines: Timelines,
    items: Vec<WorkItem>,
    own: LayerPlan,
}

impl DividedTimelines {
    pub(super) fn new(division: Division) -> Self {
        let (timelines, own) = (Timelines::default(), LayerPlan::of(1));
        Self { division, timelines, items: Vec::new(), own }
    }
}

impl Strategy for DividedTimelines {
    fn name(&self) -> &'static str {
        "divided-timelines"
    }

    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        let tier = self.division.tier(work.layer);
        items_from(work.items, tier, &mut self.items);
        let own = LayerWork {
            items: &self.items,
            costs: &self.division.costs[usize::from(tier)],
            links_free_in: &[work.link_free_in(tier)],
            ..*work
        };
        self.timelines.plan(&own, &mut self.own);
        plan.home.clone_from(&self.own.home);
        plan.tiers[usize::from(tier)].clone_from(&self.own.tiers[0]);
    }
}

/// Guesses of one GPU, for its own layers.
pub(super) struct DividedPrefetcher {
    division: Division,
    inner: Box<dyn Prefetcher>,
    items: Vec<WorkItem>,
    at: Vec<Whereabouts>,
}

impl DividedPrefetcher {
    pub(super) fn new(division: Division, inner: Box<dyn Prefetcher>) -> Self {
        Self { division, inner, items: Vec::new(), at: Vec::new() }
    }
}

impl Prefetcher for DividedPrefetcher {
    fn name(&self) -> &'static str {
        "divided"
    }

    fn on_routed(&mut self, work: &LayerWork<'_>) {
        let tier = self.division.tier(work.layer);
        items_from(work.items, tier, &mut self.items);
        self.inner.on_routed(&LayerWork { items: &self.items, ..*work });
    }

    fn candidates(&mut self, view: &PrefetchView<'_>, out: &mut Vec<Candidate>) {
        self.at.clear();
        self.at.extend(view.at.iter().map(|at| seen_from(*at, view.tier)));
        let costs = &self.division.costs[usize::from(view.tier)];
        self.inner.candidates(&PrefetchView { tier: 0, costs, at: &self.at, ..*view }, out);
        out.retain(|candidate| self.division.tier(candidate.key().layer) == view.tier);
    }
}
