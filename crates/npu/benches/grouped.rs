//! Grouped against one graph per expert: the same 16 experts with C rows each, in groups
//! of G. Prints a CSV table of launches and time per chunk; the shape of a published
//! table (N4). Not a criterion bench: a number is one row of the table.
//!
//! `cargo bench -p motley-npu --bench grouped -- [--hidden 2048] [--inner 768]
//! [--repeat 20] [--launch-us 0]`

#![allow(clippy::disallowed_methods, reason = "it measures time")]

use motley_npu::graph::Recipe;
use motley_npu::{
    Activation, ExpertShape, ExpertWeights, Graph, GraphLimits, GraphSpec, GroupRows, Precision,
    Provider, ProviderConfig, Runtime,
};
use std::time::{Duration, Instant};

const EXPERTS: usize = 16;
const GROUPS: [usize; 4] = [1, 4, 8, 16];
const CAPACITIES: [usize; 4] = [16, 32, 64, 128];

struct Settings {
    shape: ExpertShape,
    repeat: usize,
    /// Added to each launch: what a device's driver costs and a CPU's does not.
    launch: Duration,
    config: ProviderConfig,
}

fn main() {
    let settings = settings();
    let runtime = match Runtime::load(None) {
        Ok(runtime) => runtime,
        Err(error) => return eprintln!("passing over: {error}"),
    };
    println!("provider,hidden,inner,group,capacity,launches,median_us,least_us,rows_per_ms");
    for capacity in CAPACITIES {
        for group in GROUPS {
            row(&runtime, &settings, group, capacity);
        }
    }
}

fn row(runtime: &Runtime, settings: &Settings, group: usize, capacity: usize) {
    let ExpertShape { hidden, inner } = settings.shape;
    let spec = GraphSpec {
        shape: settings.shape,
        experts: group,
        capacity,
        activation: Activation::SwiGlu,
        biased: false,
        precision: settings.config.precision,
    };
    let limits = GraphLimits { max_graph_bytes: 8_000_000_000 };
    let weights = weights(settings.shape);
    let recipe = Recipe { spec: &spec, config: &settings.config, limits: &limits };
    let compiled =
        (0..EXPERTS / group).map(|_| Graph::compile(runtime, recipe, &vec![&weights; group]));
    let mut graphs: Vec<Graph> = compiled.collect::<Result<_, _>>().expect("graphs compile");
    let mut rows = GroupRows::new(&spec);
    for expert in 0..group {
        while rows.push(expert, &vec![0.25; hidden]).is_some() {}
    }
    let mut output = Vec::new();
    let mut times: Vec<f64> = (0..=settings.repeat)
        .map(|_| {
            let start = Instant::now();
            for graph in &mut graphs {
                graph.run(&rows, &mut output).expect("a graph runs");
                wait(settings.launch);
            }
            start.elapsed().as_secs_f64() * 1e6
        })
        .skip(1)
        .collect();
    times.sort_by(f64::total_cmp);
    let (median, least) = (times[times.len() / 2], times[0]);
    let provider = settings.config.provider.name();
    let rate = (EXPERTS * capacity) as f64 / median * 1e3;
    let launches = graphs.len();
    println!(
        "{provider},{hidden},{inner},{group},{capacity},{launches},{median:.0},{least:.0},{rate:.1}"
    );
}

fn wait(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn weights(shape: ExpertShape) -> ExpertWeights {
    let count = shape.hidden * shape.inner;
    let made: Vec<f32> = (0..count).map(|n| (n % 97) as f32 / 970.0 - 0.05).collect();
    ExpertWeights { gate: made.clone(), up: made.clone(), down: made, biases: None }
}

fn settings() -> Settings {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, default: usize| {
        let at = arguments.iter().position(|argument| argument == name);
        let value = at.and_then(|at| arguments.get(at + 1)).map(|text| text.parse());
        value.map_or(default, |value| value.expect("a number"))
    };
    let provider = std::env::var("MOTLEY_NPU_PROVIDER").ok();
    let provider = provider.map_or(Provider::Cpu, |name| name.parse().expect("a provider"));
    Settings {
        shape: ExpertShape { hidden: number("--hidden", 2048), inner: number("--inner", 768) },
        repeat: number("--repeat", 20).max(1),
        launch: Duration::from_micros(number("--launch-us", 0) as u64),
        config: ProviderConfig {
            provider,
            device: std::env::var("MOTLEY_NPU_DEVICE").ok(),
            precision: Precision::F32,
            ..ProviderConfig::cpu(number("--threads", 2))
        },
    }
}
