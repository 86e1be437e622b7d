//! The state machine that runs one layer after another: events in, actions out.
//!
//! It holds no clock, thread, file or byte. The simulator and the engine drive the same one:
//!
//! ```text
//!   on_routed(now, routing) ─┐                      ┌─▶ Load     start a transfer
//!   on_loaded(now, key, ok) ─┼─▶ Scheduler ──poll──▶┼─▶ Compute  start a computation
//!   on_computed(now, key, u) ┘     _action(now)     ├─▶ Release  bytes are no longer needed
//!                                                   └─▶ Exchange two buffers change roles
//! ```
//!
//! After every event the driver polls until there is no action. A unit has one computation at a
//! time unless set otherwise ([`AtOnce`]); the link has at most [`SchedulerLimits::loads_in_flight`]. A layer is finished when
//! [`Scheduler::layer_is_done`]; until the next `on_routed` only prefetches are handed out.
//!
//! Modules in reading order:
//! - [`action`]: limits, what goes in and what comes out.
//! - `layer`: the items of the current layer and the queues of its lanes.
//! - [`places`]: cache slots and staging, leases on them, what is under way.
//! - [`idle`]: measured idle link time as a budget for prefetches (M4).
//! - [`pace`]: when the coming layers will be routed.

use motley_cost::Nanos;
use motley_trace::{ExpertGrid, ExpertKey};

use crate::cache::{ExpertCache, SlotId};
use crate::prefetch::{Candidate, Prediction, PrefetchView, Prefetcher};
use crate::strategy::Strategy;
use crate::work::{Costs, LayerPlan, LayerWork, Phase, Presence, Share, Unit, WorkItem};

pub mod action;
pub mod idle;
mod layer;
pub mod pace;
pub mod places;

pub use action::{Action, AtOnce, Counts, LoadLost, Place, Purpose, Routing, SchedulerLimits};
use idle::IdleLink;
use layer::Layer;
use pace::Pace;
use places::{Arrival, Places};

/// What a scheduler is made of.
pub struct SchedulerParts {
    pub costs: Costs,
    /// Slots, leases and the replacement policy.
    pub cache: ExpertCache,
    pub strategy: Box<dyn Strategy>,
    /// What to fetch early.
    pub prefetcher: Box<dyn Prefetcher>,
    pub limits: SchedulerLimits,
}

/// The last routed layer's predictions, kept until the link has time for a guess.
#[derive(Debug, Default)]
struct Outlook {
    phase: Phase,
    predictions: Vec<Prediction>,
    is_new: bool,
}

impl Outlook {
    fn take(&mut self, routing: &Routing<'_>) {
        self.phase = routing.phase;
        self.predictions.resize_with(routing.predictions.len(), Prediction::default);
        for (kept, new) in self.predictions.iter_mut().zip(routing.predictions) {
            kept.layer = new.layer;
            kept.loads.clone_from(&new.loads);
        }
        self.is_new = true;
    }
}

/// The scheduler. See the module's head for its use.
pub struct Scheduler {
    costs: Costs,
    strategy: Box<dyn Strategy>,
    prefetcher: Box<dyn Prefetcher>,
    limits: SchedulerLimits,
    grid: ExpertGrid,
    places: Places,
    layer: Layer,
    idle: IdleLink,
    pace: Pace,
    guesses: Vec<Candidate>,
    /// What the guesses will be made from, once the link has time for one.
    outlook: Outlook,
    items: Vec<WorkItem>,
    plan: LayerPlan,
    counts: Counts,
}

impl Scheduler {
    /// A scheduler before its first layer.
    ///
    /// # Panics
    /// When the limits leave no staging buffer for demand or no transfer at all.
    pub fn new(parts: SchedulerParts) -> Self {
        let SchedulerParts { costs, cache, strategy, prefetcher, limits } = parts;
        assert!(limits.staging_slots > limits.prefetch_slots, "no staging buffer for demand");
        assert!(limits.loads_in_flight > 0 && limits.load_attempts > 0, "no transfers");
        let grid = cache.grid();
        Self {
            places: Places::new(cache, limits),
            layer: Layer::new(grid.experts, costs.lanes()),
            idle: IdleLink::new(costs.load_time(Share::WHOLE)),
            pace: Pace::new(grid.layers),
            costs,
            strategy,
            prefetcher,
            limits,
            grid,
            guesses: Vec::new(),
            outlook: Outlook::default(),
            items: Vec::new(),
            plan: LayerPlan::default(),
            counts: Counts::default(),
        }
    }

    /// The same with several computations on a unit at a time.
    ///
    /// # Panics
    /// When a unit could have none.
    #[must_use]
    pub fn computing(mut self, at_once: AtOnce) -> Self {
        assert!(at_once.fast > 0 && at_once.home > 0, "a unit that computes nothing");
        self.layer.set_at_once(at_once);
        self
    }

    /// Home lanes, by the costs it decides with.
    pub fn lanes(&self) -> u16 {
        self.costs.lanes()
    }

    /// Gives slots to experts before the first layer; the driver loads them at leisure.
    /// Experts beyond the capacity are left out.
    pub fn preload(&mut self, keys: &[ExpertKey]) -> Vec<(ExpertKey, SlotId)> {
        keys.iter().filter_map(|&key| Some((key, self.places.preload(key)?))).collect()
    }

    /// Uses `slots` of the cache's slots from now on, between layers (M3). The experts that
    /// leave: the driver releases their bytes. Those on their way stay, and count until the
    /// next call.
    pub fn set_cache_slots(&mut self, slots: u32) -> Vec<(ExpertKey, SlotId)> {
        self.places.cache.set_usable(slots)
    }

    /// A layer has been routed. The previous one must be done.
    ///
    /// # Panics
    /// When the previous layer is not done.
    pub fn on_routed(&mut self, now: Nanos, routing: &Routing<'_>) {
        assert!(self.layer.is_done(), "layer {} is not done", self.layer.number());
        self.pace.on_routed(now, routing.routed.layer, routing.phase);
        self.places.cache.on_visit(&routing.routed);
        self.look_up(now, routing);
        let work = LayerWork {
            layer: routing.routed.layer,
            phase: routing.phase,
            tokens: routing.routed.tokens,
            items: &self.items,
            costs: &self.costs,
            link_free_in: self.places.link_free_at().since(now),
        };
        self.plan.clear();
        self.strategy.plan(&work, &mut self.plan);
        self.prefetcher.on_routed(&work);
        self.layer.begin(&work, &self.plan);
        self.lease_residents(routing.routed.layer);
        self.idle.observe(now, self.is_link_demanded());
        self.guesses.clear();
        self.outlook.take(routing);
    }

    /// A transfer has ended.
    pub fn on_loaded(&mut self, now: Nanos, key: ExpertKey, ok: bool) -> Result<(), LoadLost> {
        self.idle.observe(now, self.is_link_demanded());
        let arrival = self.places.on_loaded(key, ok);
        self.counts.failed_loads += u64::from(!ok);
        if !self.layer.waits_for(key) {
            return Ok(());
        }
        match arrival {
            Arrival::Here => self.layer.make_ready(key),
            Arrival::Useless => {}
            Arrival::Failed { .. } if self.costs.lanes() > 0 => {
                self.layer.send_home(key, self.costs.lane_of(key.expert));
            }
            Arrival::Failed { attempts } if attempts < self.limits.load_attempts => {
                self.layer.load_again(key);
            }
            Arrival::Failed { attempts } => return Err(LoadLost { key, attempts }),
        }
        Ok(())
    }

    /// A computation has ended.
    pub fn on_computed(&mut self, _now: Nanos, key: ExpertKey, unit: Unit) {
        self.layer.on_computed(key, unit);
        if unit == Unit::Fast {
            self.places.after_use(key, self.strategy.keeps_loaded());
        }
        if self.layer.is_done() {
            self.places.drop_unused(self.layer.number());
        }
    }

    /// Gives the current layer up: a request was cancelled, or an expert was lost. Nothing more of
    /// it is handed out; what is still on the link arrives as a guess would. The driver first
    /// waits for running computations.
    ///
    /// # Panics
    /// When a computation is still running.
    pub fn abandon_layer(&mut self) {
        self.layer.abandon();
        self.places.abandon();
        self.guesses.clear();
        self.outlook.is_new = false;
    }

    /// The next thing to do, if there is one now.
    pub fn poll_action(&mut self, now: Nanos) -> Option<Action> {
        if let Some(action) = self.places.poll() {
            return Some(action);
        }
        if let Some(action) = self.poll_compute() {
            return Some(action);
        }
        if self.places.in_flight() >= usize::from(self.limits.loads_in_flight) {
            return None;
        }
        match self.layer.next_load() {
            Some(key) => self.poll_demand(now, key),
            None => self.poll_guess(now),
        }
    }

    /// Whether every routed expert of the current layer has been computed.
    pub fn layer_is_done(&self) -> bool {
        self.layer.is_done()
    }

    /// Counts since the beginning.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The cache, for reports.
    pub fn cache(&self) -> &ExpertCache {
        &self.places.cache
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
            let presence = self.places.presence(key, now);
            self.counts.lookups += 1;
            if presence == Presence::Resident {
                let cached = self.places.cache.contains(key);
                self.counts.hits += u64::from(cached);
                self.counts.guessed_hits += u64::from(!cached);
            }
            self.items.push(WorkItem {
                expert,
                tokens: routing.routed.load(index).max(1),
                presence,
            });
        }
    }

    /// Holds what this layer will use on the fast unit, so that its own loads do not evict it.
    fn lease_residents(&mut self, layer: u16) {
        for &i in &self.plan.fast {
            let item = self.items[usize::from(i)];
            if item.is_near() {
                self.places.hold(ExpertKey::new(layer, item.expert));
            }
        }
    }

    /// Asks the prefetcher, once per layer and only when a guess could start.
    fn make_guesses(&mut self, now: Nanos) {
        let places = &self.places;
        let took = self.costs.load_time(Share::WHOLE);
        let view = PrefetchView {
            layer: self.layer.number(),
            layers: self.grid.layers,
            phase: self.outlook.phase,
            predictions: &self.outlook.predictions,
            costs: &self.costs,
            is_near: &|key| places.is_near(key),
            late_by: &|layer| self.pace.late_by(now + took, layer),
        };
        self.prefetcher.candidates(&view, &mut self.guesses);
        self.guesses.reverse();
        self.outlook.is_new = false;
    }

    fn is_link_demanded(&self) -> bool {
        self.layer.next_load().is_some() || self.places.demand_in_flight()
    }

    fn poll_compute(&mut self) -> Option<Action> {
        let start = self.layer.next_compute()?;
        let place = match start.unit {
            Unit::Fast => self.places.place_of(start.key),
            Unit::Home(_) => None,
        };
        match start.unit {
            Unit::Fast => self.counts.fast_computes += 1,
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

    fn poll_demand(&mut self, now: Nanos, key: ExpertKey) -> Option<Action> {
        let share = self.layer.share_of(key);
        let keep = self.strategy.keeps_loaded() && share == Share::WHOLE;
        let place = self.places.make_room(key, keep)?;
        self.layer.load_started();
        self.counts.demand_loads += 1;
        let took = self.costs.load_time(share);
        self.places.on_load_started(now + took, key, share, Purpose::Demand);
        // An eviction is announced before the load that takes its slot.
        let load = Action::Load { key, share, place, purpose: Purpose::Demand };
        self.places.after_releases(load)
    }

    fn poll_guess(&mut self, now: Nanos) -> Option<Action> {
        self.idle.observe(now, self.is_link_demanded());
        let busy = self.places.in_flight() >= usize::from(self.limits.guesses_in_flight);
        if busy || !self.idle.allows_guess() {
            return None;
        }
        if self.outlook.is_new {
            self.make_guesses(now);
        }
        while let Some(candidate) = self.guesses.pop() {
            let key = candidate.key();
            if self.places.is_near(key) {
                continue;
            }
            let room = match candidate {
                Candidate::Guess(key) => {
                    self.places.make_room_for_guess(key, |layer| self.pace.layers_until(layer))
                }
                Candidate::Refill(key) => self.places.make_room_for_refill(key),
            };
            let Some(place) = room else { continue };
            let took = self.costs.load_time(Share::WHOLE);
            self.idle.on_guess();
            self.counts.guessed_loads += 1;
            self.places.on_load_started(now + took, key, Share::WHOLE, Purpose::Guess);
            let purpose = Purpose::Guess;
            let load = Action::Load { key, share: Share::WHOLE, place, purpose };
            return self.places.after_releases(load);
        }
        None
    }
}
