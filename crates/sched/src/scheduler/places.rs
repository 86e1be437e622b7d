//! Where experts are in one tier: cache slots, staging buffers, and what is on its way.
//! Gives out leases and room; chooses neither who computes nor what to fetch.
//!
//! ```text
//!                demand, may stay            used, may stay
//!   link ──────────────────────▶ cache slot ◀────────────── staging buffer ◀── link
//!                                              (Exchange)     demand that does not stay,
//!                                                             parts, guesses
//! ```
//!
//! A guess never evicts: it takes a free slot or a staging buffer of its share.

use std::collections::VecDeque;

use motley_cost::Nanos;
use motley_trace::ExpertKey;

use super::action::{Action, Place, Purpose, SchedulerLimits};
use crate::cache::{ExpertCache, Lease, SlotId};
use crate::work::{Presence, Share};

/// How a transfer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Its bytes are there.
    Here,
    /// It belonged to a layer that was given up.
    Useless,
    /// Its bytes did not come, for the `attempts`th time in this layer.
    Failed { attempts: u16 },
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    key: ExpertKey,
    purpose: Purpose,
    ends: Nanos,
}

#[derive(Debug, Clone, Copy)]
struct Staged {
    key: ExpertKey,
    here: bool,
    guessed: bool,
    share: Share,
    /// Computations and copies onwards that will read it.
    holders: u16,
    /// A part of an expert under way for a layer that was given up: of no use to anyone.
    orphan: bool,
}

pub(super) struct Places {
    tier: u16,
    pub(super) cache: ExpertCache,
    limits: SchedulerLimits,
    staging: Vec<Option<Staged>>,
    flights: Vec<Flight>,
    leases: Vec<Lease>,
    /// Failed attempts of demanded experts of this layer.
    failures: Vec<(ExpertKey, u16)>,
    outbox: VecDeque<Action>,
    link_free_at: Nanos,
}

impl Places {
    pub(super) fn new(tier: u16, cache: ExpertCache, limits: SchedulerLimits) -> Self {
        Self {
            tier,
            cache,
            limits,
            staging: vec![None; usize::from(limits.staging_slots)],
            flights: Vec::new(),
            leases: Vec::new(),
            failures: Vec::new(),
            outbox: VecDeque::new(),
            link_free_at: Nanos::ZERO,
        }
    }

    pub(super) fn preload(&mut self, key: ExpertKey) -> Option<SlotId> {
        let free = matches!(self.cache.victim_for(key), Ok(None));
        let lease = if free { self.cache.admit(key).ok()?.lease } else { return None };
        let slot = lease.slot();
        self.cache.release(lease);
        Some(slot)
    }

    pub(super) fn poll(&mut self) -> Option<Action> {
        self.outbox.pop_front()
    }

    /// Hands out releases first and `action` after them.
    pub(super) fn after_releases(&mut self, action: Action) -> Option<Action> {
        self.outbox.push_back(action);
        self.outbox.pop_front()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    pub(super) fn demand_in_flight(&self) -> bool {
        self.flights.iter().any(|flight| flight.purpose == Purpose::Demand)
    }

    pub(super) fn link_free_at(&self) -> Nanos {
        if self.flights.is_empty() { Nanos::ZERO } else { self.link_free_at }
    }

    pub(super) fn is_near(&self, key: ExpertKey) -> bool {
        let staged = self.staged(key).and_then(|at| self.staging[at]);
        self.cache.contains(key) || staged.is_some_and(|staged| !staged.orphan)
    }

    /// Whether its bytes are here, all of them.
    pub(super) fn is_here(&self, key: ExpertKey) -> bool {
        self.is_near(key) && !self.is_coming(key)
    }

    pub(super) fn is_coming(&self, key: ExpertKey) -> bool {
        self.flights.iter().any(|flight| flight.key == key)
    }

    pub(super) fn presence(&self, key: ExpertKey, now: Nanos) -> Presence {
        if !self.is_near(key) {
            return Presence::Absent;
        }
        match self.flights.iter().find(|flight| flight.key == key) {
            Some(flight) => Presence::Arriving(flight.ends.since(now)),
            None => Presence::Resident,
        }
    }

    pub(super) fn place_of(&self, key: ExpertKey) -> Option<Place> {
        let staged = self.staged(key).map(|at| Place::Staging(at as u16));
        staged.or_else(|| self.cache.slot(key).map(Place::Cache))
    }

    /// Keeps a near expert where it is until [`Self::after_use`].
    pub(super) fn hold(&mut self, key: ExpertKey) {
        if let Some(at) = self.staged(key) {
            if let Some(staged) = &mut self.staging[at] {
                staged.guessed = false;
                staged.holders += 1;
            }
        } else if let Some(lease) = self.cache.lease(key) {
            self.leases.push(lease);
        }
    }

    /// Room for a demanded expert: a slot if it may stay, else a staging buffer. None also while
    /// an orphaned part of it is under way, so that an expert is never on the link twice.
    pub(super) fn make_room(&mut self, key: ExpertKey, keep: bool) -> Option<Place> {
        if self.is_coming(key) {
            return None;
        }
        if keep && let Some(place) = self.admit(key) {
            return Some(place);
        }
        self.stage(key, false).or_else(|| self.take_from_guess(key))
    }

    fn admit(&mut self, key: ExpertKey) -> Option<Place> {
        let admitted = self.cache.admit(key).ok()?;
        let place = Place::Cache(admitted.lease.slot());
        if let Some(evicted) = admitted.evicted {
            self.outbox.push_back(self.release_of(evicted, place));
        }
        self.leases.push(admitted.lease);
        Some(place)
    }

    /// Room for a guess: a free slot, or a staging buffer. When guesses hold as many as they may,
    /// the one whose layer is `layers_until` furthest away gives way to one needed sooner; that
    /// is how those that came too late for their layer go.
    pub(super) fn make_room_for_guess(
        &mut self,
        key: ExpertKey,
        layers_until: impl Fn(u16) -> u16,
    ) -> Option<Place> {
        if matches!(self.cache.victim_for(key), Ok(None)) {
            return self.admit(key);
        }
        let held = self.staging.iter().flatten().filter(|staged| staged.guessed).count();
        if held >= usize::from(self.limits.prefetch_slots) {
            let waits =
                |at: &usize| self.staging[*at].filter(|s| s.guessed && s.here && s.holders == 0);
            let away = |at: &usize| waits(at).map(|staged| layers_until(staged.key.layer));
            let furthest =
                (0..self.staging.len()).filter(|at| waits(at).is_some()).max_by_key(away)?;
            let staged = self.staging[furthest]?;
            if layers_until(staged.key.layer) <= layers_until(key.layer) {
                return None;
            }
            self.drop_staged(furthest, staged.key);
        }
        self.stage(key, true)
    }

    /// Room for an expert the policy may rank above a resident: a slot, or nothing.
    pub(super) fn make_room_for_refill(&mut self, key: ExpertKey) -> Option<Place> {
        let victim = self.cache.victim_for(key).ok()?;
        let ranks = self.cache.ranks();
        if victim.is_some_and(|victim| ranks.get(key) <= ranks.get(victim)) {
            return None;
        }
        self.admit(key)
    }

    pub(super) fn on_load_started(
        &mut self,
        ends: Nanos,
        key: ExpertKey,
        share: Share,
        purpose: Purpose,
    ) {
        self.link_free_at = self.link_free_at().max(ends);
        self.flights.push(Flight { key, purpose, ends });
        if let Some(at) = self.staged(key)
            && let Some(staged) = &mut self.staging[at]
        {
            staged.share = share;
        }
    }

    /// Ends a transfer.
    ///
    /// # Panics
    /// When no transfer of `key` was handed out: a driver's error.
    pub(super) fn on_loaded(&mut self, key: ExpertKey, ok: bool) -> Arrival {
        let at = self.flights.iter().position(|flight| flight.key == key);
        let flight = self.flights.swap_remove(at.expect("a transfer that was handed out"));
        if let Some(at) = self.staged(key)
            && self.staging[at].is_some_and(|staged| staged.orphan)
        {
            self.drop_staged(at, key);
            return Arrival::Useless;
        }
        if !ok {
            return Arrival::Failed { attempts: self.fail(key) };
        }
        if let Some(at) = self.staged(key) {
            if let Some(staged) = &mut self.staging[at] {
                staged.here = true;
            }
        } else if flight.purpose == Purpose::Guess {
            self.end_lease(key);
        }
        Arrival::Here
    }

    /// The unit, or a copy onwards, is done with an expert: give back its lease; a staged one that
    /// nobody else holds stays if it may.
    pub(super) fn after_use(&mut self, key: ExpertKey, keep: bool) {
        let Some(at) = self.staged(key) else {
            self.end_lease(key);
            return;
        };
        if let Some(staged) = &mut self.staging[at] {
            staged.holders = staged.holders.saturating_sub(1);
            if staged.holders > 0 {
                return;
            }
        }
        let whole = self.staging[at].is_some_and(|staged| staged.share == Share::WHOLE);
        self.staging[at] = None;
        if keep
            && whole
            && let Ok(admitted) = self.cache.admit(key)
        {
            let slot = admitted.lease.slot();
            self.cache.release(admitted.lease);
            if let Some(evicted) = admitted.evicted {
                let place = Place::Cache(slot);
                self.outbox.push_back(self.release_of(evicted, place));
            }
            self.outbox.push_back(Action::Exchange {
                tier: self.tier,
                key,
                staging: at as u16,
                slot,
            });
        } else {
            self.outbox.push_back(self.release_of(key, Place::Staging(at as u16)));
        }
    }

    /// An expert that is now elsewhere gives up its slot, unless somebody holds it.
    pub(super) fn leave(&mut self, key: ExpertKey) {
        let Some(slot) = self.cache.slot(key) else { return };
        if self.cache.evict(key) {
            self.outbox.push_back(self.release_of(key, Place::Cache(slot)));
        }
    }

    /// A layer is over: guesses for it were wrong, failures are forgotten.
    pub(super) fn drop_unused(&mut self, layer: u16) {
        self.failures.clear();
        for at in 0..self.staging.len() {
            if let Some(staged) = self.staging[at]
                && staged.here
                && staged.holders == 0
                && staged.key.layer == layer
            {
                self.drop_staged(at, staged.key);
            }
        }
    }

    /// No layer waits any more: leases end, staged experts go, transfers under way become guesses.
    /// What is being copied onwards is held until that is done.
    pub(super) fn abandon(&mut self, is_source: impl Fn(ExpertKey) -> bool) {
        self.failures.clear();
        for flight in &mut self.flights {
            flight.purpose = Purpose::Guess;
        }
        let flights = &self.flights;
        let under_way = |key: ExpertKey| flights.iter().any(|flight| flight.key == key);
        let (kept, ended): (Vec<Lease>, Vec<Lease>) = self
            .leases
            .drain(..)
            .partition(|lease| under_way(lease.key()) || is_source(lease.key()));
        self.leases = kept;
        // A guess in a slot that was also held for its layer has a second lease.
        self.leases.sort_by_key(Lease::key);
        let (once, again) = first_of_each(std::mem::take(&mut self.leases));
        self.leases = once;
        ended.into_iter().chain(again).for_each(|lease| self.cache.release(lease));
        for at in 0..self.staging.len() {
            if let Some(staged) = &mut self.staging[at] {
                let key = staged.key;
                staged.guessed |= !staged.here;
                staged.orphan = !staged.here && staged.share != Share::WHOLE;
                staged.holders = u16::from(is_source(key));
                if staged.here && !staged.guessed && staged.holders == 0 {
                    self.drop_staged(at, key);
                }
            }
        }
    }

    fn release_of(&self, key: ExpertKey, place: Place) -> Action {
        Action::Release { tier: self.tier, key, place }
    }

    /// Undoes a failed transfer: the room is given back.
    fn fail(&mut self, key: ExpertKey) -> u16 {
        let place = self.place_of(key);
        if let Some(at) = self.staged(key) {
            self.staging[at] = None;
        } else {
            while self.end_lease(key) {}
            self.cache.evict(key);
        }
        if let Some(place) = place {
            self.outbox.push_back(self.release_of(key, place));
        }
        match self.failures.iter_mut().find(|(failed, _)| *failed == key) {
            Some((_, attempts)) => {
                *attempts += 1;
                *attempts
            }
            None => {
                self.failures.push((key, 1));
                1
            }
        }
    }

    /// One lease on `key` ends; false when there is none.
    fn end_lease(&mut self, key: ExpertKey) -> bool {
        let Some(at) = self.leases.iter().position(|lease| lease.key() == key) else {
            return false;
        };
        let lease = self.leases.swap_remove(at);
        self.cache.release(lease);
        true
    }

    fn stage(&mut self, key: ExpertKey, guessed: bool) -> Option<Place> {
        let at = self.staging.iter().position(Option::is_none)?;
        self.staging[at] = Some(Staged {
            key,
            here: false,
            guessed,
            share: Share::WHOLE,
            holders: u16::from(!guessed),
            orphan: false,
        });
        Some(Place::Staging(at as u16))
    }

    /// Demand may have the buffer of a guess that has arrived.
    fn take_from_guess(&mut self, key: ExpertKey) -> Option<Place> {
        let idle =
            |staged: &Option<Staged>| staged.is_some_and(|s| s.guessed && s.here && s.holders == 0);
        let at = self.staging.iter().position(idle)?;
        let guess = self.staging[at]?.key;
        self.drop_staged(at, guess);
        self.stage(key, false)
    }

    fn drop_staged(&mut self, at: usize, key: ExpertKey) {
        self.staging[at] = None;
        self.outbox.push_back(self.release_of(key, Place::Staging(at as u16)));
    }

    fn staged(&self, key: ExpertKey) -> Option<usize> {
        self.staging.iter().position(|staged| staged.is_some_and(|s| s.key == key))
    }
}

/// Splits leases sorted by key into the first of each key and the others.
fn first_of_each(sorted: Vec<Lease>) -> (Vec<Lease>, Vec<Lease>) {
    let mut last = None;
    sorted.into_iter().partition(|lease| last.replace(lease.key()) != Some(lease.key()))
}
