//! Timelines of one layer (H1): every unit and every link, filled before anything runs.
//! A simulation for planning; real time is the drivers' affair.
//!
//! Queues, sorted by load. A *pool* is what a memory with a unit has and no tier below it:
//!
//! ```text
//!   resident in a tier without others below   high ─────────────▶ low
//!        its unit takes ▲                                       ▲ an idle unit above takes
//!   pool of a memory above                    low ──────────────▶ high
//!        its unit takes ▲                                       ▲ a link takes, then joins the tier
//! ```
//!
//! Each step compares the next operation of every timeline and carries out the one that would
//! finish first. Ties go to links, then units above, then tiers: bytes under way delay nobody.
//! A plan costs O(A log A) for the sort and O(A · (units + links)) for the steps, A the active
//! experts.

use motley_cost::Nanos;

use crate::work::{LayerPlan, LayerWork, MAX_TIERS, Presence, Share, Unit};

mod queues;
#[cfg(test)]
mod tests;

use queues::{DONE, IN_TIER, Pool, Resident};

/// Fills timelines; keeps its buffers from layer to layer.
#[derive(Debug, Default)]
pub struct Timelines {
    /// What home has and no tier, first; then of each tier that others are below of.
    pools: Vec<Pool>,
    /// What is, or will be, in each tier; used for tiers without others below.
    residents: Vec<Resident>,
    /// Time of each item on each unit: home, then the tiers.
    times: Vec<Nanos>,
    units: usize,
    /// One bit for each tier that others are below of.
    above: u32,
    /// Time of one transfer over each link.
    loads: Vec<Nanos>,
    /// Which pool an item is taken from next, or what became of it.
    owner: Vec<u16>,
    lanes: Vec<Lane>,
    tiers: Vec<TierLine>,
    last: Nanos,
    /// Loads of the run over links that could be done without.
    optional_loads: usize,
    use_optional: bool,
}

/// Owner of what home has: pool 0. The pool of tier `t` is `t + 1`.
const HOME: u16 = 0;

#[derive(Debug, Clone, Copy, Default)]
struct Lane {
    free: Nanos,
    /// Position in the pool before which nothing is left for this lane.
    cursor: usize,
    entry: Nanos,
    entered: bool,
}

/// A tier's unit and link.
#[derive(Debug, Clone, Copy, Default)]
struct TierLine {
    unit: Lane,
    link_free: Nanos,
    /// Pool its link takes from.
    source: u16,
    /// Whether others are below it: then its unit takes what is left, low loads first.
    is_above: bool,
    /// Whether what its link brings could be computed at the source.
    is_optional: bool,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Link { tier: u16, item: u16, begins: Nanos },
    Home { lane: usize, item: u16 },
    Tier { tier: u16, item: u16, begins: Nanos },
}

impl Timelines {
    /// Plans `work` into `plan` and returns the planned makespan.
    ///
    /// Runs with all links and, where units could do without some, also without those; the shorter
    /// makespan wins. The second run guards against a transfer that finishes before the unit above
    /// would but whose computation does not.
    pub fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) -> Nanos {
        self.sort(work);
        let with_links = self.run(work, Some(plan), true);
        if !self.could_do_without_links(with_links) {
            return with_links;
        }
        let without = self.run(work, None, false);
        if without < with_links {
            return self.run(work, Some(plan), false);
        }
        with_links
    }

    /// The makespan [`Self::plan`] would reach, without writing a plan.
    pub fn makespan(&mut self, work: &LayerWork<'_>) -> Nanos {
        self.sort(work);
        let with_links = self.run(work, None, true);
        if !self.could_do_without_links(with_links) {
            return with_links;
        }
        with_links.min(self.run(work, None, false))
    }

    /// Whether the units above alone might finish their pools sooner than `with_links`.
    fn could_do_without_links(&self, with_links: Nanos) -> bool {
        if self.optional_loads == 0 {
            return false;
        }
        let sources = self.tiers.iter().filter(|tier| tier.is_optional).map(|tier| tier.source);
        let alone = |source: u16| {
            let unit = usize::from(source);
            let lanes = if source == HOME { self.lanes.len() as u64 } else { 1 };
            let pool = self.pools[unit].items();
            pool.map(|item| self.time(item, unit)).sum::<Nanos>().0 / lanes.max(1)
        };
        sources.map(alone).any(|alone| alone < with_links.0)
    }

    fn is_above(&self, tier: u16) -> bool {
        self.above >> tier & 1 == 1
    }

    fn time(&self, item: u16, unit: usize) -> Nanos {
        self.times[usize::from(item) * self.units + unit]
    }

    fn sort(&mut self, work: &LayerWork<'_>) {
        let costs = work.costs;
        let tiers = costs.tiers.len();
        self.units = tiers + 1;
        self.above = costs.tiers.iter().filter_map(|tier| tier.parent).fold(0, |a, b| a | 1 << b);
        self.times.clear();
        for (i, item) in work.items.iter().enumerate() {
            // In decode all are alike.
            if i > 0 && work.items[i - 1].tokens == item.tokens {
                self.times.extend_from_within((i - 1) * self.units..);
                continue;
            }
            self.times.push(costs.home_time(item.tokens, Share::WHOLE));
            let on = |tier| costs.tier_time(tier, item.tokens, Share::WHOLE);
            self.times.extend((0..tiers as u16).map(on));
        }
        self.loads.clear();
        self.loads.extend((0..tiers as u16).map(|tier| costs.load_time(tier, Share::WHOLE)));
        self.pools.resize_with(self.units, Pool::default);
        self.residents.resize_with(tiers, Resident::default);
        self.pools.iter_mut().for_each(Pool::clear);
        self.residents.iter_mut().for_each(Resident::clear);
        for i in 0..work.items.len() as u16 {
            self.place(work, i);
        }
        self.pools.iter_mut().for_each(|pool| pool.sort(work));
        self.residents.iter_mut().for_each(|resident| resident.sort(work));
    }

    /// Puts an item where it is taken from first: the lowest tier that has it, or will have it
    /// sooner than a unit above is done.
    fn place(&mut self, work: &LayerWork<'_>, i: u16) {
        let item = &work.items[usize::from(i)];
        let tiers = work.costs.tiers.len() as u16;
        let mut above = HOME;
        for tier in 0..tiers {
            if item.at.in_tier(tier) != Presence::Resident {
                continue;
            }
            if !self.is_above(tier) {
                self.residents[usize::from(tier)].add(i);
                above = IN_TIER;
            } else if above != IN_TIER {
                above = tier + 1;
            }
        }
        let Some((tier, here)) = item.at.coming().filter(|_| above != IN_TIER) else {
            if above != IN_TIER {
                self.pools[usize::from(above)].add(i);
            }
            return;
        };
        let there = here + self.time(i, usize::from(tier) + 1);
        if self.time(i, usize::from(above)) < there {
            self.pools[usize::from(above)].add_staying(i);
        } else if self.is_above(tier) {
            self.pools[usize::from(tier) + 1].add_coming(i, here);
        } else {
            self.residents[usize::from(tier)].add_coming(i, here);
        }
    }

    fn run(
        &mut self,
        work: &LayerWork<'_>,
        mut plan: Option<&mut LayerPlan>,
        use_optional: bool,
    ) -> Nanos {
        self.reset(work, use_optional);
        if let Some(plan) = plan.as_deref_mut() {
            plan.clear(work.costs.tiers.len());
        }
        for _ in 0..self.units * work.items.len() {
            let Some((_, _, step)) = self.next_step(work) else { break };
            self.take(step);
            if let Some(plan) = plan.as_deref_mut() {
                record(step, plan);
            }
        }
        self.last
    }

    fn reset(&mut self, work: &LayerWork<'_>, use_optional: bool) {
        let costs = work.costs;
        let lane = |unit| Lane { entry: costs.entry_time(unit, work.tokens), ..Lane::default() };
        self.lanes.clear();
        self.lanes.resize(usize::from(costs.lanes()), lane(Unit::Home(0)));
        self.tiers.clear();
        self.tiers.extend((0..).zip(&costs.tiers).map(|(number, tier)| TierLine {
            unit: lane(Unit::Tier(number)),
            link_free: work.link_free_in(number),
            source: tier.parent.map_or(HOME, |parent| parent + 1),
            is_above: self.above >> number & 1 == 1,
            is_optional: tier.parent.is_some() || costs.lanes() > 0,
        }));
        self.owner.clear();
        self.owner.resize(work.items.len(), DONE);
        for (number, pool) in (0..).zip(&mut self.pools) {
            pool.begin();
            pool.items().for_each(|item| self.owner[usize::from(item)] = number);
        }
        self.residents.iter_mut().for_each(|resident| resident.begin(&mut self.owner));
        (self.last, self.optional_loads, self.use_optional) = (Nanos::ZERO, 0, use_optional);
    }

    /// The operation that finishes first: (when, tie order, which).
    fn next_step(&mut self, work: &LayerWork<'_>) -> Option<(Nanos, u8, Step)> {
        let mut best: Option<(Nanos, u8, Step)> = None;
        let mut consider = |next: Option<(Nanos, u8, Step)>| {
            if let Some((end, order, _)) = next
                && best.is_none_or(|(other, before, _)| (end, order) < (other, before))
            {
                best = next;
            }
        };
        let first = self.first_links();
        for tier in first.into_iter().take(self.units).flatten() {
            consider(self.next_on_link(work, usize::from(tier)));
        }
        for lane in 0..self.lanes.len() {
            consider(self.next_on_home(work, lane));
        }
        for tier in 0..self.tiers.len() {
            consider(self.next_on_tier(work, tier));
        }
        best
    }

    /// Of the links that begin at each memory the one that would be done first.
    fn first_links(&self) -> [Option<u16>; MAX_TIERS + 1] {
        let mut first = [None; MAX_TIERS + 1];
        let done = |tier: u16| {
            let tier = usize::from(tier);
            self.tiers[tier].link_free + self.loads[tier]
        };
        for (number, tier) in (0..).zip(&self.tiers) {
            let best = &mut first[usize::from(tier.source)];
            if best.is_none_or(|other| done(number) < done(other)) {
                *best = Some(number);
            }
        }
        first
    }

    /// The highest load of the source that is not on a link already.
    fn next_on_link(&mut self, work: &LayerWork<'_>, tier: usize) -> Option<(Nanos, u8, Step)> {
        let TierLine { link_free, source, is_optional, .. } = self.tiers[tier];
        if is_optional && !self.use_optional {
            return None;
        }
        let pool = &mut self.pools[usize::from(source)];
        let is_free = |item: u16| self.owner[usize::from(item)] == source;
        let (item, begins) = pool.highest(work, is_free, link_free)?;
        let step = Step::Link { tier: tier as u16, item, begins };
        Some((begins + self.loads[tier], 0, step))
    }

    /// The lowest load at home that lives on the lane or, when it has none, the lowest load of its
    /// experts in tiers.
    fn next_on_home(&mut self, work: &LayerWork<'_>, lane: usize) -> Option<(Nanos, u8, Step)> {
        let lives_here = |item: u16| {
            usize::from(work.costs.lane_of(work.items[usize::from(item)].expert)) == lane
        };
        let Lane { free, entered, entry, .. } = self.lanes[lane];
        let owner = &self.owner;
        let is_own = |item: u16| owner[usize::from(item)] == HOME && lives_here(item);
        let own = self.pools[0].lowest(&mut self.lanes[lane].cursor, is_own);
        let item = own.or_else(|| {
            let lowest = |resident: &mut Resident| resident.lowest(owner, lives_here);
            self.residents.iter_mut().find_map(lowest)
        })?;
        let entry = if entered { Nanos::ZERO } else { entry };
        Some((free + entry + self.time(item, 0), 1, Step::Home { lane, item }))
    }

    /// The next for a tier's unit, and when it would end.
    fn next_on_tier(&mut self, work: &LayerWork<'_>, tier: usize) -> Option<(Nanos, u8, Step)> {
        let TierLine { unit: Lane { free, entered, entry, .. }, is_above, .. } = self.tiers[tier];
        let (number, owner) = (tier as u16, &self.owner);
        let (item, begins) = if is_above {
            let is_own = |item: u16| owner[usize::from(item)] == number + 1;
            let cursor = &mut self.tiers[tier].unit.cursor;
            let own = self.pools[tier + 1].soonest(work, is_own, cursor, free);
            own.or_else(|| {
                let at = |item: u16| work.items[usize::from(item)].at.in_tier(number);
                let is_here = |item: u16| at(item) == Presence::Resident;
                let lowest = |resident: &mut Resident| resident.lowest(owner, is_here);
                Some((self.residents.iter_mut().find_map(lowest)?, free))
            })?
        } else {
            self.residents[tier].next(work, owner, free)?
        };
        let entry = if entered { Nanos::ZERO } else { entry };
        let order = if is_above { 1 } else { 2 };
        let end = begins + entry + self.time(item, tier + 1);
        Some((end, order, Step::Tier { tier: number, item, begins }))
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Link { tier, item, begins } => {
                let line = &mut self.tiers[usize::from(tier)];
                let here = begins + self.loads[usize::from(tier)];
                line.link_free = here;
                self.optional_loads += usize::from(line.is_optional);
                if line.is_above {
                    self.owner[usize::from(item)] = tier + 1;
                    self.pools[usize::from(tier) + 1].add_coming(item, here);
                } else {
                    self.owner[usize::from(item)] = IN_TIER;
                    self.residents[usize::from(tier)].add_coming(item, here);
                }
            }
            Step::Home { lane, item } => {
                let time = self.time(item, 0);
                let lane = &mut self.lanes[lane];
                let begins = lane.free;
                self.last = self.last.max(lane.run(begins, time));
                self.owner[usize::from(item)] = DONE;
            }
            Step::Tier { tier, item, begins } => {
                let time = self.time(item, usize::from(tier) + 1);
                let ended = self.tiers[usize::from(tier)].unit.run(begins, time);
                self.last = self.last.max(ended);
                self.owner[usize::from(item)] = DONE;
            }
        }
    }
}

impl Lane {
    /// Computes for `time` from `begins`; when it ends.
    fn run(&mut self, begins: Nanos, time: Nanos) -> Nanos {
        let entry = if self.entered { Nanos::ZERO } else { self.entry };
        self.entered = true;
        self.free = begins + entry + time;
        self.free
    }
}

fn record(step: Step, plan: &mut LayerPlan) {
    match step {
        Step::Link { tier, item, .. } => plan.tiers[usize::from(tier)].load.push(item),
        Step::Home { item, .. } => plan.home.push(item),
        Step::Tier { tier, item, .. } => plan.tiers[usize::from(tier)].compute.push(item),
    }
}
