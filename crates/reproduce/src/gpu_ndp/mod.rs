//! One GPU with near-data units (G6): the published speed-ups beside those of our scheduler on the
//! same machine description, models and sequence lengths.
//!
//! Modules in reading order:
//! - [`models`]: the models of Table II.
//! - [`setup`]: how each compared system is put together.
//! - [`mod@assumed`]: what the source leaves open, in words.

use std::fmt::Write as _;

use crate::bars::Bars;
use crate::document::{Document, Figure, Picture, assumed_table, figure_table, sweep_table};
use crate::error::ReproduceError;

pub mod assumed;
pub mod models;
pub mod setup;

pub use assumed::{ASSUMED, Assumptions, assumed};
use models::MODELS;
use setup::{Run, System, UNITS, machine, routing};

/// Speed-ups of one configuration (model and number of units).
#[derive(Debug, Clone)]
struct Ratios {
    label: String,
    /// Over MoNDE, experts only: TP, TP+LB in prefill; TP, TP+LB, TP+PRE, all in decode.
    experts: [f64; 6],
    /// Of everything together over MoNDE, Fiddler and on-demand, end to end.
    end_to_end: [f64; 3],
}

fn all_ratios(open: Assumptions) -> Result<Vec<Ratios>, ReproduceError> {
    let mut all = Vec::new();
    for model in &MODELS {
        let trace = routing(model, open.skew, SEED)?;
        for units in UNITS {
            let machine = machine(units)?;
            let run = Run { machine: &machine, model, trace: &trace, open, dense: false };
            if run.fits(units) {
                all.push(run.ratios(units)?);
            }
        }
    }
    Ok(all)
}

const SEED: u64 = 1;

impl Run<'_> {
    fn ratios(&self, units: u16) -> Result<Ratios, ReproduceError> {
        let base = self.outcome(System::Monde)?;
        let prefill = |system| -> Result<f64, ReproduceError> {
            Ok(base.prefill.time.as_s() / self.outcome(system)?.prefill.time.as_s())
        };
        let decode = |system| -> Result<f64, ReproduceError> {
            Ok(base.decode.time.as_s() / self.outcome(system)?.decode.time.as_s())
        };
        let experts = [
            prefill(System::Tp)?,
            prefill(System::TpLb)?,
            decode(System::Tp)?,
            decode(System::TpLb)?,
            decode(System::TpPre)?,
            decode(System::All)?,
        ];
        let whole = Run { dense: true, ..*self };
        let ours = whole.outcome(System::All)?.wall.as_s();
        let against = |system| -> Result<f64, ReproduceError> {
            Ok(whole.outcome(system)?.wall.as_s() / ours)
        };
        let end_to_end =
            [against(System::Monde)?, against(System::Fiddler)?, against(System::OnDemand)?];
        Ok(Ratios { label: format!("{} x{units}", self.model.name), experts, end_to_end })
    }
}

/// The published figures with ours for one set of assumptions.
pub fn figures(open: Assumptions) -> Result<Vec<Figure>, ReproduceError> {
    Ok(compare(&all_ratios(open)?))
}

fn compare(all: &[Ratios]) -> Vec<Figure> {
    let mean = |of: &dyn Fn(&Ratios) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    let most = |of: &dyn Fn(&Ratios) -> f64| all.iter().map(of).fold(0.0, f64::max);
    let of_qwen: Vec<&Ratios> = all.iter().filter(|r| r.label.starts_with("Qwen3")).collect();
    let qwen = |at: usize| {
        of_qwen.iter().map(|ratios| ratios.experts[at]).sum::<f64>() / of_qwen.len() as f64
    };
    let figure = |what, paper, ours| Figure { what, paper, ours };
    vec![
        figure("prefill TP", 1.26, mean(&|r| r.experts[0])),
        figure("prefill TP+LB", 1.46, mean(&|r| r.experts[1])),
        figure("decode TP", 1.99, mean(&|r| r.experts[2])),
        figure("decode TP+LB", 2.19, mean(&|r| r.experts[3])),
        figure("decode TP+PRE", 2.23, mean(&|r| r.experts[4])),
        figure("decode all", 2.41, mean(&|r| r.experts[5])),
        figure("Qwen3 prefill", 1.36, qwen(1)),
        figure("Qwen3 decode", 1.69, qwen(5)),
        figure("end to end / MoNDE, average (abstract)", 2.41, mean(&|r| r.end_to_end[0])),
        figure("end to end / MoNDE, most", 2.56, most(&|r| r.end_to_end[0])),
        figure("end to end / Fiddler, most", 4.05, most(&|r| r.end_to_end[1])),
        figure("end to end / on-demand, most", 5.49, most(&|r| r.end_to_end[2])),
    ]
}

/// The settings swept, one assumption at a time.
fn settings() -> Vec<(String, Assumptions)> {
    let mut all = vec![("as assumed".to_string(), ASSUMED)];
    let mut add = |name: &str, value: f64, open| all.push((format!("{name} {value}"), open));
    for value in [0.4, 0.8, 1.0] {
        let open = Assumptions { near_efficiency: value, ..ASSUMED };
        add("near-data efficiency", value, open);
    }
    for value in [2.0, 16.0, 1024.0] {
        add("tokens per weight pass", value, Assumptions { near_reuse: value, ..ASSUMED });
    }
    for value in [0.7, 1.0] {
        add("link efficiency", value, Assumptions { link_efficiency: value, ..ASSUMED });
    }
    for value in [1.0, 10.0] {
        add("activation us", value, Assumptions { activation_us: value, ..ASSUMED });
    }
    for value in [0.0, 0.5, 1.5] {
        add("MoNDE alpha", value, Assumptions { monde_alpha: value, ..ASSUMED });
    }
    for value in [0.2, 0.45] {
        add("popularity skew", value, Assumptions { skew: value, ..ASSUMED });
    }
    all
}

/// Our speed-ups over MoNDE in every configuration.
fn configuration_table(all: &[Ratios]) -> String {
    let mut text = String::from(
        "| configuration | prefill TP | prefill TP+LB | decode TP | decode TP+LB | decode TP+PRE | \
         decode all | end to end |\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for Ratios { label, experts, end_to_end } in all {
        let _ = write!(text, "| {label} |");
        for ratio in experts.iter().chain(&end_to_end[..1]) {
            let _ = write!(text, " {ratio:.2} |");
        }
        text.push('\n');
    }
    text
}

/// The reproduction with its sweeps and pictures.
pub fn document() -> Result<Document, ReproduceError> {
    let base = all_ratios(ASSUMED)?;
    let figures = compare(&base);
    let mut rows = Vec::new();
    for (name, open) in settings() {
        let swept = self::figures(open)?;
        rows.push((name, swept.iter().map(|figure| figure.ours).collect()));
    }
    let per_configuration = Bars {
        title: "Decode, experts only: speed-up over MoNDE (ours)",
        y_label: "times faster than MoNDE",
        series: &["TP", "TP+LB", "TP+PRE", "all"],
        groups: base.iter().map(|r| (r.label.clone(), r.experts[2..].to_vec())).collect(),
    };
    let averages = Bars {
        title: "Averages over all configurations that fit",
        y_label: "times faster than MoNDE",
        series: &["paper", "ours"],
        groups: figures[..6].iter().map(|f| (f.what.into(), vec![f.paper, f.ours])).collect(),
    };
    let pictures = vec![
        Picture { name: "gpu-ndp-averages.svg".into(), svg: averages.to_svg()? },
        Picture { name: "gpu-ndp-decode.svg".into(), svg: per_configuration.to_svg()? },
    ];
    let mut markdown = TEXT.replace("{figures}", &figure_table(&figures));
    markdown = markdown.replace("{configurations}", &configuration_table(&base));
    markdown = markdown.replace("{assumed}", &assumed_table(&assumed()));
    markdown = markdown.replace("{sweep}", &sweep_table(&figures, &rows));
    Ok(Document { name: NAME, markdown, pictures, figures })
}

/// Name of the document.
pub const NAME: &str = "gpu-ndp";
const TEXT: &str = include_str!("text.md");
