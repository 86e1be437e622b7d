//! What one layer's visit costs the cache, per policy: ranking, k lookups and leases, admission of
//! the misses, release. Shape: 94 layers × 256 experts, k = 8, a quarter cached.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use motley_sched::Named;
use motley_sched::cache::{Capacity, ExpertCache, PolicyChoice, Routed};
use motley_trace::TraceHeader;
use motley_trace::record::FORMAT_VERSION;

const LAYERS: u16 = 94;
const EXPERTS: u16 = 256;
const K: usize = 8;
/// Visits per measured batch: a hundred tokens.
const VISITS: usize = 100 * LAYERS as usize;

/// Skewed pseudo-random choices without repetition, the same every time.
fn choices() -> Vec<[u16; K]> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = (state >> 40) as f64 / (1_u64 << 24) as f64;
        (uniform * uniform * f64::from(EXPERTS)) as u16
    };
    let mut row = || {
        let mut row = [u16::MAX; K];
        for slot in 0..K {
            let mut expert = next();
            while row[..slot].contains(&expert) {
                expert = (expert + 1) % EXPERTS;
            }
            row[slot] = expert;
        }
        row
    };
    (0..VISITS).map(|_| row()).collect()
}

fn visit(cache: &mut ExpertCache, layer: u16, experts: &[u16]) {
    let routed = Routed { layer, tokens: 1, experts, ..Routed::default() };
    cache.on_visit(&routed);
    let mut leases = Vec::with_capacity(K);
    leases.extend(routed.keys().filter_map(|key| cache.lease(key)));
    for key in routed.keys() {
        leases.extend(cache.admit(key).ok().map(|admitted| admitted.lease));
    }
    leases.into_iter().for_each(|lease| cache.release(lease));
}

fn visits(criterion: &mut Criterion) {
    let header = TraceHeader {
        version: FORMAT_VERSION,
        model: "bench".into(),
        layers: LAYERS,
        experts: EXPERTS,
        k: K as u16,
    };
    let rows = choices();
    let mut group = criterion.benchmark_group("visit_94x256_k8");
    group.throughput(Throughput::Elements(VISITS as u64));
    group.sample_size(10);
    for choice in PolicyChoice::ALL {
        group.bench_function(choice.name(), |bencher| {
            let fresh = || {
                let capacity = Capacity::global_share(header.grid(), 0.25);
                ExpertCache::new(header.grid(), capacity, choice.build(&header))
            };
            let pass = |mut cache: ExpertCache| {
                for (index, row) in rows.iter().enumerate() {
                    visit(&mut cache, (index % usize::from(LAYERS)) as u16, row);
                }
                cache
            };
            bencher.iter_batched(|| pass(fresh()), pass, BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, visits);
criterion_main!(benches);
