//! Grouped against one graph per expert: the same 16 experts with C rows each, in groups
//! of G. Prints a table of launches, time per chunk and per row; the shape of a published
//! table (N4). Not a criterion bench: a number is one row of the table. All groupings of
//! a capacity are measured in turn, so that what disturbs one disturbs all.
//!
//! `cargo bench -p motley-npu --bench grouped -- [--hidden 2048] [--inner 768]
//! [--repeat 20] [--launch-us 0] [--threads 2]`

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
    let ExpertShape { hidden, inner } = settings.shape;
    println!(
        "{}, {EXPERTS} experts of {hidden} x {inner}, {} threads, {} us added to a launch, {} runs",
        settings.config.provider.name(),
        settings.config.threads,
        settings.launch.as_micros(),
        settings.repeat
    );
    println!(
        "\n| rows C | experts G | launches | ms a chunk | quartiles | us a row | over G = 1 |"
    );
    println!("|---:|---:|---:|---:|---|---:|---:|");
    for capacity in CAPACITIES {
        let mut subjects: Vec<Subject> = GROUPS
            .iter()
            .map(|&group| Subject::new(&runtime, &settings, group, capacity))
            .collect();
        for run in 0..=settings.repeat {
            for subject in &mut subjects {
                let took_us = subject.run(settings.launch);
                // The first run warms up.
                if run > 0 {
                    subject.times_us.push(took_us);
                }
            }
        }
        let alone_us = subjects[0].quartiles()[1];
        subjects.iter().for_each(|subject| subject.print(alone_us));
    }
}

/// All experts in groups of one size.
struct Subject {
    spec: GraphSpec,
    graphs: Vec<Graph>,
    rows: GroupRows,
    output: Vec<f32>,
    times_us: Vec<f64>,
}

impl Subject {
    fn new(runtime: &Runtime, settings: &Settings, group: usize, capacity: usize) -> Self {
        let spec = spec(settings, group, capacity);
        let limits = GraphLimits { max_graph_bytes: 8_000_000_000 };
        let weights = weights(settings.shape);
        let recipe = Recipe { spec: &spec, config: &settings.config, limits: &limits };
        let compiled =
            (0..EXPERTS / group).map(|_| Graph::compile(runtime, recipe, &vec![&weights; group]));
        let graphs = compiled.collect::<Result<_, _>>().expect("graphs compile");
        let mut rows = GroupRows::new(&spec);
        for expert in 0..group {
            while rows.push(expert, &vec![0.25; settings.shape.hidden]).is_some() {}
        }
        Self { spec, graphs, rows, output: Vec::new(), times_us: Vec::new() }
    }

    /// One chunk: every expert, every row.
    fn run(&mut self, launch: Duration) -> f64 {
        let start = Instant::now();
        for graph in &mut self.graphs {
            graph.run(&self.rows, &mut self.output).expect("a graph runs");
            wait(launch);
        }
        start.elapsed().as_secs_f64() * 1e6
    }

    fn quartiles(&self) -> [f64; 3] {
        let mut times = self.times_us.clone();
        times.sort_by(f64::total_cmp);
        [1, 2, 3].map(|quarter| times[quarter * (times.len() - 1) / 4])
    }

    fn print(&self, alone_us: f64) {
        let [low, median, high] = self.quartiles();
        let (group, capacity) = (self.spec.experts, self.spec.capacity);
        println!(
            "| {capacity} | {group} | {} | {:.2} | {:.2} to {:.2} | {:.1} | {:.2} |",
            self.graphs.len(),
            median / 1e3,
            low / 1e3,
            high / 1e3,
            median / (EXPERTS * capacity) as f64,
            alone_us / median
        );
    }
}

fn spec(settings: &Settings, group: usize, capacity: usize) -> GraphSpec {
    GraphSpec {
        shape: settings.shape,
        experts: group,
        capacity,
        activation: Activation::SwiGlu,
        biased: false,
        precision: settings.config.precision,
    }
}

fn wait(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn weights(shape: ExpertShape) -> ExpertWeights {
    let count = shape.hidden * shape.inner;
    let synthetic: Vec<f32> = (0..count).map(|n| (n % 97) as f32 / 970.0 - 0.05).collect();
    ExpertWeights {
        gate: synthetic.clone().into(),
        up: synthetic.clone().into(),
        down: synthetic.into(),
        biases: None,
    }
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
