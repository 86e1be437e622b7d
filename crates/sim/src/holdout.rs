//! The hold-out: parameters are chosen on the first half of a trace, hit rates reported on the
//! second, with the caches warmed by the first. The choice, too, is made warm: by the second
//! quarter after the first, since a cold cache favours whatever forgets least.

use motley_sched::cache::belady::Belady;
use motley_sched::cache::blend::BlendParams;
use motley_sched::cache::popularity::Popularity;
use motley_sched::cache::{CachePolicy, Capacity, ExpertCache, PolicyChoice};
use motley_trace::{ExpertGrid, Phase, SummaryBuilder, Trace};
use serde::{Deserialize, Serialize};

use crate::replay::{HitCount, replay_passes};

/// Whether layers have their own slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Layout {
    /// The same number of slots for every layer, as in HybriMoE.
    PerLayer,
    /// One pool for all layers.
    Global,
}

impl Layout {
    /// A share (0..=1) of all experts in this layout.
    pub fn capacity(self, grid: ExpertGrid, share: f64) -> Capacity {
        match self {
            Self::PerLayer => Capacity::per_layer_share(grid, share),
            Self::Global => Capacity::global_share(grid, share),
        }
    }
}

/// α of MRS tried on the first half.
const MRS_ALPHAS: [f64; 8] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5];
/// Half-lives of LFRU tried on the first half, in visits.
const LFRU_HALF_LIVES: [f64; 4] = [4.0, 16.0, 64.0, 256.0];
/// Learning rates of blend tried on the first half.
const BLEND_RATES: [f32; 3] = [0.01, 0.02, 0.05];

/// What replays of one trace at one size found, on its second half.
#[derive(Clone, Debug)]
pub struct HoldOut {
    /// Share of experts that have slots.
    pub share: f64,
    pub lru: HeldOutHits,
    pub lfu: HeldOutHits,
    /// LFRU with the half-life best on the first half.
    pub lfru: HeldOutHits,
    /// MRS with the α best on the first half.
    pub mrs: HeldOutHits,
    /// MRS with the α best on the second half: what no choice of α could exceed.
    pub mrs_in_hindsight: HeldOutHits,
    /// Popularity profiled on the first half.
    pub popularity: HeldOutHits,
    /// Blend with the rate best on the first half.
    pub blend: HeldOutHits,
    pub belady: HeldOutHits,
}

/// One policy's decode hits, pass by pass.
#[derive(Clone, Debug)]
pub struct HeldOutHits {
    /// The policy with its parameters.
    pub policy: String,
    /// Hits of each decode pass of the second half.
    pub passes: Vec<HitCount>,
}

impl HeldOutHits {
    /// Decode hit rate.
    pub fn rate(&self) -> f64 {
        let mut sum = HitCount::default();
        self.passes.iter().for_each(|pass| sum.add(*pass));
        sum.rate()
    }

    /// Standard error of the difference to `other` on the same passes, taking passes as
    /// independent, which they are not quite.
    pub fn paired_error(&self, other: &Self) -> f64 {
        let pairs = self.passes.iter().zip(&other.passes);
        let differences: Vec<f64> = pairs.map(|(a, b)| a.rate() - b.rate()).collect();
        let count = differences.len() as f64;
        if count < 2.0 {
            return 0.0;
        }
        let mean = differences.iter().sum::<f64>() / count;
        let squares: f64 = differences.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (count - 1.0) / count).sqrt()
    }
}

impl HoldOut {
    /// Share of the way from LRU to Belady that `policy` covers; negative when it is below LRU,
    /// `None` when there is no way to cover (less than a tenth of a point).
    pub fn gap_closed(&self, policy: &HeldOutHits) -> Option<f64> {
        let gap = self.belady.rate() - self.lru.rate();
        (gap >= 0.001).then(|| (policy.rate() - self.lru.rate()) / gap)
    }
}

/// Replays all policies on `trace` at one size.
pub fn hold_out(trace: &Trace, layout: Layout, share: f64) -> HoldOut {
    let middle = trace.middle_pass();
    let halves = Halves { trace, first: trace.before(middle), middle, layout, share };
    let mrs: Vec<PolicyChoice> =
        MRS_ALPHAS.into_iter().map(|alpha| PolicyChoice::Mrs { alpha }).collect();
    let lfru = LFRU_HALF_LIVES.map(|half_life_visits| PolicyChoice::Lfru { half_life_visits });
    let blend = BLEND_RATES
        .map(|learning_rate| PolicyChoice::Blend(BlendParams { learning_rate, succession: true }));
    let hindsight = mrs.iter().map(|&choice| halves.second(choice));
    HoldOut {
        share,
        lru: halves.second(PolicyChoice::Lru),
        lfu: halves.second(PolicyChoice::Lfu),
        lfru: halves.second(halves.best(&lfru)),
        mrs: halves.second(halves.best(&mrs)),
        mrs_in_hindsight: hindsight
            .max_by(|a, b| a.rate().total_cmp(&b.rate()))
            .unwrap_or_else(|| halves.second(PolicyChoice::Lru)),
        popularity: halves.popularity(),
        blend: halves.second(halves.best(&blend)),
        belady: halves.belady(),
    }
}

/// One trace, cut in the middle of its decode passes.
struct Halves<'a> {
    trace: &'a Trace,
    first: Trace,
    middle: u64,
    layout: Layout,
    share: f64,
}

impl Halves<'_> {
    /// The choice with the best decode hit rate on the second quarter; the earlier among equals.
    fn best(&self, choices: &[PolicyChoice]) -> PolicyChoice {
        let quarter = self.first.middle_pass();
        let rate = |choice: &PolicyChoice| {
            let policy = choice.build(&self.first.header);
            self.measure(&self.first, policy, String::new(), quarter).rate()
        };
        let rated = choices.iter().rev().map(|choice| (rate(choice), *choice));
        let best = rated.max_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or(PolicyChoice::Lru, |(_, choice)| choice)
    }

    fn second(&self, choice: PolicyChoice) -> HeldOutHits {
        let policy = choice.build(&self.trace.header);
        self.measure(self.trace, policy, choice.to_string(), self.middle)
    }

    fn popularity(&self) -> HeldOutHits {
        let mut profile = SummaryBuilder::new(&self.first.header);
        self.first.visits.iter().for_each(|visit| profile.observe(visit));
        let counts = profile.finish().popularity;
        let policy = Box::new(Popularity::new(self.trace.header.grid(), &counts));
        self.measure(self.trace, policy, "popularity".into(), self.middle)
    }

    fn belady(&self) -> HeldOutHits {
        let Some(policy) = Belady::new(self.trace) else {
            return HeldOutHits { policy: "belady (trace too long)".into(), passes: Vec::new() };
        };
        self.measure(self.trace, Box::new(policy), "belady".into(), self.middle)
    }

    fn measure(
        &self,
        trace: &Trace,
        policy: Box<dyn CachePolicy>,
        name: String,
        count_from: u64,
    ) -> HeldOutHits {
        let grid = trace.header.grid();
        let mut cache = ExpertCache::new(grid, self.layout.capacity(grid, self.share), policy);
        let mut passes = Vec::new();
        let mut last = None;
        replay_passes(trace, &mut cache, |visit, hits| {
            if visit.phase != Phase::Decode || visit.pass < count_from {
                return;
            }
            if last.replace(visit.pass) != Some(visit.pass) {
                passes.push(HitCount::default());
            }
            if let Some(pass) = passes.last_mut() {
                pass.add(hits);
            }
        });
        HeldOutHits { policy: name, passes }
    }
}
