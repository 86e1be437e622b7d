//! Cost of one layer's decisions: everything from `on_routed` to the layer's end, with a driver
//! that answers at once. Limits: 20 us at E = 128, k = 8 in decode; 200 us in prefill of 512.
//! The large model has 94 layers of 256 experts; its limits are 20 us at 4 memories, 40 at 16.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use motley_cost::{ComputeCost, Nanos, TransferCost};
use motley_sched::cache::lru::Lru;
use motley_sched::cache::mrs::{Mrs, MrsParams};
use motley_sched::cache::{CachePolicy, Capacity, ExpertCache, Routed};
use motley_sched::prefetch::{NextLayer, NoPrefetch, Prediction, Prefetcher};
use motley_sched::strategy::{OnDemand, TimelineStrategy};
use motley_sched::{
    Action, Costs, Homes, Layout, Phase, Routing, Scheduler, SchedulerLimits, SchedulerParts,
    Strategy, Tier, TierParts,
};
use motley_trace::ExpertGrid;

const GRID: ExpertGrid = ExpertGrid { layers: 48, experts: 128 };
const LARGE: ExpertGrid = ExpertGrid { layers: 94, experts: 256 };
const TOP_K: usize = 8;

struct Bench {
    grid: ExpertGrid,
    scheduler: Scheduler,
    random: fastrand::Rng,
    now: Nanos,
    layer: u16,
}

/// A device beside a CPU that has every expert.
fn hybrid() -> Costs {
    let unit = ComputeCost { launch_us: 5.0, per_token_us: 12.0, floor_us: 60.0 };
    let home =
        Homes { units: 1, layout: Layout::Whole, unit, entry_us: 0.0, entry_per_token_us: 0.0 };
    Costs::one_tier(
        ComputeCost { launch_us: 10.0, per_token_us: 0.1, floor_us: 8.0 },
        TransferCost::new(10.0, 25.0),
        Some(home),
        2_654_208,
    )
}

fn mrs(grid: ExpertGrid) -> Box<dyn CachePolicy> {
    Box::new(Mrs::new(grid, MrsParams { alpha: 0.5, top: 2 * TOP_K as u16 }))
}

/// One layer's routing, drawn outside the measured time.
struct Drawn {
    experts: Vec<u16>,
    loads: Vec<u32>,
    scores: Vec<f32>,
    tokens: u32,
    predictions: Vec<Prediction>,
}

impl Bench {
    fn new(
        grid: ExpertGrid,
        policy: Box<dyn CachePolicy>,
        strategy: Box<dyn Strategy>,
        prefetcher: Box<dyn Prefetcher>,
    ) -> Self {
        let cache = ExpertCache::new(grid, Capacity::global_share(grid, 0.25), policy);
        let tier = TierParts { cache, prefetcher, limits: SchedulerLimits::default() };
        Self::of(grid, SchedulerParts { costs: hybrid(), tiers: vec![tier], strategy })
    }

    /// A disk, memory with a CPU, and devices: `memories` in all.
    fn of_memories(grid: ExpertGrid, memories: usize) -> Self {
        let ssd = TransferCost::new(80.0, 5.0);
        let hybrid = hybrid();
        let cpu = hybrid.home.map_or(hybrid.tiers[0].unit, |home| home.unit);
        let device = Tier { parent: Some(0), exclusive: true, entry_us: 20.0, ..hybrid.tiers[0] };
        let mut tiers = vec![Tier::beside_home(cpu, ssd)];
        tiers.resize(memories - 1, device);
        let costs = Costs { home: None, tiers, ..hybrid };
        let share = |tier: usize| if tier == 0 { 0.4 } else { 0.3 / (memories - 1) as f64 };
        let cache = |tier: usize| match Capacity::global_share(grid, share(tier)) {
            capacity if tier == 0 => ExpertCache::new(grid, capacity, mrs(grid)),
            capacity => ExpertCache::following(grid, capacity),
        };
        let parts = |tier| TierParts {
            cache: cache(tier),
            prefetcher: Box::new(NextLayer::default()),
            limits: SchedulerLimits::default(),
        };
        let tiers = (0..costs.tiers.len()).map(parts).collect();
        let strategy = Box::new(TimelineStrategy::default());
        Self::of(grid, SchedulerParts { costs, tiers, strategy })
    }

    fn of(grid: ExpertGrid, parts: SchedulerParts) -> Self {
        let scheduler = Scheduler::new(parts);
        let random = fastrand::Rng::with_seed(1);
        let mut bench = Self { grid, scheduler, random, now: Nanos::ZERO, layer: 0 };
        for _ in 0..20 * grid.layers {
            let drawn = bench.draw(1);
            bench.layer(&drawn);
        }
        bench
    }

    fn draw(&mut self, tokens: u32) -> Drawn {
        let (experts, loads) = self.loads(tokens);
        let ahead = |bench: &mut Self, distance: u16| {
            let (experts, loads) = bench.loads(tokens);
            let layer = (bench.layer + distance) % bench.grid.layers;
            Prediction { layer, loads: experts.into_iter().zip(loads).collect() }
        };
        let predictions = (1..=3).map(|distance| ahead(self, distance)).collect();
        let scores = (0..self.grid.experts).map(|_| self.random.f32()).collect();
        Drawn { experts, loads, scores, tokens, predictions }
    }

    fn loads(&mut self, tokens: u32) -> (Vec<u16>, Vec<u32>) {
        let mut counts = vec![0u32; usize::from(self.grid.experts)];
        for _ in 0..tokens {
            let chosen = self.random.choose_multiple(0..self.grid.experts, TOP_K);
            chosen.into_iter().for_each(|expert| counts[usize::from(expert)] += 1);
        }
        let used = (0..self.grid.experts).filter(|&e| counts[usize::from(e)] > 0);
        used.map(|e| (e, counts[usize::from(e)])).unzip()
    }

    /// One layer from its routing to its last computation.
    fn layer(&mut self, drawn: &Drawn) {
        let routed = Routed {
            layer: self.layer,
            tokens: drawn.tokens,
            experts: &drawn.experts,
            loads: &drawn.loads,
            weights: &[],
            scores: &drawn.scores,
        };
        let phase = if drawn.tokens == 1 { Phase::Decode } else { Phase::Prefill };
        let routing = Routing { routed, phase, predictions: &drawn.predictions };
        self.scheduler.on_routed(self.now, &routing);
        self.layer = (self.layer + 1) % self.grid.layers;
        let mut pending = [None; 64];
        loop {
            while let Some(action) = self.scheduler.poll_action(self.now) {
                if matches!(action, Action::Load { .. } | Action::Compute { .. }) {
                    let free = pending.iter_mut().find(|slot| slot.is_none());
                    *free.expect("few things at once") = Some(action);
                }
            }
            self.now += Nanos(100_000);
            let Some(done) = pending.iter_mut().find_map(Option::take) else { break };
            match done {
                Action::Load { tier, key, .. } => {
                    self.scheduler.on_loaded(self.now, tier, key, true).expect("no failures here");
                }
                Action::Compute { key, unit, .. } => {
                    self.scheduler.on_computed(self.now, key, unit);
                }
                Action::Exchange { .. } | Action::Release { .. } => {}
            }
        }
        black_box(self.scheduler.counts());
    }
}

fn measure(criterion: &mut Criterion, name: &str, tokens: u32, mut bench: Bench) {
    criterion.bench_function(name, |bencher| {
        let bench = std::cell::RefCell::new(&mut bench);
        bencher.iter_batched_ref(
            || bench.borrow_mut().draw(tokens),
            |drawn| bench.borrow_mut().layer(drawn),
            BatchSize::SmallInput,
        );
    });
}

fn layers(criterion: &mut Criterion) {
    let lru = || Box::new(Lru::new());
    let h1 = || Box::new(TimelineStrategy::default());
    let plain = || Bench::new(GRID, lru(), Box::new(OnDemand::default()), Box::new(NoPrefetch));
    let hybrid = || Bench::new(GRID, mrs(GRID), h1(), Box::new(NoPrefetch));
    let of = |grid| Bench::new(grid, mrs(grid), h1(), Box::new(NextLayer::default()));
    let full = || of(GRID);
    measure(criterion, "decode/on-demand+lru", 1, plain());
    measure(criterion, "decode/h1+mrs", 1, hybrid());
    measure(criterion, "decode/h1+mrs+h2", 1, full());
    measure(criterion, "batch-4/h1+mrs+h2", 4, full());
    measure(criterion, "batch-16/h1+mrs+h2", 16, full());
    measure(criterion, "prefill-512/on-demand+lru", 512, plain());
    measure(criterion, "prefill-512/h1+mrs", 512, hybrid());
    measure(criterion, "prefill-512/h1+mrs+h2", 512, full());
    measure(criterion, "large/decode/h1+mrs+h2", 1, of(LARGE));
    measure(criterion, "large/batch-64/h1+mrs+h2", 64, of(LARGE));
    for memories in [2, 4, 8, 16] {
        let name = format!("large/decode/{memories} memories");
        measure(criterion, &name, 1, Bench::of_memories(LARGE, memories));
    }
}

criterion_group!(benches, layers);
criterion_main!(benches);
