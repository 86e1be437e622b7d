//! The current layer: its items, the queues of its units and links, and what is left to compute.
//! Knows nothing of slots, time or the links' state.
//!
//! The part of an item for a tier's unit goes `Loading → Ready → Running → Done`, the part for
//! its home lane `Ready → Running → Done`; an item has one part or, when split, both.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use motley_trace::ExpertKey;

use super::AtOnce;
use crate::work::{LayerPlan, LayerWork, Presence, Share, Unit};

/// A computation the driver can start.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) key: ExpertKey,
    pub(super) unit: Unit,
    pub(super) share: Share,
    pub(super) tokens: u32,
    pub(super) enters: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Item {
    expert: u16,
    tokens: u32,
    /// Whose unit computes `tier_share` of it.
    tier: u16,
    tier_share: Share,
    home_share: Share,
    /// Order on that unit, low first.
    priority: u16,
    loading: bool,
}

/// A home lane.
#[derive(Debug, Default)]
struct Lane {
    queue: VecDeque<u16>,
    running: u16,
    entered: bool,
}

/// A tier's unit and link.
#[derive(Debug, Default)]
struct Tier {
    ready: BinaryHeap<Reverse<(u16, u16)>>,
    running: u16,
    entered: bool,
    loads: VecDeque<u16>,
}

/// The layer being run. Buffers live from layer to layer.
#[derive(Debug)]
pub(super) struct Layer {
    number: u16,
    pass_tokens: u32,
    items: Vec<Item>,
    /// Item of each expert, [`ABSENT`] when not routed.
    item_of: Vec<u16>,
    at_once: AtOnce,
    tiers: Vec<Tier>,
    lanes: Vec<Lane>,
    parts_left: usize,
}

const ABSENT: u16 = u16::MAX;

impl Layer {
    pub(super) fn new(experts: u16, tiers: usize, lanes: u16) -> Self {
        Self {
            number: 0,
            pass_tokens: 0,
            items: Vec::new(),
            item_of: vec![ABSENT; usize::from(experts)],
            at_once: AtOnce::default(),
            tiers: (0..tiers).map(|_| Tier::default()).collect(),
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            parts_left: 0,
        }
    }

    /// Takes over a plan.
    ///
    /// # Panics
    /// When the plan does not compute every item exactly once: a strategy's error.
    pub(super) fn begin(&mut self, work: &LayerWork<'_>, plan: &LayerPlan) {
        self.forget();
        self.number = work.layer;
        self.pass_tokens = work.tokens;
        for (i, item) in work.items.iter().enumerate() {
            let slot = &mut self.item_of[usize::from(item.expert)];
            assert_eq!(*slot, ABSENT, "expert {} routed twice", item.expert);
            *slot = i as u16;
            self.items.push(Item {
                expert: item.expert,
                tokens: item.tokens,
                tier: 0,
                tier_share: Share::NONE,
                home_share: Share::NONE,
                priority: 0,
                loading: false,
            });
        }
        self.assign(plan);
        for (tier, planned) in self.tiers.iter_mut().zip(&plan.tiers) {
            tier.loads.extend(&planned.load);
        }
        self.queue_tiers(work, plan);
        self.queue_home(work, plan);
    }

    pub(super) fn set_at_once(&mut self, at_once: AtOnce) {
        self.at_once = at_once;
    }

    pub(super) fn number(&self) -> u16 {
        self.number
    }

    pub(super) fn is_done(&self) -> bool {
        self.parts_left == 0
    }

    /// The next demanded expert that a tier's link can take.
    pub(super) fn next_load(
        &self,
        tier: u16,
        can_load: impl Fn(ExpertKey) -> bool,
    ) -> Option<ExpertKey> {
        let loads = self.tiers[usize::from(tier)].loads.iter();
        loads.map(|&i| self.key(i)).find(|&key| can_load(key))
    }

    /// Whether anything demanded waits for a tier's link.
    pub(super) fn wants_link(&self, tier: u16) -> bool {
        !self.tiers[usize::from(tier)].loads.is_empty()
    }

    pub(super) fn load_started(&mut self, tier: u16, key: ExpertKey) {
        let Some(i) = self.item(key) else { return };
        let loads = &mut self.tiers[usize::from(tier)].loads;
        match loads.front() {
            Some(&first) if usize::from(first) == i => drop(loads.pop_front()),
            _ => loads.retain(|&other| usize::from(other) != i),
        }
    }

    /// The part of it that comes over the link of `tier`.
    pub(super) fn share_of(&self, key: ExpertKey) -> Share {
        self.item(key).map_or(Share::WHOLE, |i| self.items[i].tier_share)
    }

    /// The tier at which an item of this layer waits for its bytes.
    pub(super) fn waits_in(&self, key: ExpertKey) -> Option<u16> {
        let item = self.items[self.item(key)?];
        item.loading.then_some(item.tier)
    }

    pub(super) fn make_ready(&mut self, key: ExpertKey) {
        let Some(i) = self.item(key) else { return };
        let Item { tier, priority, .. } = self.items[i];
        self.items[i].loading = false;
        self.tiers[usize::from(tier)].ready.push(Reverse((priority, i as u16)));
    }

    /// Bytes that did not come are asked for again, first of all.
    pub(super) fn load_again(&mut self, tier: u16, key: ExpertKey) {
        if let Some(i) = self.item(key) {
            self.tiers[usize::from(tier)].loads.push_front(i as u16);
        }
    }

    /// Bytes that did not come to their tier are computed in `tier`, where they are.
    pub(super) fn send_to(&mut self, key: ExpertKey, tier: u16) {
        if let Some(i) = self.item(key) {
            self.items[i].tier = tier;
            self.make_ready(key);
        }
    }

    /// Bytes that did not come are not needed at home. The whole item goes there, unless its
    /// home part has started: then the other part follows as a second computation.
    pub(super) fn send_home(&mut self, key: ExpertKey, lane: u16) {
        let Some(i) = self.item(key) else { return };
        let item = &mut self.items[i];
        item.loading = false;
        let lane = &mut self.lanes[usize::from(lane)];
        let waiting = item.home_share != Share::NONE && lane.queue.contains(&(i as u16));
        if waiting {
            item.home_share = Share::WHOLE;
            self.parts_left -= 1;
        } else {
            item.home_share = item.tier_share;
            lane.queue.push_back(i as u16);
        }
        item.tier_share = Share::NONE;
    }

    /// A computation for a unit that has none.
    pub(super) fn next_compute(&mut self) -> Option<Start> {
        for number in (0..self.tiers.len()).rev() {
            let tier = &mut self.tiers[number];
            if tier.running < self.at_once.tier
                && let Some(Reverse((_, i))) = tier.ready.pop()
            {
                let enters = (!tier.entered).then_some(self.pass_tokens);
                (tier.running, tier.entered) = (tier.running + 1, true);
                return Some(self.start(i, Unit::Tier(number as u16), enters));
            }
        }
        for number in 0..self.lanes.len() {
            let lane = &mut self.lanes[number];
            if lane.running >= self.at_once.home {
                continue;
            }
            if let Some(i) = lane.queue.pop_front() {
                let enters = (!lane.entered).then_some(self.pass_tokens);
                (lane.running, lane.entered) = (lane.running + 1, true);
                return Some(self.start(i, Unit::Home(number as u16), enters));
            }
        }
        None
    }

    /// # Panics
    /// When nothing runs on `unit`: a driver's error.
    pub(super) fn on_computed(&mut self, key: ExpertKey, unit: Unit) {
        let running = match unit {
            Unit::Tier(tier) => &mut self.tiers[usize::from(tier)].running,
            Unit::Home(lane) => &mut self.lanes[usize::from(lane)].running,
        };
        assert!(*running > 0 && key.layer == self.number, "{key} was not running on {unit:?}");
        *running -= 1;
        self.parts_left -= 1;
    }

    /// Forgets what is left.
    ///
    /// # Panics
    /// When a unit is still running.
    pub(super) fn abandon(&mut self) {
        let tiers = self.tiers.iter().map(|tier| tier.running);
        let running = tiers.chain(self.lanes.iter().map(|lane| lane.running)).any(|n| n > 0);
        assert!(!running, "layer {} is still being computed", self.number);
        self.forget();
        self.parts_left = 0;
    }

    fn start(&self, i: u16, unit: Unit, enters: Option<u32>) -> Start {
        let item = self.items[usize::from(i)];
        let share = match unit {
            Unit::Tier(_) => item.tier_share,
            Unit::Home(_) => item.home_share,
        };
        Start { key: self.key(i), unit, share, tokens: item.tokens, enters }
    }

    fn forget(&mut self) {
        for item in self.items.drain(..) {
            self.item_of[usize::from(item.expert)] = ABSENT;
        }
        for tier in &mut self.tiers {
            tier.ready.clear();
            tier.loads.clear();
            tier.entered = false;
        }
        for lane in &mut self.lanes {
            lane.queue.clear();
            lane.entered = false;
        }
    }

    fn assign(&mut self, plan: &LayerPlan) {
        self.parts_left = plan.home.len();
        for (number, tier) in plan.tiers.iter().enumerate() {
            self.parts_left += tier.compute.len();
            for &i in &tier.compute {
                let item = &mut self.items[usize::from(i)];
                assert_eq!(item.tier_share, Share::NONE, "planned twice");
                (item.tier, item.tier_share) = (number as u16, plan.tier_share(i));
            }
        }
        for &i in &plan.home {
            let item = &mut self.items[usize::from(i)];
            assert_eq!(item.home_share, Share::NONE, "planned twice");
            item.home_share = item.tier_share.rest();
        }
        let whole = |item: &Item| item.tier_share.rest() == item.home_share;
        assert!(self.items.iter().all(whole), "an item is not planned as a whole");
    }

    fn queue_tiers(&mut self, work: &LayerWork<'_>, plan: &LayerPlan) {
        for (number, tier) in plan.tiers.iter().enumerate() {
            for (priority, &i) in tier.compute.iter().enumerate() {
                let item = &mut self.items[usize::from(i)];
                item.priority = priority as u16;
                match work.items[usize::from(i)].at.in_tier(number as u16) {
                    Presence::Resident => {
                        self.tiers[number].ready.push(Reverse((priority as u16, i)));
                    }
                    _ => item.loading = true,
                }
            }
        }
    }

    fn queue_home(&mut self, work: &LayerWork<'_>, plan: &LayerPlan) {
        for &i in &plan.home {
            let lane = work.costs.lane_of(work.items[usize::from(i)].expert);
            self.lanes[usize::from(lane)].queue.push_back(i);
        }
    }

    fn item(&self, key: ExpertKey) -> Option<usize> {
        if key.layer != self.number {
            return None;
        }
        let i = self.item_of[usize::from(key.expert)];
        (i != ABSENT).then_some(usize::from(i))
    }

    fn key(&self, i: u16) -> ExpertKey {
        ExpertKey::new(self.number, self.items[usize::from(i)].expert)
    }
}
