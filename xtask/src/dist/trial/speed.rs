//! A packed program beside one built for this machine: pairs of runs, one right after the other,
//! the order changing from pair to pair.

use super::super::build::Facts;
use super::super::tools::output;
use super::asked::at_home;
use anyhow::{Context, Result, ensure};
use motley_cost::statistics::median;
use serde::Serialize;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Words of the prompt; enough for a prompt's speed to mean something.
const PROMPT_WORDS: usize = 384;
/// Tokens that are generated.
const TOKENS: &str = "48";

/// What came of it.
#[derive(Debug, Clone, Serialize)]
pub struct Speed {
    pub model: String,
    pub threads: usize,
    /// Of the last minute, before the first run.
    pub load_one_min_before: f64,
    pub pairs: Vec<Pair>,
    /// Median of the pairs' ratios, packed over native.
    pub prefill_ratio: f64,
    pub decode_ratio: f64,
}

/// Tokens per second of one pair.
#[derive(Debug, Clone, Serialize)]
pub struct Pair {
    pub packed: Speeds,
    pub native: Speeds,
}

/// Tokens per second of one run.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Speeds {
    pub prefill: f64,
    pub decode: f64,
}

/// Runs both, the packed one first, after one run of each that does not count.
pub(super) fn compare(
    facts: &Facts,
    programs: [&Path; 2],
    model: &Path,
    count: usize,
) -> Result<Speed> {
    ensure!(count > 0, "--pairs 0 compares nothing");
    let load_one_min_before = load()?;
    let homes = [facts.scratch("home-packed")?, facts.scratch("home-native")?];
    let run = |which: usize| speeds(at_home(Command::new(programs[which]), &homes[which]), model);
    run(0)?;
    run(1)?;
    let mut pairs = Vec::new();
    for index in 0..count {
        let mut pair = [Speeds { prefill: 0.0, decode: 0.0 }; 2];
        let order = if index % 2 == 0 { [0, 1] } else { [1, 0] };
        for which in order {
            pair[which] = run(which)?;
        }
        pairs.push(Pair { packed: pair[0], native: pair[1] });
    }
    let ratio = |of: fn(&Speeds) -> f64| {
        let ratios: Vec<f64> =
            pairs.iter().map(|pair| of(&pair.packed) / of(&pair.native)).collect();
        median(&ratios).unwrap_or(f64::NAN)
    };
    let (prefill_ratio, decode_ratio) = (ratio(|s| s.prefill), ratio(|s| s.decode));
    Ok(Speed {
        model: model.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned()),
        threads: std::thread::available_parallelism()?.get(),
        load_one_min_before,
        pairs,
        prefill_ratio,
        decode_ratio,
    })
}

fn load() -> Result<f64> {
    let text = fs::read_to_string("/proc/loadavg")?;
    text.split(' ').next().and_then(|first| first.parse().ok()).context("no load in /proc/loadavg")
}

fn speeds(mut command: Command, model: &Path) -> Result<Speeds> {
    let prompt = "motley ".repeat(PROMPT_WORDS);
    command.arg("run").arg(model).args(["--raw", "--temperature", "0", "--tokens", TOKENS]);
    command.args(["--json", "--no-record"]);
    let answer: Value = serde_json::from_str(&output(command.args(["--prompt", &prompt]))?)?;
    let number = |name: &str| answer[name].as_f64().with_context(|| format!("no {name}"));
    Ok(Speeds { prefill: number("prefill_tokens_per_s")?, decode: number("decode_tokens_per_s")? })
}
