//! Hybrid CPU and GPU (H5): the published speed-ups beside those of our scheduler on the same
//! machine description, models, cache ratios and prompt lengths.
//!
//! Modules in reading order:
//! - [`models`]: the models of Table II.
//! - [`setup`]: how each compared system is put together.
//! - [`routing`]: synthetic routing with the published LRU hit rate.
//! - [`mod@assumed`]: what the source leaves open, in words.

use std::fmt::Write as _;

use motley_cost::Nanos;
use motley_sched::cache::mrs::{Mrs, MrsParams};
use motley_sim::gantt::{Window, gantt};
use motley_sim::spans::RowNames;

use crate::bars::Bars;
use crate::document::{Document, Figure, Picture, assumed_table, figure_table, sweep_table};
use crate::error::ReproduceError;

pub mod assumed;
pub mod models;
pub mod routing;
pub mod setup;

pub use assumed::{ASSUMED, Assumptions, assumed};
use models::{MODELS, Model};
pub use routing::Routing;
use setup::{PROMPTS, RATIOS, Run, System};

/// The reproduction with its sweeps and pictures.
pub fn document() -> Result<Document, ReproduceError> {
    let figures = figures(ASSUMED)?;
    let mut rows = Vec::new();
    for (name, open) in settings() {
        let swept = self::figures(open)?;
        rows.push((name, swept.iter().map(|figure| figure.ours).collect()));
    }
    let pictures = vec![
        Picture { name: "hybrimoe-decode.svg".into(), svg: decode_bars()?.to_svg()? },
        Picture { name: "hybrimoe-prefill.svg".into(), svg: prefill_bars()?.to_svg()? },
        Picture { name: "hybrimoe-layer-baseline.svg".into(), svg: layer(System::KTransformers)? },
        Picture { name: "hybrimoe-layer.svg".into(), svg: layer(System::HybriMoe)? },
    ];
    let mut markdown = TEXT.replace("{figures}", &figure_table(&figures));
    markdown = markdown.replace("{hits}", &figure_table(&hit_figures()?));
    markdown = markdown.replace("{baseline}", &baseline_table()?);
    markdown = markdown.replace("{assumed}", &assumed_table(&assumed()));
    markdown = markdown.replace("{sweep}", &sweep_table(&figures, &rows));
    Ok(Document { name: NAME, markdown, pictures, figures })
}

/// Name of the document.
pub const NAME: &str = "hybrimoe";
/// The source's machine, among the ready ones.
const MACHINE: &str = "a6000-xeon-5220r";
const TEXT: &str = include_str!("text.md");

/// The published speeds with ours for one set of assumptions.
pub fn figures(open: Assumptions) -> Result<Vec<Figure>, ReproduceError> {
    let machine = motley_machine::find(MACHINE)?;
    let (mut decode, mut prefill) = (Mean::default(), Mean::default());
    let mut ablation = Vec::new();
    for model in &MODELS {
        let routing = Routing::for_model(model, open.skew)?;
        for ratio in RATIOS {
            let run = Run { machine: &machine, model, routing: &routing, ratio, open };
            let base = run.decode_s(System::KTransformers)?;
            decode.add(base / run.decode_s(System::HybriMoe)?);
            for tokens in PROMPTS {
                let base = run.prefill_s(System::KTransformers, tokens)?;
                prefill.add(base / run.prefill_s(System::HybriMoe, tokens)?);
            }
            if model.name == "Qwen2" && ratio == RATIOS[0] {
                ablation = ablation_figures(&run)?;
            }
        }
    }
    let figure = |what, paper, ours| Figure { what, paper, ours };
    let mut figures = vec![
        figure("decode, average", 1.70, decode.value()),
        figure("prefill, average", 1.33, prefill.value()),
    ];
    figures.extend(ablation);
    Ok(figures)
}

/// Table III: Qwen2 with a quarter of the experts cached. Its prompt length is not stated; ours
/// is the mean over the four lengths.
fn ablation_figures(run: &Run<'_>) -> Result<Vec<Figure>, ReproduceError> {
    let base = run.decode_s(System::KTransformers)?;
    let decode = |system| -> Result<f64, ReproduceError> { Ok(base / run.decode_s(system)?) };
    let prefill = |system| -> Result<f64, ReproduceError> {
        let mut mean = Mean::default();
        for tokens in PROMPTS {
            let base = run.prefill_s(System::KTransformers, tokens)?;
            mean.add(base / run.prefill_s(system, tokens)?);
        }
        Ok(mean.value())
    };
    let figure = |what, paper, ours| Figure { what, paper, ours };
    Ok(vec![
        figure("decode + scheduling", 1.46, decode(System::Scheduling)?),
        figure("decode + prefetching", 1.15, decode(System::Prefetching)?),
        figure("decode + caching", 1.38, decode(System::Caching)?),
        figure("decode, all", 1.86, decode(System::HybriMoe)?),
        figure("prefill + scheduling", 1.26, prefill(System::Scheduling)?),
        figure("prefill + prefetching", 1.06, prefill(System::Prefetching)?),
        figure("prefill, all", 1.31, prefill(System::HybriMoe)?),
        figure("decode baseline, s per token", 0.21, base),
        figure(
            "prefill baseline, s (128 tokens here)",
            1.47,
            run.prefill_s(System::KTransformers, 128)?,
        ),
    ])
}

/// Our baseline of Table III for each prompt length.
fn baseline_table() -> Result<String, ReproduceError> {
    let machine = motley_machine::find(MACHINE)?;
    let model = &MODELS[1];
    let routing = Routing::for_model(model, ASSUMED.skew)?;
    let run = Run { machine: &machine, model, routing: &routing, ratio: RATIOS[0], open: ASSUMED };
    let mut text =
        String::from("| prompt | baseline, s | all, s | speed-up |\n|---:|---:|---:|---:|\n");
    for tokens in PROMPTS {
        let base = run.prefill_s(System::KTransformers, tokens)?;
        let all = run.prefill_s(System::HybriMoe, tokens)?;
        let _ = writeln!(text, "| {tokens} | {base:.2} | {all:.2} | {:.2} |", base / all);
    }
    Ok(text)
}

/// Figure 9 by replay: hit rates of MRS, in percent. LRU at 25 % is the anchor, not a result.
fn hit_figures() -> Result<Vec<Figure>, ReproduceError> {
    let published: [(&str, &'static str, f64, f64); 4] = [
        ("Mixtral", "MRS, Mixtral, 25 % cached", 0.25, 36.2),
        ("DeepSeek", "MRS, DeepSeek, 25 % cached", 0.25, 52.7),
        ("Qwen2", "MRS, Qwen2, 25 % cached", 0.25, 52.8),
        ("Mixtral", "MRS, Mixtral, 75 % cached", 0.75, 83.3),
    ];
    let mut figures = Vec::new();
    for (name, what, share, paper) in published {
        for model in MODELS.iter().filter(|model| model.name == name) {
            let routing = Routing::for_model(model, ASSUMED.skew)?;
            let ours = 100.0 * routing.hits(Box::new(mrs(model, &routing)), share)?;
            figures.push(Figure { what, paper, ours });
        }
    }
    Ok(figures)
}

fn mrs(model: &Model, routing: &Routing) -> Mrs {
    let params = MrsParams { alpha: ASSUMED.mrs_alpha, top: 2 * model.top_k };
    Mrs::new(routing.decode.header.grid(), params)
}

#[derive(Debug, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1.0;
    }

    fn value(&self) -> f64 {
        self.sum / self.count.max(1.0)
    }
}

/// The settings swept, one assumption at a time.
fn settings() -> Vec<(String, Assumptions)> {
    let mut all = vec![("as assumed".to_string(), ASSUMED)];
    let mut add = |name: &str, value: f64, open| all.push((format!("{name} {value}"), open));
    for value in [8.0, 20.0, 40.0] {
        add("CPU GB/s", value, Assumptions { cpu_gb_per_s: value, ..ASSUMED });
    }
    for value in [150.0, 700.0] {
        add("CPU GFLOP/s", value, Assumptions { cpu_gflop_per_s: value, ..ASSUMED });
    }
    for value in [6.0, 9.0, 15.0] {
        add("link GB/s", value, Assumptions { link_gb_per_s: value, ..ASSUMED });
    }
    for value in [100.0, 1000.0] {
        add("dense us per layer", value, Assumptions { dense_layer_us: value, ..ASSUMED });
    }
    for value in [0.5, 0.95] {
        add("prediction accuracy", value, Assumptions { prediction_accuracy: value, ..ASSUMED });
    }
    for value in [0.0, 0.4] {
        add("popularity skew", value, Assumptions { skew: value, ..ASSUMED });
    }
    for value in [0.2, 0.8] {
        add("MRS alpha", value, Assumptions { mrs_alpha: value, ..ASSUMED });
    }
    all
}

const COMPARED: [System; 4] =
    [System::LlamaCpp, System::AdapMoe, System::KTransformers, System::HybriMoe];
const NAMES: [&str; 4] = ["llama.cpp", "AdapMoE", "kTransformers", "HybriMoE"];

fn decode_bars() -> Result<Bars<'static>, ReproduceError> {
    let groups = grouped(|run, system| run.decode_s(system))?;
    let title = "Decode speed by model and cached part (ours, kTransformers = 1)";
    Ok(Bars { title, y_label: "relative speed", series: &NAMES, groups })
}

fn prefill_bars() -> Result<Bars<'static>, ReproduceError> {
    let groups = grouped(|run, system| run.prefill_s(system, 128))?;
    let title = "Prefill speed at 128 tokens by model and cached part (ours, kTransformers = 1)";
    Ok(Bars { title, y_label: "relative speed", series: &NAMES, groups })
}

/// One layer of Qwen2 in decode with a quarter of the experts cached, as a Gantt chart.
fn layer(system: System) -> Result<String, ReproduceError> {
    let machine = motley_machine::find(MACHINE)?;
    let model = &MODELS[1];
    let routing = Routing::for_model(model, ASSUMED.skew)?;
    let run = Run { machine: &machine, model, routing: &routing, ratio: 0.25, open: ASSUMED };
    let spans = run.decode_spans(system)?;
    let (from, to) = spans.window_of(12, 60).unwrap_or((Nanos::ZERO, Nanos::NEVER));
    let title = match system {
        System::HybriMoe => "One layer of Qwen2, 25 % cached: timelines, prefetch, cache",
        _ => "The same layer under the kTransformers policy",
    };
    let rows = RowNames { fast: "GPU", link: "PCIe", home: "CPU", ..RowNames::default() };
    Ok(gantt(&spans, &Window { title, from, to, rows })?)
}

type Group = (String, Vec<f64>);

fn grouped(
    seconds: impl Fn(&Run<'_>, System) -> Result<f64, ReproduceError>,
) -> Result<Vec<Group>, ReproduceError> {
    let machine = motley_machine::find(MACHINE)?;
    let mut groups = Vec::new();
    for model in &MODELS {
        let routing = Routing::for_model(model, ASSUMED.skew)?;
        for ratio in RATIOS {
            let run = Run { machine: &machine, model, routing: &routing, ratio, open: ASSUMED };
            let base = seconds(&run, System::KTransformers)?;
            let speeds: Result<Vec<f64>, ReproduceError> =
                COMPARED.iter().map(|&system| Ok(base / seconds(&run, system)?)).collect();
            groups.push((format!("{} {:.0} %", model.name, 100.0 * ratio), speeds?));
        }
    }
    Ok(groups)
}
