//! `cargo xtask sweep`: `motley run` without flags against hand-picked ones, in turn, with a
//! cold page cache and where wanted under a memory limit. What "plans by itself" is held to.
//! The run without flags takes part twice: how far it is from itself is what noise alone does.

use super::{cage::Cage, worker::drop_page_cache};
use anyhow::{Result, bail, ensure};
use clap::Args;
use motley_cost::statistics::median;
use motley_host::load;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Flags a careful user would try.
const FLAGS: [&str; 6] = [
    "--threads 1",
    "--policy lru",
    "--prefetch none",
    "--prefetch next-layer",
    "--chunk 128",
    "--chunk 1024",
];
/// Those that mean something when every expert stays.
const ALSO_IN_MEMORY: [&str; 3] = ["--threads 1", "--chunk 128", "--chunk 1024"];

/// What to compare.
#[derive(Debug, Args)]
pub struct Sweep {
    /// GGUF files.
    models: Vec<PathBuf>,
    /// The program.
    #[arg(long)]
    motley: PathBuf,
    /// Text whose beginning is the prompt.
    #[arg(long)]
    text: PathBuf,
    /// Limits in GiB, one run of everything each; 0 for none.
    #[arg(long, value_delimiter = ',', default_values_t = [0.0])]
    limits: Vec<f64>,
    /// How often each set of flags runs.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Characters of the prompt.
    #[arg(long, default_value_t = 1100)]
    prompt: usize,
    /// Tokens of the answer.
    #[arg(long, default_value_t = 64)]
    tokens: usize,
}

/// Runs everything; one line of JSON per model and limit.
pub fn sweep(sweep: &Sweep) -> Result<()> {
    let text = std::fs::read_to_string(&sweep.text)?;
    let prompt: String = text.chars().take(sweep.prompt).collect();
    for model in &sweep.models {
        for &limit in &sweep.limits {
            println!("{}", compare(sweep, model, limit, &prompt)?);
        }
    }
    Ok(())
}

fn compare(sweep: &Sweep, model: &PathBuf, limit: f64, prompt: &str) -> Result<Value> {
    let limited = limit > 0.0;
    let flags: &[&str] = if limited { &FLAGS } else { &ALSO_IN_MEMORY };
    let ways = [&["", ""], flags].concat();
    let mut seconds: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    for round in 0..sweep.rounds {
        // Everybody is first once, and follows somebody else.
        for at in (0..ways.len()).map(|at| (at + round) % ways.len()) {
            let took = run(sweep, model, limited.then_some(limit), prompt, ways[at]);
            seconds[at].extend(took);
        }
    }
    let [own, again, others @ ..] = &seconds[..] else { bail!("two runs without flags") };
    ensure!(own.len() == sweep.rounds, "a run without flags failed");
    // Of each round: the same minutes for both, as the machine's speed wanders.
    let ratio = |times: &Vec<f64>| {
        let ratios: Vec<f64> = times.iter().zip(own).map(|(other, own)| other / own).collect();
        median(&ratios).filter(|_| times.len() == own.len())
    };
    let ratios: Vec<Option<f64>> = others.iter().map(ratio).collect();
    let least = ratios.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let load = load::average(Path::new("/")).map(|load| load.one_min);
    Ok(json!({
        "model": model.file_name().map(|name| name.to_string_lossy()),
        "limit_gib": limit,
        "own_s": median(own),
        "own_speed_over_itself": ratio(again),
        "own_speed_over_best": least,
        "speed_over_flags": flags.iter().zip(&ratios).collect::<Vec<_>>(),
        "rounds": sweep.rounds,
        "load": load,
    }))
}

/// Time of prompt and answer; `None` when the run failed (too little memory for a chunk).
fn run(
    sweep: &Sweep,
    model: &PathBuf,
    limit_gib: Option<f64>,
    prompt: &str,
    flags: &str,
) -> Option<f64> {
    let limit = limit_gib.map(|gib| (gib * f64::from(1 << 30)) as u64);
    let cage = Cage::new(limit).ok()?;
    drop_page_cache().ok()?;
    let tokens = sweep.tokens.to_string();
    let mut command = cage.command(&sweep.motley);
    command.arg("run").arg(model).args(["--raw", "--prompt", prompt, "--tokens", &tokens]);
    command.args(["--temperature", "0", "--json", "--no-record"]).args(flags.split_whitespace());
    let output = command.output().ok()?;
    let said: Value = serde_json::from_slice(&output.stdout).ok()?;
    let number = |field: &str| said[field].as_f64();
    let answer = said["tokens"].as_array()?.len() as f64;
    Some(
        number("prompt_tokens")? / number("prefill_tokens_per_s")?
            + answer / number("decode_tokens_per_s")?,
    )
}
