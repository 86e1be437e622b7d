//! Hit rate over cache size for every policy, Belady's bound included, and the picture of it.

use motley_sched::Named;
use motley_sched::cache::belady::Belady;
use motley_sched::cache::popularity::Popularity;
use motley_sched::cache::{CachePolicy, ExpertCache, PolicyChoice};
use motley_trace::{SummaryBuilder, Trace, TraceError};
use serde::{Deserialize, Serialize};

use crate::holdout::Layout;
use crate::replay::replay;

/// Cache sizes of the curves, as shares of all experts.
pub const SHARES: [f64; 14] =
    [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

/// One policy's decode hit rates over cache sizes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    pub policy: String,
    /// (share of experts with slots, decode hit rate on the second half).
    pub points: Vec<(f64, f64)>,
}

/// Curves of all policies with their default parameters; popularity is profiled on the first half.
pub fn policy_curves(trace: &Trace, layout: Layout) -> Result<Vec<Curve>, TraceError> {
    let middle = trace.middle_pass();
    let mut profile = SummaryBuilder::new(&trace.header);
    trace.visits.iter().filter(|visit| visit.pass < middle).for_each(|v| profile.observe(v));
    let counts = profile.finish().popularity;
    let grid = trace.header.grid();

    let online = PolicyChoice::ALL.iter().map(|choice| {
        let build: Builder<'_> = Box::new(move || Some(choice.build(&trace.header)));
        (choice.name(), build)
    });
    let popularity: Builder<'_> = Box::new(|| Some(Box::new(Popularity::new(grid, &counts))));
    let belady = Belady::new(trace);
    let bound: Builder<'_> =
        Box::new(|| belady.clone().map(|policy| Box::new(policy) as Box<dyn CachePolicy>));
    let all = online.chain([("popularity", popularity), ("belady", bound)]);
    all.map(|(name, build)| curve(trace, layout, name, &build)).collect()
}

/// The curve of one policy.
pub fn policy_curve(
    trace: &Trace,
    layout: Layout,
    policy: PolicyChoice,
) -> Result<Curve, TraceError> {
    let build: Builder<'_> = Box::new(move || Some(policy.build(&trace.header)));
    curve(trace, layout, policy.name(), &build)
}

/// Each curve less that of LRU, from `from_share` on; LRU itself is the zero line and left out.
///
/// Below one token's working set a global pool under LRU hits nothing, so there the difference
/// says more about LRU than about the others.
pub fn gains_over_lru(curves: &[Curve], from_share: f64) -> Vec<Curve> {
    let Some(lru) = curves.iter().find(|curve| curve.policy == "lru") else { return Vec::new() };
    let gain = |curve: &Curve| {
        let pairs = curve.points.iter().zip(&lru.points);
        let gains = pairs.map(|(point, base)| (point.0, point.1 - base.1));
        let points = gains.filter(|point| point.0 >= from_share).collect();
        Curve { policy: curve.policy.clone(), points }
    };
    curves.iter().filter(|curve| curve.policy != "lru").map(gain).collect()
}

type Builder<'a> = Box<dyn Fn() -> Option<Box<dyn CachePolicy>> + 'a>;

fn curve(
    trace: &Trace,
    layout: Layout,
    name: &str,
    build: &Builder<'_>,
) -> Result<Curve, TraceError> {
    let grid = trace.header.grid();
    let mut points = Vec::with_capacity(SHARES.len());
    for share in SHARES {
        let Some(policy) = build() else { continue };
        let mut cache = ExpertCache::new(grid, layout.capacity(grid, share), policy);
        let counts = replay(&mut trace.source(), &mut cache, trace.middle_pass())?;
        points.push((share, counts.decode.rate()));
    }
    Ok(Curve { policy: name.to_owned(), points })
}
