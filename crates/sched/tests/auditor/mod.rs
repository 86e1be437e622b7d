//! A small physical world: memories with buffers and contents, units and links that are busy or
//! not. It carries out every action and panics when one is impossible.

mod bound;
mod parts;

use bound::{lower_bound, work_bound};
use parts::{costs, prefetcher, strategy};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use motley_cost::Nanos;
use motley_sched::cache::lfu::Lfu;
use motley_sched::cache::lru::Lru;
use motley_sched::cache::{CachePolicy, Capacity, ExpertCache, Routed};
use motley_sched::prefetch::Prediction;
use motley_sched::strategy::LayerSplit;
use motley_sched::{
    Action, AtOnce, Costs, LayerWork, Phase, Place, Purpose, Routing, Scheduler, SchedulerLimits,
    SchedulerParts, Share, TierParts, Unit,
};
use motley_trace::{ExpertGrid, ExpertKey};

/// One random world.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) layers: u16,
    pub(crate) experts: u16,
    pub(crate) top_k: u16,
    pub(crate) tokens: u32,
    pub(crate) strategy: usize,
    pub(crate) prefetcher: usize,
    /// Units take all that is ready at once.
    pub(crate) together: bool,
    pub(crate) cache: usize,
    pub(crate) cache_share: f64,
    /// 0 hybrid, 1 beyond RAM, 2 near-data with whole experts, 3 near-data with split experts.
    pub(crate) regime: usize,
    pub(crate) fast_us: f64,
    pub(crate) home_us: f64,
    pub(crate) load_us: f64,
    pub(crate) fails: f64,
    pub(crate) slow: f64,
    pub(crate) passes: u32,
    /// Chance that a layer is given up half-way.
    pub(crate) cancels: f64,
    /// Memories beside the one that has everything; with more than one, who is below whom, and
    /// what their units cost, follows from the seed.
    pub(crate) tiers: u16,
}

/// What came of it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) pairs_routed: u64,
    pub(crate) pairs_computed: u64,
    pub(crate) lost: u64,
    pub(crate) failed_loads: u64,
    /// (took, lower bound) of each layer.
    pub(crate) layers: Vec<(Nanos, Nanos)>,
    pub(crate) actions: Vec<Action>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Loaded(u16, ExpertKey, bool),
    Computed(ExpertKey, Unit),
}

#[derive(Debug, Clone, Copy)]
struct Content {
    key: ExpertKey,
    share: Share,
    here: bool,
}

struct World<'a> {
    case: &'a Case,
    costs: Costs,
    random: fastrand::Rng,
    now: Nanos,
    links_free: Vec<Nanos>,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    /// By tier and place.
    buffers: BTreeMap<(u16, Place), Content>,
    most_buffers: Vec<usize>,
    /// The slot whose expert was sent away last, with its bytes there.
    evicted: Option<(u16, Place)>,
    busy: BTreeSet<(Unit, ExpertKey)>,
    /// Shares computed in this layer, and for how many tokens.
    computed: BTreeMap<ExpertKey, (f64, u32)>,
    outcome: Outcome,
}

const LIMITS: SchedulerLimits = SchedulerLimits {
    loads_in_flight: 2,
    staging_slots: 3,
    prefetch_slots: 2,
    guesses_in_flight: 1,
    load_attempts: 24,
};

/// Runs a case to its end or to the first lost expert.
pub(crate) fn run(case: &Case) -> Outcome {
    let costs = costs(case);
    let grid = ExpertGrid { layers: case.layers, experts: case.experts };
    let capacity = |tier: u16| match (case.seed >> tier) % 2 {
        0 => Capacity::global_share(grid, case.cache_share),
        _ => Capacity::per_layer_share(grid, case.cache_share),
    };
    let policy = || -> Box<dyn CachePolicy> {
        match case.cache {
            0 => Box::new(Lru::new()),
            _ => Box::new(Lfu::new(grid)),
        }
    };
    let slots = capacity(0).total();
    let tier = |tier: u16| TierParts {
        cache: ExpertCache::new(grid, capacity(tier), policy()),
        prefetcher: prefetcher(case.prefetcher, grid),
        limits: LIMITS,
    };
    let mut scheduler = Scheduler::new(SchedulerParts {
        costs: costs.clone(),
        tiers: (0..case.tiers).map(tier).collect(),
        // Only timelines know of several tiers.
        strategy: strategy(if case.tiers > 1 { usize::MAX } else { case.strategy }),
    })
    .computing(if case.together { AtOnce::ALL } else { AtOnce::default() });
    let mut world = World {
        case,
        costs,
        random: fastrand::Rng::with_seed(case.seed),
        now: Nanos::ZERO,
        links_free: vec![Nanos::ZERO; case.tiers.into()],
        events: BinaryHeap::new(),
        buffers: BTreeMap::new(),
        most_buffers: (0..case.tiers)
            .map(|tier| capacity(tier).total() as usize + usize::from(LIMITS.staging_slots))
            .collect(),
        evicted: None,
        busy: BTreeSet::new(),
        computed: BTreeMap::new(),
        outcome: Outcome::default(),
    };
    if case.cache == 2 {
        world.preload(&mut scheduler, &LayerSplit::residents(grid, slots));
    }
    world.run(&mut scheduler);
    world.outcome
}

impl World<'_> {
    fn preload(&mut self, scheduler: &mut Scheduler, keys: &[ExpertKey]) {
        for (key, slot) in scheduler.preload(0, keys) {
            let content = Content { key, share: Share::WHOLE, here: true };
            assert!(self.buffers.insert((0, Place::Cache(slot)), content).is_none());
        }
    }

    fn run(&mut self, scheduler: &mut Scheduler) {
        for pass in 0..self.case.passes {
            let phase = if pass == 0 { Phase::Prefill } else { Phase::Decode };
            'layers: for layer in 0..self.case.layers {
                self.now += Nanos::from_us(self.random.f64() * 30.0);
                if !self.deliver_until_now(scheduler) {
                    return;
                }
                let loads = self.route(phase);
                let routed_at = self.now;
                self.on_routed(scheduler, layer, phase, &loads);
                let bound = self.bound(scheduler, layer, phase);
                let cancelled = self.random.f64() < self.case.cancels;
                while !scheduler.layer_is_done() {
                    if cancelled && self.random.f64() < 0.3 {
                        self.cancel(scheduler, &loads);
                        continue 'layers;
                    }
                    if !self.step(scheduler) {
                        return;
                    }
                }
                self.check_layer(layer, &loads);
                self.outcome.layers.push((self.now - routed_at, bound));
            }
        }
    }

    /// Waits for running computations, then gives the layer up.
    fn cancel(&mut self, scheduler: &mut Scheduler, loads: &BTreeMap<u16, u32>) {
        let all: Vec<_> = std::mem::take(&mut self.events).into_sorted_vec();
        for Reverse((at, sequence, event)) in all.into_iter().rev() {
            match event {
                Event::Computed(key, unit) => {
                    self.now = self.now.max(at);
                    self.busy.remove(&(unit, key));
                    scheduler.on_computed(self.now, key, unit);
                }
                Event::Loaded(..) => self.events.push(Reverse((at, sequence, event))),
            }
        }
        scheduler.abandon_layer();
        assert!(scheduler.layer_is_done());
        self.computed.clear();
        self.outcome.pairs_routed -= loads.values().map(|&t| u64::from(t)).sum::<u64>();
        self.carry_out(scheduler);
    }

    /// A random routing: `tokens` tokens with `top_k` distinct experts each.
    fn route(&mut self, phase: Phase) -> BTreeMap<u16, u32> {
        let tokens = if phase == Phase::Prefill { self.case.tokens } else { 1 };
        let mut loads = BTreeMap::new();
        for _ in 0..tokens {
            let all: Vec<u16> = (0..self.case.experts).collect();
            let chosen = self.random.choose_multiple(all, usize::from(self.case.top_k));
            chosen.into_iter().for_each(|expert| *loads.entry(expert).or_insert(0) += 1);
        }
        loads
    }

    fn on_routed(
        &mut self,
        scheduler: &mut Scheduler,
        layer: u16,
        phase: Phase,
        loads: &BTreeMap<u16, u32>,
    ) {
        let experts: Vec<u16> = loads.keys().copied().collect();
        let tokens: Vec<u32> = loads.values().copied().collect();
        self.outcome.pairs_routed += tokens.iter().map(|&t| u64::from(t)).sum::<u64>();
        let next = (layer + 1) % self.case.layers;
        let guess = self.route(Phase::Decode).into_iter().collect();
        let routed = Routed {
            layer,
            tokens: tokens.iter().sum::<u32>() / u32::from(self.case.top_k),
            experts: &experts,
            loads: &tokens,
            weights: &[],
            scores: &[],
        };
        let predictions = [Prediction { layer: next, loads: guess }];
        scheduler.on_routed(self.now, &Routing { routed, phase, predictions: &predictions });
        self.carry_out(scheduler);
    }

    fn bound(&self, scheduler: &Scheduler, layer: u16, phase: Phase) -> Nanos {
        let work = LayerWork {
            layer,
            phase,
            tokens: 1,
            items: scheduler.work(),
            costs: &self.costs,
            links_free_in: &[],
        };
        if scheduler.plan().split.is_some() { work_bound(&work) } else { lower_bound(&work) }
    }

    fn deliver_until_now(&mut self, scheduler: &mut Scheduler) -> bool {
        let now = self.now;
        while self.events.peek().is_some_and(|Reverse((at, _, _))| *at <= now) {
            if !self.step(scheduler) {
                return false;
            }
        }
        self.now = now;
        true
    }

    /// False when an expert was lost.
    fn step(&mut self, scheduler: &mut Scheduler) -> bool {
        let next = self.events.pop();
        let Reverse((at, _, event)) = next.unwrap_or_else(|| panic!("deadlock: {:?}", self.case));
        self.now = self.now.max(at);
        match event {
            Event::Loaded(tier, key, ok) => {
                let source = self.costs.parent(tier);
                assert!(
                    source.is_none_or(|parent| self.is_in(parent, key)),
                    "{key} lost its source"
                );
                let coming = |((at, _), content): &(&(u16, Place), &mut Content)| {
                    *at == tier && content.key == key
                };
                let content = self.buffers.iter_mut().find(coming);
                content.expect("a buffer under way").1.here = ok;
                self.outcome.failed_loads += u64::from(!ok);
                if scheduler.on_loaded(self.now, tier, key, ok).is_err() {
                    self.outcome.lost += 1;
                    return false;
                }
            }
            Event::Computed(key, unit) => {
                assert!(self.busy.remove(&(unit, key)), "{key} was not running");
                scheduler.on_computed(self.now, key, unit);
            }
        }
        self.carry_out(scheduler);
        true
    }

    fn carry_out(&mut self, scheduler: &mut Scheduler) {
        while let Some(action) = scheduler.poll_action(self.now) {
            self.outcome.actions.push(action);
            match action {
                Action::Load { tier, key, share, place, purpose } => {
                    if purpose == Purpose::Guess {
                        self.check_guess((tier, place));
                    }
                    self.load(tier, key, share, place);
                }
                Action::Compute { key, share, unit, place, tokens, .. } => {
                    self.compute(key, share, unit, place, tokens);
                }
                Action::Exchange { tier, key, staging, slot } => {
                    let content = self.buffers.remove(&(tier, Place::Staging(staging)));
                    let content = content.expect("a staged expert");
                    assert!(content.key == key && content.here && content.share == Share::WHOLE);
                    assert!(self.buffers.insert((tier, Place::Cache(slot)), content).is_none());
                }
                Action::Release { tier, key, place } => {
                    let content = self.buffers.remove(&(tier, place));
                    let content = content.expect("something to release");
                    assert_eq!(content.key, key);
                    let slot = matches!(place, Place::Cache(_));
                    // One that is in a tier below has moved there.
                    let has_moved = (0..self.case.tiers).any(|below| {
                        self.costs.parent(below) == Some(tier) && self.is_in(below, key)
                    });
                    let sent_away = slot && content.here && !has_moved;
                    self.evicted = sent_away.then_some((tier, place));
                    let used = self.busy.contains(&(Unit::Tier(tier), key));
                    assert!(!used, "{key} is released while it is computed");
                    assert!(!self.is_read_from(tier, key), "{key} is released while it is copied");
                }
            }
        }
    }

    /// Whether all bytes of an expert are in a tier.
    fn is_in(&self, tier: u16, key: ExpertKey) -> bool {
        let mut buffers = self.buffers.iter().filter(|((at, _), _)| *at == tier);
        let whole = |content: &Content| content.here && content.share == Share::WHOLE;
        buffers.any(|(_, content)| content.key == key && whole(content))
    }

    /// Whether a copy of an expert from a tier onwards is under way.
    fn is_read_from(&self, tier: u16, key: ExpertKey) -> bool {
        self.events.iter().any(|Reverse((_, _, event))| match *event {
            Event::Loaded(to, loaded, _) => loaded == key && self.costs.parent(to) == Some(tier),
            Event::Computed(..) => false,
        })
    }

    /// A guess starts on an idle link only and sends nobody away; a refill may, and so may what a
    /// prompt used most.
    fn check_guess(&self, place: (u16, Place)) {
        let is_beside =
            |event: &Event| matches!(event, Event::Loaded(tier, ..) if *tier == place.0);
        let under_way = self.events.iter().any(|Reverse((_, _, event))| is_beside(event));
        assert!(!under_way, "a guess beside another transfer");
        let evicts = self.evicted == Some(place);
        assert!(!evicts || matches!(self.case.prefetcher, 3 | 4), "a guess evicts");
    }

    fn load(&mut self, tier: u16, key: ExpertKey, share: Share, place: Place) {
        let source = self.costs.parent(tier);
        assert!(source.is_none_or(|parent| self.is_in(parent, key)), "{key} without a source");
        let content = Content { key, share, here: false };
        assert!(self.buffers.insert((tier, place), content).is_none(), "{place:?} is in use");
        let in_tier = || self.buffers.iter().filter(|((at, _), _)| *at == tier);
        assert!(in_tier().count() <= self.most_buffers[usize::from(tier)], "capacity exceeded");
        let copies = in_tier().filter(|(_, content)| content.key == key).count();
        assert_eq!(copies, 1, "{key} is loaded twice");
        let slower = 1.0 + self.random.f64() * (self.case.slow - 1.0);
        let took = Nanos::from_us(self.costs.load_time(tier, share).as_us() * slower);
        let link_free = &mut self.links_free[usize::from(tier)];
        *link_free = (*link_free).max(self.now) + took;
        let (at, ok) = (*link_free, self.random.f64() >= self.case.fails);
        self.schedule(at, Event::Loaded(tier, key, ok));
    }

    fn compute(
        &mut self,
        key: ExpertKey,
        share: Share,
        unit: Unit,
        place: Option<Place>,
        tokens: u32,
    ) {
        let time = match unit {
            Unit::Tier(tier) => {
                let content = self.buffers.get(&(tier, place.expect("a place"))).expect("bytes");
                assert!(content.key == key && content.here, "{key} without its bytes");
                assert!(content.share >= share, "{key} with a part of its bytes");
                self.costs.tier_time(tier, tokens, share)
            }
            Unit::Home(lane) => {
                assert_eq!(lane, self.costs.lane_of(key.expert), "{key} away from home");
                self.costs.home_time(tokens, share)
            }
        };
        let alone = self.busy.iter().all(|(other, _)| *other != unit);
        assert!(alone || self.case.together, "{unit:?} has two computations");
        assert!(self.busy.insert((unit, key)), "{key} is computed twice at a time");
        let so_far = self.computed.entry(key).or_default();
        so_far.0 += share.fraction();
        so_far.1 = tokens;
        self.schedule(self.now + time, Event::Computed(key, unit));
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        let sequence = self.outcome.actions.len() as u64;
        self.events.push(Reverse((at, sequence, event)));
    }

    fn check_layer(&mut self, layer: u16, loads: &BTreeMap<u16, u32>) {
        let computed = std::mem::take(&mut self.computed);
        assert_eq!(computed.len(), loads.len(), "{:?}", self.case);
        for (key, (shares, tokens)) in computed {
            assert_eq!((key.layer, shares), (layer, 1.0), "{key} is not computed once");
            assert_eq!(loads.get(&key.expert), Some(&tokens), "{key} for other tokens");
            self.outcome.pairs_computed += u64::from(tokens);
        }
    }
}
