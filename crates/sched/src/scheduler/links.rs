//! What each link takes next: what the layer demands first, and guesses into idle time (M4).

use motley_cost::Nanos;
use motley_trace::ExpertKey;

use super::Scheduler;
use super::action::{Action, Purpose};
use crate::prefetch::{Candidate, PrefetchView};
use crate::work::Share;

impl Scheduler {
    pub(super) fn poll_link(&mut self, now: Nanos, tier: usize) -> Option<Action> {
        let state = &self.tiers[tier];
        if state.places.in_flight() >= usize::from(state.limits.loads_in_flight) {
            return None;
        }
        let number = tier as u16;
        if !self.layer.wants_link(number) {
            return self.poll_guess(now, tier);
        }
        let key = self.layer.next_load(number, |key| self.can_load(number, key))?;
        self.poll_demand(now, tier, key)
    }

    fn poll_demand(&mut self, now: Nanos, tier: usize, key: ExpertKey) -> Option<Action> {
        let number = tier as u16;
        let own = self.layer.waits_in(key);
        let share = if own == Some(number) { self.layer.share_of(key) } else { Share::WHOLE };
        // What passes through to a tier that has it alone does not stay on the way.
        let moves_on =
            own.is_some_and(|own| own != number && self.costs.tiers[usize::from(own)].exclusive);
        let keep = self.strategy.keeps_loaded()
            && share == Share::WHOLE
            && !moves_on
            && self.may_stay(number, key);
        let took = self.costs.load_time(number, share);
        let places = &mut self.tiers[tier].places;
        let place = places.make_room(key, keep)?;
        self.layer.load_started(number, key);
        self.counts.demand_loads += 1;
        places.on_load_started(now + took, key, share, Purpose::Demand);
        // An eviction is announced before the load that takes its slot.
        let load = Action::Load { tier: number, key, share, place, purpose: Purpose::Demand };
        places.after_releases(load)
    }

    fn poll_guess(&mut self, now: Nanos, tier: usize) -> Option<Action> {
        self.observe_link(tier, now);
        if !self.tiers[tier].may_guess() {
            return None;
        }
        if self.tiers[tier].guesses_are_due {
            self.make_guesses(now, tier);
        }
        let number = tier as u16;
        while let Some(candidate) = self.tiers[tier].guesses.pop() {
            let key = candidate.key();
            let is_demanded = self.layer.waits_in(key).is_some();
            if self.is_near(number, key) || is_demanded || !self.can_load(number, key) {
                continue;
            }
            if matches!(candidate, Candidate::Refill(_)) && !self.may_stay(number, key) {
                continue;
            }
            let pace = &self.pace;
            let places = &mut self.tiers[tier].places;
            let room = match candidate {
                Candidate::Guess(key) => {
                    places.make_room_for_guess(key, |layer| pace.layers_until(layer))
                }
                Candidate::Refill(key) => places.make_room_for_refill(key),
            };
            let Some(place) = room else { continue };
            let (share, purpose) = (Share::WHOLE, Purpose::Guess);
            let took = self.costs.load_time(number, share);
            places.on_load_started(now + took, key, share, purpose);
            if let Some(parent) = self.costs.parent(number) {
                self.tiers[usize::from(parent)].places.hold(key);
            }
            self.tiers[tier].idle.on_guess();
            self.counts.guessed_loads += 1;
            let load = Action::Load { tier: number, key, share, place, purpose };
            return self.tiers[tier].places.after_releases(load);
        }
        None
    }

    /// Asks a tier's prefetcher, once per layer and only when a guess could start.
    fn make_guesses(&mut self, now: Nanos, tier: usize) {
        let number = tier as u16;
        if self.outlook.at_is_due {
            self.look_ahead(now);
        }
        let mut guesses = std::mem::take(&mut self.tiers[tier].guesses);
        let mut prefetcher = self.tiers[tier].lend_prefetcher();
        let took = self.costs.load_time(number, Share::WHOLE);
        let view = PrefetchView {
            tier: number,
            layer: self.layer.number(),
            layers: self.grid.layers,
            phase: self.outlook.phase,
            predictions: &self.outlook.predictions,
            costs: &self.costs,
            at: &self.outlook.at,
            is_near: &|key| self.is_near(number, key),
            can_come: &|key| self.can_load(number, key),
            late_by: &|layer| self.pace.late_by(now + took, layer),
        };
        prefetcher.candidates(&view, &mut guesses);
        guesses.reverse();
        self.tiers[tier].take_back(prefetcher, guesses);
    }

    /// Finds the predicted experts, once per layer for all tiers.
    fn look_ahead(&mut self, now: Nanos) {
        let mut at = std::mem::take(&mut self.outlook.at);
        at.clear();
        for prediction in &self.outlook.predictions {
            let keys = prediction.loads.iter().map(|(expert, _)| (prediction.layer, *expert));
            at.extend(
                keys.map(|(layer, expert)| self.whereabouts(ExpertKey::new(layer, expert), now)),
            );
        }
        (self.outlook.at, self.outlook.at_is_due) = (at, false);
    }

    /// Whether bytes of `key` can be copied to `tier` now: they are at its source and on no link.
    fn can_load(&self, tier: u16, key: ExpertKey) -> bool {
        let parent = self.costs.parent(tier);
        parent.is_none_or(|parent| self.tiers[usize::from(parent)].places.is_here(key))
            && !self.tiers.iter().any(|tier| tier.places.is_coming(key))
    }

    /// Whether `tier` need not fetch `key`: it, or one that is not on the way to it, has it or will.
    fn is_near(&self, tier: u16, key: ExpertKey) -> bool {
        let above = self.costs.tiers_above(tier);
        let mut others = (0..).zip(&self.tiers).filter(|(other, _)| above >> other & 1 == 0);
        others.any(|(_, other)| other.places.is_near(key))
    }
}
