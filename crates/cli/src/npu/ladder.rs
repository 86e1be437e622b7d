//! `motley reproduce npumoe --model …`: the ablation ladder (N9) run here, on real static
//! graphs of a real model. What a launch costs on a device is added to each, because the
//! stand-in's launches cost next to nothing; energy is by model. Times are this machine's.

use super::LadderOutcome;
use crate::args::{Global, LoadArgs};
use crate::commands::bench::{Spread, load_average};
use crate::load::{Loaded, load};
use crate::page::{align_right, table};
use crate::system::process_cpu;
use anyhow::{Context, Result, ensure};
use clap::Args;
use comfy_table::presets;
use motley_cost::ComputeCost;
use motley_engine::blocks::npu::{
    GroupCosts, LayerFigures, NpuChoice, NpuOptions, NpuOverflow, ProviderConfig, profile_of,
};
use motley_engine::eval::tasks::read_text;
use motley_engine::{Engine, Runtime, Seam, SessionOptions};
use motley_model::KvType;
use motley_plan::Outputs;
use motley_profile::Profile;
use motley_reproduce::npumoe::ASSUMED;
use motley_reproduce::npumoe::ladder::Step;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Tokens of the calibration text that are read.
const CALIBRATION_TOKENS: usize = 8192;
/// Wide enough that no cell of a Markdown table is wrapped.
const COLUMNS: u16 = 400;
/// Published gains over the base in time and energy: the text to Figure 17.
const PAPER: [(Step, &str); 4] = [
    (Step::Base, "1"),
    (Step::Tiers, "energy 2.85"),
    (Step::Groups, "time 2.65, energy 3.74"),
    (Step::All, "time 2.89"),
];

/// What the measured ladder takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "npumoe measured here")]
pub(crate) struct LadderArgs {
    /// Run npumoe's ladder on this model too, on real static graphs (ORT_DYLIB_PATH names the
    /// runtime)
    #[arg(long, value_name = "FILE", requires_all = ["text", "calibrate"])]
    model: Option<PathBuf>,
    /// Text the prompt is cut from
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
    /// Text the capacities come from
    #[arg(long, value_name = "FILE")]
    calibrate: Option<PathBuf>,
    /// Tokens of the prompt
    #[arg(long, value_name = "TOKENS", default_value_t = 1024)]
    prompt: usize,
    /// What a launch costs on the device that is stood for
    #[arg(long, value_name = "US", default_value_t = 1000)]
    launch_us: u64,
    /// Runs of each step; the median counts
    #[arg(long, value_name = "N", default_value_t = 5)]
    runs: u32,
    #[command(flatten)]
    load: LoadArgs,
}

/// Measures, when a model is given.
pub(crate) fn ladder(global: &Global, args: &LadderArgs) -> Result<Option<LadderOutcome>> {
    let (Some(model), Some(text), Some(calibrate)) = (&args.model, &args.text, &args.calibrate)
    else {
        return Ok(None);
    };
    let runtime = Runtime::start(Seam::Registered)?;
    let Loaded { engine, decision } = load(runtime, global, model, &args.load, Outputs::All)?;
    let mut prompt = engine.tokenize_plain(&read_text(text)?)?;
    ensure!(prompt.len() >= args.prompt, "{}: too short for --prompt", text.display());
    prompt.truncate(args.prompt);
    let chunk = decision.session.chunk_tokens;
    let profile = profile_of(&engine, &read_text(calibrate)?, CALIBRATION_TOKENS, chunk)?;
    let kv = decision.session.kv;
    let mut walk = Walk { engine, args, prompt, profile, chunk_tokens: chunk, kv };
    let report = LadderReport {
        model: model.display().to_string(),
        prompt_tokens: args.prompt,
        chunk_tokens: chunk,
        launch_us: args.launch_us,
        load: load_average(),
        rungs: walk.all()?,
    };
    Ok(Some(LadderOutcome { json: serde_json::to_value(&report)?, page: report.page() }))
}

/// One step, per prompt.
#[derive(Debug, Clone, Serialize)]
struct Rung {
    name: &'static str,
    /// Time to the first token.
    ttft_s: Spread,
    /// CPU time without what the stand-in for the device used.
    cpu_s: f64,
    /// Time the device was busy, launches included.
    device_s: f64,
    launches: u64,
    padding_rate: f64,
    device_share: f64,
    /// By model: draws of the source's machine over these times.
    joules: f64,
    paper: &'static str,
}

/// The model and everything a step is run with.
struct Walk<'a> {
    engine: Engine,
    args: &'a LadderArgs,
    prompt: Vec<i32>,
    profile: Profile,
    chunk_tokens: u32,
    kv: KvType,
}

impl Walk<'_> {
    /// The CPU alone, then step by step. What residency goes by is measured on the way.
    fn all(&mut self) -> Result<Vec<Rung>> {
        let nowhere = GroupCosts {
            device_launch_us: f64::INFINITY,
            device_row_us: f64::INFINITY,
            cpu: ComputeCost { launch_us: 0.0, per_token_us: 0.0, floor_us: 0.0 },
        };
        let options =
            NpuOptions { choice: NpuChoice::Known(nowhere), ..self.options(Step::Groups) };
        let (mut rungs, figures) = self.run("CPU alone", options).map(|(r, f)| (vec![r], f))?;
        let per_token_us = figures.cpu_us as f64 / figures.pairs.max(1) as f64;
        let mut costs = GroupCosts {
            device_launch_us: self.args.launch_us as f64,
            cpu: ComputeCost { per_token_us, ..nowhere.cpu },
            ..nowhere
        };
        let steps = Step::ALL.into_iter().zip(["base", "+ tiers", "+ groups", "+ residency"]);
        for (step, name) in steps {
            let mut options = self.options(step);
            if step == Step::All {
                options.choice = NpuChoice::Known(costs);
            }
            let (mut rung, figures) = self.run(name, options)?;
            rung.paper = PAPER.iter().find(|(of, _)| *of == step).map_or("", |(_, text)| text);
            rungs.push(rung);
            let rows = (figures.device + figures.padding).max(1) as f64;
            let launching_us = (figures.launches * self.args.launch_us) as f64;
            costs.device_row_us = (figures.device_us as f64 - launching_us).max(0.0) / rows;
        }
        Ok(rungs)
    }

    fn options(&self, step: Step) -> NpuOptions {
        let grouped = matches!(step, Step::Groups | Step::All);
        let fixed = step == Step::Base;
        let new = NpuOptions::new(self.profile.clone(), self.chunk_tokens);
        NpuOptions {
            // One core stands for the device.
            provider: ProviderConfig::cpu(1),
            overflow: if fixed { NpuOverflow::Pad } else { NpuOverflow::Spill },
            group_experts: if grouped { new.group_experts } else { 1 },
            // As the source's steps before the last: one after the other.
            launches: 1,
            launch_cost: Duration::from_micros(self.args.launch_us),
            ..new
        }
    }

    /// Graphs are compiled in a run that does not count.
    fn run(&mut self, name: &'static str, options: NpuOptions) -> Result<(Rung, LayerFigures)> {
        let npu = self.engine.use_npu(options).context("a static-graph device")?;
        let tokens = (self.prompt.len() as u32 + 1).next_multiple_of(256);
        let mut session = self.engine.session(&SessionOptions {
            context_tokens: tokens,
            kv: self.kv,
            chunk_tokens: self.chunk_tokens,
            ..SessionOptions::default()
        })?;
        session.prefill(&self.prompt)?;
        npu.take_figures();
        let (mut times, cpu_before) = (Vec::new(), process_cpu()?);
        for _ in 0..self.args.runs.max(1) {
            session.clear();
            let start = Instant::now();
            session.prefill(&self.prompt)?;
            times.push(start.elapsed().as_secs_f64());
        }
        let used = process_cpu()? - cpu_before;
        let figures = npu.take_figures().total();
        Ok((self.rung(name, times, used, &figures), figures))
    }

    fn rung(
        &self,
        name: &'static str,
        times: Vec<f64>,
        used: Duration,
        figures: &LayerFigures,
    ) -> Rung {
        let runs = times.len() as f64;
        let device_s = figures.device_us as f64 / 1e6;
        let launching_s = (figures.launches * self.args.launch_us) as f64 / 1e6;
        // The stand-in computes on one thread, and sleeps through what a launch is said to cost.
        let stand_in_s = (device_s - launching_s).max(0.0);
        let cpu_s = (used.as_secs_f64() - stand_in_s).max(0.0);
        Rung {
            name,
            ttft_s: Spread::of(&times),
            cpu_s: cpu_s / runs,
            device_s: device_s / runs,
            launches: figures.launches / runs as u64,
            padding_rate: figures.padding_rate(),
            device_share: figures.device_share(),
            joules: (ASSUMED.device_w * device_s + ASSUMED.cpu_w * cpu_s) / runs,
            paper: "",
        }
    }
}

#[derive(Debug, Serialize)]
struct LadderReport {
    model: String,
    prompt_tokens: usize,
    chunk_tokens: u32,
    launch_us: u64,
    /// Load average when it began.
    load: Option<f64>,
    rungs: Vec<Rung>,
}

impl LadderReport {
    fn page(&self) -> String {
        let mut rows = table(COLUMNS, presets::ASCII_MARKDOWN);
        rows.set_header([
            "step",
            "TTFT, s",
            "quartiles",
            "over base",
            "launches",
            "device, s",
            "CPU, s",
            "J by model",
            "over base",
            "padding",
            "on device",
            "paper, over base",
        ]);
        let base = self.rungs.iter().find(|rung| rung.name == "base");
        let gain = |of: fn(&Rung) -> f64, rung: &Rung| {
            base.map_or(String::new(), |base| format!("{:.2}", of(base) / of(rung)))
        };
        for rung in &self.rungs {
            let Spread { median, lower_quartile, upper_quartile } = rung.ttft_s;
            rows.add_row([
                rung.name.to_owned(),
                format!("{median:.3}"),
                format!("{lower_quartile:.3} … {upper_quartile:.3}"),
                gain(|rung| rung.ttft_s.median, rung),
                rung.launches.to_string(),
                format!("{:.3}", rung.device_s),
                format!("{:.3}", rung.cpu_s),
                format!("{:.2}", rung.joules),
                gain(|rung| rung.joules, rung),
                format!("{:.1} %", 100.0 * rung.padding_rate),
                format!("{:.1} %", 100.0 * rung.device_share),
                rung.paper.to_owned(),
            ]);
        }
        align_right(&mut rows, &[1, 3, 4, 5, 6, 7, 8, 9, 10]);
        let load = self.load.map_or("unknown".into(), |load| format!("{load:.2}"));
        format!(
            "{}\n{} tokens in chunks of {}, {} us a launch; load {load} before\n{}",
            self.model,
            self.prompt_tokens,
            self.chunk_tokens,
            self.launch_us,
            rows.trim_fmt()
        )
    }
}
