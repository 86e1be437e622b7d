//! `motley bench --npu`: prompts with a static-graph device beside the CPU against the same
//! prompts on the CPU alone, in interleaved pairs on one loaded model; and how far their
//! logits are apart. Graphs are compiled before anything is timed.

use super::Prompts;
use super::{NpuArgs, attach};
use crate::args::Global;
use crate::commands::bench::{Spread, load_average};
use crate::load::{Loaded, load};
use crate::npu::NpuRow;
use crate::page::{facts, percent};
use crate::terminal::{print_json, print_page};
use anyhow::{Result, ensure};
use clap::Args;
use motley_engine::eval::tasks::read_text;
use motley_engine::{Engine, Runtime, Seam, Session, SessionError, SessionOptions};
use motley_plan::Outputs;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Width of the page.
const COLUMNS: u16 = 100;

/// What `bench` takes for a device.
#[derive(Debug, Clone, Args)]
pub(crate) struct PairsArgs {
    #[command(flatten)]
    npu: NpuArgs,
    /// Text the prompt is cut from, with --npu (default: synthetic tokens)
    #[arg(long, value_name = "FILE")]
    text: Option<PathBuf>,
}

/// Measures, when a device is wanted.
pub(crate) fn bench(global: &Global, bench: &Prompts<'_>, args: &PairsArgs) -> Result<bool> {
    if args.npu.npu.is_none() {
        return Ok(false);
    }
    let runtime = Runtime::start(Seam::Registered)?;
    let mut args_load = bench.load.clone();
    args_load.wishes.at_least((bench.prefill as u32 + 1).next_multiple_of(256));
    let Loaded { mut engine, decision } =
        load(runtime, global, bench.model, &args_load, Outputs::All)?;
    let prompt = prompt(&engine, args.text.as_deref(), bench.prefill)?;
    let load_before = load_average();
    let options = SessionOptions::of(&decision);
    // Started before the engine has a device, this one computes everything on the CPU.
    let mut cpu = engine.session(&options)?;
    let figures = attach(&mut engine, &args.npu, options.chunk_tokens, None)?;
    let mut device = engine.session(&options)?;
    let (difference, first_s) = difference(&mut cpu, &mut device, &prompt)?;
    let mut pairs = Vec::new();
    for index in 0..bench.pairs {
        pairs.push(pair(&mut cpu, &mut device, &prompt, index % 2 == 1)?);
    }
    let report = PairsReport {
        model: bench.model.display().to_string(),
        prompt_tokens: prompt.len(),
        chunk_tokens: options.chunk_tokens,
        difference,
        first_s,
        cpu_s: Spread::of(&pairs.iter().map(|(cpu, _)| *cpu).collect::<Vec<_>>()),
        device_s: Spread::of(&pairs.iter().map(|(_, device)| *device).collect::<Vec<_>>()),
        ratio: Spread::of(&pairs.iter().map(|(cpu, device)| device / cpu).collect::<Vec<_>>()),
        pairs,
        layers: figures.map_or(Vec::new(), |figures| figures()),
        load: [load_before, load_average()],
    };
    match global.json {
        true => print_json(&serde_json::to_string_pretty(&report)?)?,
        false => print_page(&report.page())?,
    }
    Ok(true)
}

/// The first `wanted` tokens of the text, or made ones.
fn prompt(engine: &Engine, text: Option<&Path>, wanted: usize) -> Result<Vec<i32>> {
    let Some(path) = text else {
        let vocab = engine.vocab_size() as i64;
        let made = (0..wanted as i64).map(|n| ((n * n * 31 + n * 7 + 5) % vocab) as i32);
        return Ok(made.collect());
    };
    let mut tokens = engine.begin_tokens()?;
    tokens.extend(engine.tokenize_plain(&read_text(path)?)?);
    let found = tokens.len();
    ensure!(found >= wanted, "{}: {found} tokens, {wanted} are wanted", path.display());
    tokens.truncate(wanted);
    Ok(tokens)
}

/// Time to the first token on either, one after the other.
fn pair(
    cpu: &mut Session,
    device: &mut Session,
    prompt: &[i32],
    device_first: bool,
) -> Result<(f64, f64), SessionError> {
    if device_first {
        let device_s = seconds(device, prompt)?;
        return Ok((seconds(cpu, prompt)?, device_s));
    }
    Ok((seconds(cpu, prompt)?, seconds(device, prompt)?))
}

fn seconds(session: &mut Session, prompt: &[i32]) -> Result<f64, SessionError> {
    session.clear();
    let start = Instant::now();
    session.prefill(prompt)?;
    Ok(start.elapsed().as_secs_f64())
}

/// Largest and mean difference of logits.
#[derive(Debug, Clone, Copy, Serialize)]
struct Difference {
    largest: f32,
    mean: f64,
    positions: usize,
}

/// Every position's logits on both sides, and how long the device's first run took: graphs
/// are compiled in it.
fn difference(
    cpu: &mut Session,
    device: &mut Session,
    prompt: &[i32],
) -> Result<(Difference, f64), SessionError> {
    let mut expected: Vec<f32> = Vec::new();
    cpu.clear();
    cpu.score(prompt, &mut |_, logits| expected.extend_from_slice(logits))?;
    let (mut largest, mut sum, mut positions, mut at) = (0.0_f32, 0.0, 0, 0);
    device.clear();
    let start = Instant::now();
    device.score(prompt, &mut |_, logits| {
        for (found, expected) in logits.iter().zip(&expected[at..]) {
            let difference = (found - expected).abs();
            largest = largest.max(difference);
            sum += f64::from(difference);
        }
        positions += 1;
        at += logits.len();
    })?;
    let mean = sum / at.max(1) as f64;
    Ok((Difference { largest, mean, positions }, start.elapsed().as_secs_f64()))
}

#[derive(Debug, Serialize)]
struct PairsReport {
    model: String,
    prompt_tokens: usize,
    chunk_tokens: u32,
    difference: Difference,
    /// First run with the device, compilation included.
    first_s: f64,
    cpu_s: Spread,
    device_s: Spread,
    /// Time to the first token with the device over that without.
    ratio: Spread,
    /// CPU alone, with the device; seconds.
    pairs: Vec<(f64, f64)>,
    layers: Vec<NpuRow>,
    /// Load average before and after.
    load: [Option<f64>; 2],
}

impl PairsReport {
    fn page(&self) -> String {
        let spread = |spread: &Spread, unit: &str| {
            let Spread { median, lower_quartile, upper_quartile } = spread;
            format!("{median:.3}{unit} ({lower_quartile:.3} … {upper_quartile:.3})")
        };
        let load = self.load.map(|load| load.map_or("unknown".into(), |load| format!("{load:.2}")));
        let Difference { largest, mean, positions } = self.difference;
        let mut rows = vec![
            ("Model", self.model.clone()),
            ("Prompt", format!("{} tokens in chunks of {}", self.prompt_tokens, self.chunk_tokens)),
            ("CPU alone", spread(&self.cpu_s, " s to the first token")),
            ("With device", spread(&self.device_s, " s to the first token")),
            ("Ratio", format!("{}, with the device over without", spread(&self.ratio, ""))),
            (
                "Logits",
                format!("largest difference {largest:.1e}, mean {mean:.1e}, {positions} positions"),
            ),
            ("First run", format!("{:.1} s, graphs compiled in it", self.first_s)),
        ];
        if let Some(all) = self.layers.last() {
            rows.push((
                "Device",
                format!(
                    "{} of pairs, {} dropped, {} of its rows padding, {} launches in all runs",
                    percent(all.device_share),
                    percent(all.drop_rate),
                    percent(all.padding_rate),
                    all.launches
                ),
            ));
        }
        let refused = self.layers.iter().find_map(|row| row.refused.clone());
        rows.extend(refused.map(|reason| ("Refused", reason)));
        let pairs = self.pairs.len();
        rows.push((
            "Pairs",
            format!("{pairs}, medians; load {} before, {} after", load[0], load[1]),
        ));
        facts(&rows, COLUMNS)
    }
}
