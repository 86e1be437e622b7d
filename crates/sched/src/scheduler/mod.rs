//! The state machine that runs one layer after another: events in, actions out.
//!
//! It holds no clock, thread, file or byte. The simulator and the engine drive the same one:
//!
//! ```text
//!   on_routed(now, routing) ──┐                      ┌─▶ Load     start a transfer
//!   on_loaded(now, t, key, ok)┼─▶ Scheduler ──poll──▶┼─▶ Compute  start a computation
//!   on_computed(now, key, u) ─┘     _action(now)     ├─▶ Release  bytes are no longer needed
//!                                                    └─▶ Exchange two buffers change roles
//! ```
//!
//! After every event the driver polls until there is no action. A unit has one computation at a
//! time unless set otherwise ([`AtOnce`]); a link has at most
//! [`SchedulerLimits::loads_in_flight`]. An expert is on one link at a time; what is copied onwards
//! from a tier is held there until the copy is done. A layer is finished when
//! [`Scheduler::layer_is_done`]; until the next `on_routed` only prefetches are handed out.
//!
//! Modules in reading order:
//! - [`action`]: limits, what goes in and what comes out.
//! - `layer`: the items of the current layer and the queues of its units and links.
//! - [`places`]: cache slots and staging of a tier, leases on them, what is under way.
//! - `tier`: places, idle time and guesses of one tier; `links`: what each link takes next.
//! - `leave_out`: which routed pairs are not computed at all.
//! - [`idle`]: measured idle link time as a budget for prefetches (M4).
//! - [`pace`]: when the coming layers will be routed.

use motley_cost::Nanos;
use motley_trace::{ExpertGrid, ExpertKey};

use crate::cache::{ExpertCache, SlotId};
use crate::prefetch::Prediction;
use crate::skip::SkipCold;
use crate::strategy::Strategy;
use crate::work::{
    Costs, LayerPlan, LayerWork, MAX_TIERS, Phase, Presence, Share, Tier, Unit, Whereabouts,
    WorkItem,
};

pub mod action;
pub mod idle;
mod layer;
mod leave_out;
mod links;
pub mod pace;
pub mod places;
mod tier;

pub use action::{Action, AtOnce, Counts, LoadLost, Place, Purpose, Routing, SchedulerLimits};
use layer::Layer;
use pace::Pace;
use places::Arrival;
pub use tier::TierParts;
use tier::TierState;

/// What a scheduler is made of.
pub struct SchedulerParts {
    pub costs: Costs,
    /// One for each tier of the costs.
    pub tiers: Vec<TierParts>,
    pub strategy: Box<dyn Strategy>,
}

/// The last routed layer's predictions, kept until the link has time for a guess.
#[derive(Debug, Default)]
struct Outlook {
    phase: Phase,
    predictions: Vec<Prediction>,
    /// Where the predicted experts are, prediction after prediction.
    at: Vec<Whereabouts>,
    /// Whether they have not been looked for since the last routed layer.
    at_is_due: bool,
}

impl Outlook {
    fn take(&mut self, routing: &Routing<'_>) {
        (self.phase, self.at_is_due) = (routing.phase, true);
        self.predictions.resize_with(routing.predictions.len(), Prediction::default);
        for (kept, new) in self.predictions.iter_mut().zip(routing.predictions) {
            kept.layer = new.layer;
            kept.loads.clone_from(&new.loads);
        }
    }
}

/// The scheduler. See the module's head for its use.
pub struct Scheduler {
    costs: Costs,
    strategy: Box<dyn Strategy>,
    grid: ExpertGrid,
    tiers: Vec<TierState>,
    layer: Layer,
    pace: Pace,
    /// What the guesses will be made from, once a link has time for one.
    outlook: Outlook,
    items: Vec<WorkItem>,
    links_free_in: Vec<Nanos>,
    plan: LayerPlan,
    skip_cold: Option<SkipCold>,
    counts: Counts,
}

impl Scheduler {
    /// A scheduler before its first layer.
    ///
    /// # Panics
    /// When the limits leave no staging buffer for demand or no transfer at all, or the tiers are
    /// not those of the costs.
    pub fn new(parts: SchedulerParts) -> Self {
        let SchedulerParts { costs, tiers, strategy } = parts;
        assert!(!tiers.is_empty() && tiers.len() <= MAX_TIERS, "{} tiers", tiers.len());
        assert_eq!(tiers.len(), costs.tiers.len(), "tiers and their costs");
        let is_before = |(tier, cost): (usize, &Tier)| {
            cost.parent.is_none_or(|parent| usize::from(parent) < tier)
        };
        assert!(costs.tiers.iter().enumerate().all(is_before), "a tier before its parent");
        let grid = tiers[0].cache.grid();
        let states = tiers
            .into_iter()
            .zip(0..)
            .map(|(parts, tier)| TierState::new(tier, parts, costs.load_time(tier, Share::WHOLE)));
        Self {
            tiers: states.collect(),
            layer: Layer::new(grid.experts, costs.tiers.len(), costs.lanes()),
            pace: Pace::new(grid.layers),
            links_free_in: Vec::new(),
            plan: LayerPlan::of(costs.tiers.len()),
            costs,
            strategy,
            grid,
            outlook: Outlook::default(),
            items: Vec::new(),
            skip_cold: None,
            counts: Counts::default(),
        }
    }

    /// The same with several computations on a unit at a time.
    ///
    /// # Panics
    /// When a unit could have none.
    #[must_use]
    pub fn computing(mut self, at_once: AtOnce) -> Self {
        assert!(at_once.tier > 0 && at_once.home > 0, "a unit that computes nothing");
        self.layer.set_at_once(at_once);
        self
    }

    /// Home lanes, by the costs it decides with.
    pub fn lanes(&self) -> u16 {
        self.costs.lanes()
    }

    /// Gives slots of a tier to experts before the first layer; the driver loads them at leisure.
    /// Experts beyond the capacity are left out.
    pub fn preload(&mut self, tier: u16, keys: &[ExpertKey]) -> Vec<(ExpertKey, SlotId)> {
        let places = &mut self.tiers[usize::from(tier)].places;
        keys.iter().filter_map(|&key| Some((key, places.preload(key)?))).collect()
    }

    /// Uses `slots` of a tier's cache slots from now on, between layers (M3). The experts that
    /// leave: the driver releases their bytes. Those on their way stay, and count until the
    /// next call.
    pub fn set_cache_slots(&mut self, tier: u16, slots: u32) -> Vec<(ExpertKey, SlotId)> {
        self.tiers[usize::from(tier)].places.cache.set_usable(slots)
    }

    /// A layer has been routed. The previous one must be done.
    ///
    /// # Panics
    /// When the previous layer is not done.
    pub fn on_routed(&mut self, now: Nanos, routing: &Routing<'_>) {
        assert!(self.layer.is_done(), "layer {} is not done", self.layer.number());
        self.pace.on_routed(now, routing.routed.layer, routing.phase);
        self.links_free_in.clear();
        if let Some((first, others)) = self.tiers.split_first_mut() {
            first.places.cache.on_visit(&routing.routed);
            for tier in others {
                tier.places.cache.on_visit(&routing.routed);
                tier.places.cache.follow(&first.places.cache, routing.routed.layer);
            }
        }
        let free_in = |tier: &TierState| tier.places.link_free_at().since(now);
        self.links_free_in.extend(self.tiers.iter().map(free_in));
        self.look_up(now, routing);
        let work = LayerWork {
            layer: routing.routed.layer,
            phase: routing.phase,
            tokens: routing.routed.tokens,
            items: &self.items,
            costs: &self.costs,
            links_free_in: &self.links_free_in,
        };
        self.plan.clear(self.tiers.len());
        self.strategy.plan(&work, &mut self.plan);
        self.tiers.iter_mut().for_each(|tier| tier.prefetcher.on_routed(&work));
        self.layer.begin(&work, &self.plan);
        self.hold_residents(routing.routed.layer);
        for tier in 0..self.tiers.len() {
            self.observe_link(tier, now);
            self.tiers[tier].forget_guesses(true);
        }
        self.outlook.take(routing);
    }

    /// A transfer to a tier has ended.
    pub fn on_loaded(
        &mut self,
        now: Nanos,
        tier: u16,
        key: ExpertKey,
        ok: bool,
    ) -> Result<(), LoadLost> {
        self.observe_link(usize::from(tier), now);
        let arrival = self.tiers[usize::from(tier)].places.on_loaded(key, ok);
        self.counts.failed_loads += u64::from(!ok);
        let parent = self.costs.parent(tier);
        let waits = self.layer.waits_in(key);
        match (arrival, waits) {
            (Arrival::Failed { .. }, Some(own)) if own == tier && parent.is_some() => {
                // It is where it was, and held there.
                self.layer.send_to(key, parent.unwrap_or_default());
                return Ok(());
            }
            (Arrival::Here, Some(own)) if own == tier => self.layer.make_ready(key),
            (Arrival::Failed { .. }, Some(_)) if self.costs.lanes() > 0 => {
                self.layer.send_home(key, self.costs.lane_of(key.expert));
            }
            (Arrival::Failed { attempts }, Some(own)) if self.passes(key, tier, own) => {
                if attempts >= self.tiers[usize::from(tier)].limits.load_attempts {
                    return Err(LoadLost { key, attempts });
                }
                self.layer.load_again(tier, key);
                return Ok(());
            }
            _ => {}
        }
        if let Some(parent) = parent {
            self.after_copy(tier, parent, key, arrival == Arrival::Here);
        }
        Ok(())
    }

    /// A computation has ended.
    pub fn on_computed(&mut self, _now: Nanos, key: ExpertKey, unit: Unit) {
        self.layer.on_computed(key, unit);
        if let Unit::Tier(tier) = unit {
            let keeps = self.strategy.keeps_loaded() && self.may_stay(tier, key);
            self.tiers[usize::from(tier)].places.after_use(key, keeps);
            self.leave_parent(tier, key);
        }
        if self.layer.is_done() {
            let layer = self.layer.number();
            self.tiers.iter_mut().for_each(|tier| tier.places.drop_unused(layer));
        }
    }

    /// Gives the current layer up: a request was cancelled, or an expert was lost. Nothing more of
    /// it is handed out; what is still on a link arrives as a guess would. The driver first
    /// waits for running computations.
    ///
    /// # Panics
    /// When a computation is still running.
    pub fn abandon_layer(&mut self) {
        self.layer.abandon();
        for tier in 0..self.tiers.len() {
            let (before, rest) = self.tiers.split_at_mut(tier + 1);
            let costs = &self.costs;
            let is_source = |key| {
                let mut children = rest.iter().zip(tier + 1..);
                children.any(|(child, number)| {
                    costs.tiers[number].parent == Some(tier as u16) && child.places.is_coming(key)
                })
            };
            before[tier].places.abandon(is_source);
            before[tier].forget_guesses(false);
        }
    }

    /// The next thing to do, if there is one now.
    pub fn poll_action(&mut self, now: Nanos) -> Option<Action> {
        if let Some(action) = self.tiers.iter_mut().find_map(|tier| tier.places.poll()) {
            return Some(action);
        }
        if let Some(action) = self.poll_compute() {
            return Some(action);
        }
        (0..self.tiers.len()).find_map(|tier| self.poll_link(now, tier))
    }

    /// Whether every routed expert of the current layer has been computed.
    pub fn layer_is_done(&self) -> bool {
        self.layer.is_done()
    }

    /// Counts since the beginning.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The limits of a tier.
    pub fn limits(&self, tier: u16) -> SchedulerLimits {
        self.tiers[usize::from(tier)].limits
    }

    /// The cache of a tier, for reports.
    pub fn cache(&self, tier: u16) -> &ExpertCache {
        &self.tiers[usize::from(tier)].places.cache
    }

    /// The plan of the current layer, for `explain` and tests.
    pub fn plan(&self) -> &LayerPlan {
        &self.plan
    }

    /// The work of the current layer as the strategy saw it.
    pub fn work(&self) -> &[WorkItem] {
        &self.items
    }

    fn look_up(&mut self, now: Nanos, routing: &Routing<'_>) {
        self.items.clear();
        for (index, &expert) in routing.routed.experts.iter().enumerate() {
            let key = ExpertKey::new(routing.routed.layer, expert);
            let at = self.whereabouts(key, now);
            self.counts.lookups += 1;
            let is_in = |tier: &u16| at.in_tier(*tier) == Presence::Resident;
            if let Some(tier) = (0..self.tiers.len() as u16).find(is_in) {
                let cached = self.tiers[usize::from(tier)].places.cache.contains(key);
                self.counts.hits += u64::from(cached);
                self.counts.guessed_hits += u64::from(!cached);
            }
            let tokens = routing.routed.load(index).max(1);
            self.items.push(WorkItem { expert, tokens, at });
        }
    }

    fn whereabouts(&self, key: ExpertKey, now: Nanos) -> Whereabouts {
        let mut at = Whereabouts::default();
        for (tier, state) in (0..).zip(&self.tiers) {
            at = match state.places.presence(key, now) {
                Presence::Resident => at.and_in(tier),
                Presence::Arriving(here) => at.and_coming(tier, here),
                Presence::Absent => at,
            };
        }
        at
    }

    /// Holds what this layer will use where it is, so that its own loads do not evict it.
    fn hold_residents(&mut self, layer: u16) {
        for (number, plan) in (0..).zip(&self.plan.tiers) {
            let key = |item: WorkItem| ExpertKey::new(layer, item.expert);
            for item in plan.compute.iter().map(|&i| self.items[usize::from(i)]) {
                if item.at.is_near(number) {
                    self.tiers[usize::from(number)].places.hold(key(item));
                }
            }
            let Some(parent) = self.costs.parent(number) else { continue };
            for item in plan.load.iter().map(|&i| self.items[usize::from(i)]) {
                if item.at.is_near(parent) {
                    self.tiers[usize::from(parent)].places.hold(key(item));
                }
            }
        }
    }

    /// Whether what waits in `own` comes through `tier`.
    fn passes(&self, key: ExpertKey, tier: u16, own: u16) -> bool {
        let on_the_way = self.costs.tiers_above(own) | 1 << own;
        key.layer == self.layer.number() && on_the_way >> tier & 1 == 1
    }

    /// A copy from `parent` to `tier` has ended: its source is free, and leaves where one copy is
    /// enough.
    fn after_copy(&mut self, tier: u16, parent: u16, key: ExpertKey, here: bool) {
        let leaves = here && self.has_alone(tier, key);
        let keeps = !leaves && self.strategy.keeps_loaded();
        self.tiers[usize::from(parent)].places.after_use(key, keeps);
        if here {
            self.leave_parent(tier, key);
        }
    }

    /// Whether `key` stays in a tier whose experts are not in its parent too.
    fn has_alone(&self, tier: u16, key: ExpertKey) -> bool {
        let tier = usize::from(tier);
        self.costs.tiers[tier].exclusive && self.tiers[tier].places.cache.contains(key)
    }

    /// Whether `key` may take the place of another in `tier`. One that is nowhere else is lost to
    /// all memories when it goes, and comes back by the slowest link: it goes only where the parent
    /// would send away none that is used less, by the parent's own ranks.
    fn may_stay(&self, tier: u16, key: ExpertKey) -> bool {
        let Tier { exclusive, parent, .. } = self.costs.tiers[usize::from(tier)];
        let Some(parent) = parent.filter(|_| exclusive) else { return true };
        let cache = &self.tiers[usize::from(tier)].places.cache;
        let Ok(Some(victim)) = cache.victim_for(key) else { return true };
        let there = &self.tiers[usize::from(parent)].places.cache;
        let next_there = there.next_to_leave(key.layer);
        cache.ranks().get(victim) < cache.ranks().get(key)
            && next_there.is_some_and(|next| there.ranks().get(victim) <= next)
    }

    /// What stays in a tier that has it alone leaves the parent.
    fn leave_parent(&mut self, tier: u16, key: ExpertKey) {
        if let Some(parent) = self.costs.parent(tier)
            && self.has_alone(tier, key)
        {
            self.tiers[usize::from(parent)].places.leave(key);
        }
    }

    fn observe_link(&mut self, tier: usize, now: Nanos) {
        let demanded = self.is_link_demanded(tier);
        self.tiers[tier].idle.observe(now, demanded);
    }

    fn is_link_demanded(&self, tier: usize) -> bool {
        self.layer.wants_link(tier as u16) || self.tiers[tier].places.demand_in_flight()
    }

    fn poll_compute(&mut self) -> Option<Action> {
        let start = self.layer.next_compute()?;
        let place = match start.unit {
            Unit::Tier(tier) => self.tiers[usize::from(tier)].places.place_of(start.key),
            Unit::Home(_) => None,
        };
        match start.unit {
            Unit::Tier(_) => self.counts.tier_computes += 1,
            Unit::Home(_) => self.counts.home_computes += 1,
        }
        Some(Action::Compute {
            key: start.key,
            share: start.share,
            unit: start.unit,
            place,
            tokens: start.tokens,
            enters: start.enters,
        })
    }
}
