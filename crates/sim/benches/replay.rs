//! Replay speed: expert accesses per second through a cache, per policy, and lines per second of
//! the trace reader. Shape: 48 layers × 128 experts, k = 8, a quarter cached.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use motley_sched::Named;
use motley_sched::cache::{ExpertCache, PolicyChoice};
use motley_sim::fit::synthesize;
use motley_sim::holdout::Layout;
use motley_sim::replay::replay;
use motley_sim::synth::SynthParams;
use motley_trace::{Trace, TraceReader, TraceWriter, Visit, VisitSource};

fn trace() -> Trace {
    let params = SynthParams {
        model: "bench".into(),
        layers: 48,
        experts: 128,
        k: 8,
        prompt_tokens: 0,
        decode_tokens: 1000,
        zipf_skew: 0.7,
        repeat: 0.2,
        recall: 0.6,
        layer_correlation: 0.9,
        weight_tilt: 0.3,
    };
    synthesize(&params, 1).expect("valid")
}

fn replays(criterion: &mut Criterion) {
    let trace = trace();
    let grid = trace.header.grid();
    let mut group = criterion.benchmark_group("replay_accesses");
    group.throughput(Throughput::Elements((trace.visits.len() * 8) as u64));
    group.sample_size(10);
    for choice in PolicyChoice::ALL {
        group.bench_function(choice.name(), |bencher| {
            bencher.iter(|| {
                let capacity = Layout::PerLayer.capacity(grid, 0.25);
                let mut cache = ExpertCache::new(grid, capacity, choice.build(&trace.header));
                replay(&mut trace.source(), &mut cache, 0)
            });
        });
    }
    group.finish();
}

fn reading(criterion: &mut Criterion) {
    let trace = trace();
    let mut writer = TraceWriter::new(Vec::new(), trace.header.clone()).expect("valid");
    trace.visits.iter().for_each(|visit| writer.write_visit(visit).expect("valid"));
    let text = writer.finish().expect("memory");
    let mut group = criterion.benchmark_group("read_trace");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.sample_size(10);
    group.bench_function("lines", |bencher| {
        bencher.iter(|| {
            let mut reader = TraceReader::new(text.as_slice()).expect("own header");
            let mut visit = Visit::default();
            let mut lines = 0_u64;
            while reader.read_visit(&mut visit).expect("own lines") {
                lines += 1;
            }
            lines
        });
    });
    group.finish();
}

criterion_group!(benches, replays, reading);
criterion_main!(benches);
