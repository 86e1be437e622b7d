//! Three timelines of one layer (H1): fast unit, home units and link, filled before anything runs.
//! A simulation for planning; real time is the drivers' affair.
//!
//! Queues, sorted by load:
//!
//! ```text
//!   near (in the fast tier)   high ──────────────▶ low
//!        fast unit takes ▲                      ▲ an idle home unit takes
//!   absent                    low ───────────────▶ high
//!        home unit takes ▲                      ▲ the link takes, then joins `near`
//! ```
//!
//! Each step compares the next operation of every timeline and carries out the one that would
//! finish first. Ties go to the link, then home, then fast: bytes under way delay nobody.
//! A plan costs O(A log A) for the sort and O(A · lanes) for the steps, A the active experts.

use motley_cost::Nanos;

use crate::work::{LayerPlan, LayerWork, Presence, Share, Waits};

/// Fills timelines; keeps its buffers from layer to layer.
#[derive(Debug, Default)]
pub struct Timelines {
    /// Items in the fast tier, high load first.
    near: Vec<u16>,
    /// Items already on the link when the layer is routed, first to arrive first.
    coming: Vec<(u16, Nanos)>,
    /// Items in the slow tier, or on the link and too far, low load first.
    absent: Vec<u16>,
    /// Items on the link or off it, with their arrival; high load first by construction.
    arriving: Vec<(u16, Nanos)>,
    /// Time of each item on the fast unit and at home.
    times: Vec<Times>,
    /// Time of one transfer, and what a home lane pays first.
    load: Nanos,
    entry: Nanos,
    taken: Vec<bool>,
    lanes: Vec<Lane>,
    ends: Ends,
    loads: usize,
    /// First of `near` the fast unit has not taken; one past the last an idle home may take.
    near_front: usize,
    near_back: usize,
    arriving_front: usize,
    absent_back: usize,
    /// Whether the link is used at all in this run.
    use_link: bool,
}

#[derive(Debug, Clone, Copy)]
struct Times {
    fast: Nanos,
    home: Nanos,
}

#[derive(Debug, Clone, Copy, Default)]
struct Lane {
    free: Nanos,
    /// Position in `absent` before which nothing is left for this lane.
    cursor: usize,
    entered: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    fast: Nanos,
    link: Nanos,
    last: Nanos,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Link { absent: usize },
    Home { lane: usize, item: u16 },
    Fast { item: u16, from_near: bool },
}

impl Timelines {
    /// Plans `work` into `plan` and returns the planned makespan.
    ///
    /// Runs with the link and, where home units could do without it, also without; the shorter
    /// makespan wins. The second run guards against a transfer that finishes before the home
    /// unit would but whose computation does not.
    pub fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) -> Nanos {
        self.sort(work);
        let with_link = self.run(work, Some(plan), true);
        if !self.could_do_without_link(with_link) {
            return with_link;
        }
        let without = self.run(work, None, false);
        if without < with_link {
            return self.run(work, Some(plan), false);
        }
        with_link
    }

    /// The makespan [`Self::plan`] would reach, without writing a plan.
    pub fn makespan(&mut self, work: &LayerWork<'_>) -> Nanos {
        self.sort(work);
        let with_link = self.run(work, None, true);
        if !self.could_do_without_link(with_link) {
            return with_link;
        }
        with_link.min(self.run(work, None, false))
    }

    /// Whether home units alone might finish all that is absent sooner than `with_link`.
    fn could_do_without_link(&self, with_link: Nanos) -> bool {
        let lanes = self.lanes.len() as u64;
        if self.loads == 0 || lanes == 0 {
            return false;
        }
        let at_home: Nanos = self.absent.iter().map(|&i| self.times[usize::from(i)].home).sum();
        at_home.0 / lanes < with_link.0
    }

    fn sort(&mut self, work: &LayerWork<'_>) {
        let load = |i: u16| work.items[usize::from(i)].tokens;
        let expert = |i: u16| work.items[usize::from(i)].expert;
        self.load = work.costs.load_time(Share::WHOLE);
        self.entry = work.costs.entry_time(work.tokens);
        self.times.clear();
        self.times.extend(work.items.iter().map(|item| Times {
            fast: work.costs.fast_time(item.tokens, Share::WHOLE),
            home: work.costs.home_time(item.tokens, Share::WHOLE),
        }));
        self.near.clear();
        self.absent.clear();
        self.coming.clear();
        for (i, item) in work.items.iter().enumerate() {
            match (work.waits_at(item), item.presence) {
                (Waits::Fast, Presence::Arriving(here)) => self.coming.push((i as u16, here)),
                (Waits::Fast, _) => self.near.push(i as u16),
                (Waits::Home | Waits::Anywhere, _) => self.absent.push(i as u16),
            }
        }
        self.coming.sort_unstable_by_key(|&(i, here)| (here, expert(i)));
        self.near.sort_unstable_by_key(|&i| (std::cmp::Reverse(load(i)), expert(i)));
        self.absent.sort_unstable_by_key(|&i| (load(i), expert(i)));
    }

    fn run(
        &mut self,
        work: &LayerWork<'_>,
        mut plan: Option<&mut LayerPlan>,
        use_link: bool,
    ) -> Nanos {
        self.reset(work, use_link);
        if let Some(plan) = plan.as_deref_mut() {
            plan.clear();
        }
        for _ in 0..2 * work.items.len() {
            let Some((_, _, step)) = self.next_step(work) else { break };
            self.take(step);
            if let Some(plan) = plan.as_deref_mut() {
                self.record(step, plan);
            }
        }
        self.ends.last
    }

    fn reset(&mut self, work: &LayerWork<'_>, use_link: bool) {
        self.taken.clear();
        self.taken.resize(work.items.len(), false);
        self.lanes.clear();
        self.lanes.resize(usize::from(work.costs.lanes()), Lane::default());
        self.arriving.clear();
        self.arriving.extend_from_slice(&self.coming);
        self.ends = Ends { link: work.link_free_in, ..Ends::default() };
        (self.near_front, self.near_back) = (0, self.near.len());
        self.arriving_front = 0;
        self.loads = 0;
        self.absent_back = self.absent.len();
        self.use_link = use_link || self.lanes.is_empty();
    }

    /// The operation that finishes first: (when, tie order, which).
    fn next_step(&mut self, work: &LayerWork<'_>) -> Option<(Nanos, u8, Step)> {
        let link = self.next_on_link(work).map(|(end, step)| (end, 0, step));
        let home = self.next_on_home(work).map(|(end, step)| (end, 1, step));
        let fast = self.next_on_fast(work).map(|(end, step)| (end, 2, step));
        [link, home, fast].into_iter().flatten().min_by_key(|(end, order, _)| (*end, *order))
    }

    /// The highest load that is still absent and not on the link already.
    fn next_on_link(&mut self, work: &LayerWork<'_>) -> Option<(Nanos, Step)> {
        if !self.use_link {
            return None;
        }
        let on_link = |item: u16| work.items[usize::from(item)].is_near();
        while let Some(&item) = self.absent[..self.absent_back].last()
            && (self.is_taken(item) || on_link(item))
        {
            self.absent_back -= 1;
        }
        let absent = self.absent_back.checked_sub(1)?;
        Some((self.ends.link + self.load, Step::Link { absent }))
    }

    /// For the home lane that would finish first: its lowest absent load, or when it has none,
    /// the lowest load of its experts in the fast tier.
    fn next_on_home(&mut self, work: &LayerWork<'_>) -> Option<(Nanos, Step)> {
        let mut best: Option<(Nanos, Step)> = None;
        for lane in 0..self.lanes.len() {
            let Some(item) = self.next_of_lane(work, lane) else { continue };
            let Lane { free, entered, .. } = self.lanes[lane];
            let entry = if entered { Nanos::ZERO } else { self.entry };
            let end = free + entry + self.times[usize::from(item)].home;
            if best.is_none_or(|(other, _)| end < other) {
                best = Some((end, Step::Home { lane, item }));
            }
        }
        best
    }

    fn next_of_lane(&mut self, work: &LayerWork<'_>, lane: usize) -> Option<u16> {
        let lives_here = |item: u16| {
            usize::from(work.costs.lane_of(work.items[usize::from(item)].expert)) == lane
        };
        let mut cursor = self.lanes[lane].cursor;
        while cursor < self.absent.len()
            && (self.is_taken(self.absent[cursor]) || !lives_here(self.absent[cursor]))
        {
            cursor += 1;
        }
        self.lanes[lane].cursor = cursor;
        if let Some(&item) = self.absent.get(cursor) {
            return Some(item);
        }
        while self.near_back > self.near_front && self.is_taken(self.near[self.near_back - 1]) {
            self.near_back -= 1;
        }
        let rest = &self.near[self.near_front.min(self.near_back)..self.near_back];
        rest.iter().rev().copied().find(|&item| !self.is_taken(item) && lives_here(item))
    }

    /// The highest load among what is there when the unit is free, else the first to arrive.
    fn next_on_fast(&mut self, work: &LayerWork<'_>) -> Option<(Nanos, Step)> {
        while self.near_front < self.near.len() && self.is_taken(self.near[self.near_front]) {
            self.near_front += 1;
        }
        let near = self.near.get(self.near_front).map(|&item| (self.ends.fast, item, true));
        let come = self
            .arriving
            .get(self.arriving_front)
            .map(|&(item, here)| (self.ends.fast.max(here), item, false));
        let load = |item: u16| std::cmp::Reverse(work.items[usize::from(item)].tokens);
        let first = [near, come]
            .into_iter()
            .flatten()
            .min_by_key(|&(start, item, from_near)| (start, load(item), !from_near))?;
        let (start, item, from_near) = first;
        let end = start + self.times[usize::from(item)].fast;
        Some((end, Step::Fast { item, from_near }))
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Link { absent } => {
                let item = self.absent[absent];
                self.ends.link += self.load;
                self.loads += 1;
                self.taken[usize::from(item)] = true;
                self.arriving.push((item, self.ends.link));
            }
            Step::Home { lane, item } => {
                let lane = &mut self.lanes[lane];
                if !lane.entered {
                    lane.free += self.entry;
                    lane.entered = true;
                }
                lane.free += self.times[usize::from(item)].home;
                self.ends.last = self.ends.last.max(lane.free);
                self.taken[usize::from(item)] = true;
            }
            Step::Fast { item, from_near } => {
                let here = if from_near {
                    Nanos::ZERO
                } else {
                    self.arriving_front += 1;
                    self.arriving[self.arriving_front - 1].1
                };
                let start = self.ends.fast.max(here);
                self.ends.fast = start + self.times[usize::from(item)].fast;
                self.ends.last = self.ends.last.max(self.ends.fast);
                self.taken[usize::from(item)] = true;
            }
        }
    }

    fn record(&self, step: Step, plan: &mut LayerPlan) {
        match step {
            Step::Link { absent } => plan.load.push(self.absent[absent]),
            Step::Home { item, .. } => plan.home.push(item),
            Step::Fast { item, .. } => plan.fast.push(item),
        }
    }

    fn is_taken(&self, item: u16) -> bool {
        self.taken[usize::from(item)]
    }
}

#[cfg(test)]
mod tests {
    use motley_cost::{ComputeCost, TransferCost};

    use super::*;
    use crate::work::{Costs, Homes, Layout, Phase, WorkItem};

    /// The units of HybriMoE section IV-B: the fast unit takes 1 whatever the load, the home unit
    /// 1 per token, a transfer 3. One unit is a microsecond.
    fn example_costs() -> Costs {
        Costs {
            fast: ComputeCost::constant(1.0),
            home: Some(Homes {
                units: 1,
                layout: Layout::Whole,
                unit: ComputeCost { launch_us: 0.0, per_token_us: 1.0, floor_us: 0.0 },
                entry_us: 0.0,
                entry_per_token_us: 0.0,
            }),
            link: TransferCost { latency_us: 3.0, per_byte_us: 0.0 },
            expert_bytes: 1,
        }
    }

    fn plan(items: &[WorkItem], costs: &Costs) -> (Nanos, LayerPlan) {
        let work = LayerWork {
            layer: 0,
            phase: Phase::Prefill,
            tokens: 8,
            items,
            costs,
            link_free_in: Nanos::ZERO,
        };
        let mut plan = LayerPlan::default();
        let mut timelines = Timelines::default();
        let makespan = timelines.plan(&work, &mut plan);
        assert_eq!(makespan, timelines.makespan(&work));
        (makespan, plan)
    }

    fn item(expert: u16, tokens: u32, presence: Presence) -> WorkItem {
        WorkItem { expert, tokens, presence }
    }

    /// H1, HybriMoE section IV-B: the best plan computes a cached low-load expert on the CPU
    /// while an uncached high-load one is on its way to the GPU.
    #[test]
    fn a_cached_low_load_goes_home_while_an_absent_high_load_is_transferred() {
        use Presence::{Absent, Resident};
        let names = ["A", "B", "C", "D", "E", "F"];
        let items = [
            item(0, 5, Resident),
            item(1, 4, Resident),
            item(2, 6, Absent),
            item(3, 1, Absent),
            item(4, 1, Resident),
            item(5, 3, Resident),
        ];
        let (makespan, plan) = plan(&items, &example_costs());
        let named = |list: &[u16]| list.iter().map(|&i| names[usize::from(i)]).collect::<String>();
        assert_eq!(named(&plan.home), "DE", "uncached low load, then cached low load");
        assert_eq!(named(&plan.load), "C", "uncached high load");
        assert_eq!(named(&plan.fast), "ABFC", "high load first, the transferred one joins");
        assert_eq!(makespan, Nanos::from_us(4.0));
        assert_eq!(makespan, shortest(&items, &example_costs()), "no allocation is shorter");
    }

    /// Tries every allocation of items to fast or home, with H1's orders on each lane.
    fn shortest(items: &[WorkItem], costs: &Costs) -> Nanos {
        (0..1u32 << items.len()).map(|fast| makespan_of(items, costs, fast)).min().unwrap()
    }

    fn makespan_of(items: &[WorkItem], costs: &Costs, fast: u32) -> Nanos {
        let (mut home, mut unit, mut link) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by_key(|&i| (!items[i].is_near(), std::cmp::Reverse(items[i].tokens)));
        for i in order {
            if fast >> i & 1 == 0 {
                home += costs.home_time(items[i].tokens, Share::WHOLE);
                continue;
            }
            if !items[i].is_near() {
                link += costs.load_time(Share::WHOLE);
            }
            let ready = if items[i].is_near() { Nanos::ZERO } else { link };
            unit = unit.max(ready) + costs.fast_time(items[i].tokens, Share::WHOLE);
        }
        home.max(unit)
    }

    #[test]
    fn greedy_is_near_the_best_allocation() {
        let costs = example_costs();
        let (mut worst, mut sum, mut cases) = (1.0f64, 0.0, 0.0);
        for seed in 0..500u64 {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = |below: u64| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state % below
            };
            let items: Vec<_> = (0..8u16)
                .map(|expert| {
                    let here = next(2) == 0;
                    let presence = if here { Presence::Resident } else { Presence::Absent };
                    item(expert, 1 + next(8) as u32, presence)
                })
                .collect();
            let ratio = plan(&items, &costs).0.0 as f64 / shortest(&items, &costs).0 as f64;
            worst = worst.max(ratio);
            sum += ratio;
            cases += 1.0;
        }
        assert!(sum / cases < 1.15, "on average {} of the best", sum / cases);
        assert!(worst < 2.0, "at worst {worst} of the best");
    }

    #[test]
    fn without_home_units_everything_absent_is_loaded() {
        let costs = Costs { home: None, ..example_costs() };
        let items = [item(0, 1, Presence::Absent), item(1, 4, Presence::Absent)];
        let (makespan, plan) = plan(&items, &costs);
        assert_eq!((plan.load, plan.home.len()), (vec![1, 0], 0));
        assert_eq!(makespan, Nanos::from_us(7.0), "two transfers of 3 and one computation of 1");
    }

    #[test]
    fn a_slow_link_is_left_alone() {
        let link = TransferCost { latency_us: 50.0, per_byte_us: 0.0 };
        let costs = Costs { link, ..example_costs() };
        let items = [item(0, 1, Presence::Absent), item(1, 9, Presence::Absent)];
        let (makespan, plan) = plan(&items, &costs);
        assert!(plan.load.is_empty(), "{plan:?}");
        assert_eq!(makespan, Nanos::from_us(10.0));
    }

    #[test]
    fn an_expert_on_its_way_is_waited_for() {
        let costs = Costs { home: None, ..example_costs() };
        let items = [item(0, 1, Presence::Arriving(Nanos::from_us(2.0)))];
        assert_eq!(plan(&items, &costs).0, Nanos::from_us(3.0));
    }
}
