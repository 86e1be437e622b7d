//! The current layer: its items, the queues of its lanes, and what is left to compute.
//! Knows nothing of slots, time or the link's state.
//!
//! The part of an item for the fast unit goes `Loading → Ready → Running → Done`, the part for
//! its home lane `Ready → Running → Done`; an item has one part or, when split, both.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use motley_trace::ExpertKey;

use super::AtOnce;
use crate::work::{LayerPlan, LayerWork, Share, Unit};

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
    fast_share: Share,
    home_share: Share,
    /// Order on the fast unit, low first.
    priority: u16,
    loading: bool,
}

#[derive(Debug, Default)]
struct Lane {
    queue: VecDeque<u16>,
    running: u16,
    entered: bool,
}

/// The layer being run. Buffers live from layer to layer.
#[derive(Debug)]
pub(super) struct Layer {
    number: u16,
    pass_tokens: u32,
    items: Vec<Item>,
    /// Item of each expert, [`ABSENT`] when not routed.
    item_of: Vec<u16>,
    ready: BinaryHeap<Reverse<(u16, u16)>>,
    fast_running: u16,
    at_once: AtOnce,
    lanes: Vec<Lane>,
    loads: VecDeque<u16>,
    parts_left: usize,
}

const ABSENT: u16 = u16::MAX;

impl Layer {
    pub(super) fn new(experts: u16, lanes: u16) -> Self {
        Self {
            number: 0,
            pass_tokens: 0,
            items: Vec::new(),
            item_of: vec![ABSENT; usize::from(experts)],
            ready: BinaryHeap::new(),
            fast_running: 0,
            at_once: AtOnce::default(),
            lanes: (0..lanes).map(|_| Lane::default()).collect(),
            loads: VecDeque::new(),
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
                fast_share: Share::NONE,
                home_share: Share::NONE,
                priority: 0,
                loading: false,
            });
        }
        self.assign(plan);
        self.loads.extend(&plan.load);
        for &i in &plan.load {
            self.items[usize::from(i)].loading = true;
        }
        self.queue_fast(work, plan);
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

    /// The next demanded expert without a transfer.
    pub(super) fn next_load(&self) -> Option<ExpertKey> {
        self.loads.front().map(|&i| self.key(i))
    }

    pub(super) fn load_started(&mut self) {
        self.loads.pop_front();
    }

    pub(super) fn share_of(&self, key: ExpertKey) -> Share {
        self.item(key).map_or(Share::WHOLE, |i| self.items[i].fast_share)
    }

    /// Whether an item of this layer waits for these bytes.
    pub(super) fn waits_for(&self, key: ExpertKey) -> bool {
        self.item(key).is_some_and(|i| self.items[i].loading)
    }

    pub(super) fn make_ready(&mut self, key: ExpertKey) {
        let Some(i) = self.item(key) else { return };
        self.items[i].loading = false;
        self.ready.push(Reverse((self.items[i].priority, i as u16)));
    }

    /// Bytes that did not come are asked for again, first of all.
    pub(super) fn load_again(&mut self, key: ExpertKey) {
        if let Some(i) = self.item(key) {
            self.loads.push_front(i as u16);
        }
    }

    /// Bytes that did not come are not needed at home. The whole item goes there, unless its
    /// home part has started: then the fast part follows as a second computation.
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
            item.home_share = item.fast_share;
            lane.queue.push_back(i as u16);
        }
        item.fast_share = Share::NONE;
    }

    /// A computation for a unit that has none.
    pub(super) fn next_compute(&mut self) -> Option<Start> {
        if self.fast_running < self.at_once.fast
            && let Some(Reverse((_, i))) = self.ready.pop()
        {
            self.fast_running += 1;
            return Some(self.start(i, Unit::Fast, None));
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
            Unit::Fast => &mut self.fast_running,
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
        let running = self.fast_running > 0 || self.lanes.iter().any(|lane| lane.running > 0);
        assert!(!running, "layer {} is still being computed", self.number);
        self.forget();
        self.parts_left = 0;
    }

    fn start(&self, i: u16, unit: Unit, enters: Option<u32>) -> Start {
        let item = self.items[usize::from(i)];
        let share = if unit == Unit::Fast { item.fast_share } else { item.home_share };
        Start { key: self.key(i), unit, share, tokens: item.tokens, enters }
    }

    fn forget(&mut self) {
        for item in self.items.drain(..) {
            self.item_of[usize::from(item.expert)] = ABSENT;
        }
        self.ready.clear();
        self.loads.clear();
        for lane in &mut self.lanes {
            lane.queue.clear();
            lane.entered = false;
        }
    }

    fn assign(&mut self, plan: &LayerPlan) {
        for &i in &plan.fast {
            let share = plan.fast_share(i);
            assert_eq!(self.items[usize::from(i)].fast_share, Share::NONE, "planned twice");
            self.items[usize::from(i)].fast_share = share;
        }
        for &i in &plan.home {
            let item = &mut self.items[usize::from(i)];
            assert_eq!(item.home_share, Share::NONE, "planned twice");
            item.home_share = item.fast_share.rest();
        }
        let whole = |item: &Item| item.fast_share.rest() == item.home_share;
        assert!(self.items.iter().all(whole), "an item is not planned as a whole");
        self.parts_left = plan.fast.len() + plan.home.len();
    }

    fn queue_fast(&mut self, work: &LayerWork<'_>, plan: &LayerPlan) {
        for (priority, &i) in plan.fast.iter().enumerate() {
            self.items[usize::from(i)].priority = priority as u16;
            let item = &work.items[usize::from(i)];
            let here = item.presence == crate::work::Presence::Resident;
            if here {
                self.ready.push(Reverse((priority as u16, i)));
            } else {
                self.items[usize::from(i)].loading = true;
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
