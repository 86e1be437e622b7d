//! `cargo xtask dropin-pairs`: a stock `llama-server` without and with the library, in turn, each
//! under a memory limit and with a cold page cache, or with everything in memory: one prompt, one
//! answer, and the server's own figures of both.

use crate::capped::cage::Cage;
use crate::capped::drop_page_cache;
use crate::servers::{Listens, Running, Start, free_port, post};
use anyhow::{Context, Result};
use clap::Args;
use motley_cost::statistics::median;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Options of the comparison.
#[derive(Debug, Args)]
pub struct Pairs {
    /// The stock `llama-server`
    #[arg(long, value_name = "PROGRAM")]
    server: PathBuf,
    /// The model
    model: PathBuf,
    /// Memory limit of the server, in MiB
    #[arg(long, default_value_t = 4096)]
    limit_mib: u64,
    /// No memory limit, and the model's file in the page cache before each turn
    #[arg(long, conflicts_with = "limit_mib")]
    resident: bool,
    /// Turns of each
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Tokens of the prompt
    #[arg(long, default_value_t = 512)]
    prompt: usize,
    /// Tokens of the answer
    #[arg(long, default_value_t = 16)]
    answer: usize,
    /// Where the runs are written
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Flags for both servers
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<String>,
}

impl Pairs {
    fn limit_bytes(&self) -> Option<u64> {
        (!self.resident).then_some(self.limit_mib << 20)
    }

    fn prepare_page_cache(&self) -> Result<()> {
        if !self.resident {
            return drop_page_cache();
        }
        std::io::copy(&mut std::fs::File::open(&self.model)?, &mut std::io::sink())?;
        Ok(())
    }
}

/// One run.
#[derive(Debug, Clone, Serialize)]
struct Turn {
    /// Whether the library was there.
    with_library: bool,
    /// Load average of the last minute when it began.
    load: String,
    prefill_per_s: f64,
    decode_per_s: f64,
    /// Highest memory of the group, page cache too.
    peak_bytes: u64,
    text: String,
}

/// Runs the pairs and says what came of them.
pub fn compare(asked: &Pairs, library: &Path, on_line: &mut dyn FnMut(&str)) -> Result<()> {
    let mut turns: Vec<Turn> = Vec::new();
    for round in 1..=asked.rounds {
        for library in [None, Some(library)] {
            let turn = turn(asked, library)?;
            let who = if turn.with_library { "with" } else { "without" };
            on_line(&format!(
                "round {round}, {who}: prefill {:.2}/s, decode {:.3}/s; peak {} MiB, load {}",
                turn.prefill_per_s,
                turn.decode_per_s,
                turn.peak_bytes >> 20,
                turn.load
            ));
            turns.push(turn);
        }
    }
    let equal = turns.windows(2).all(|two| two[0].text == two[1].text);
    on_line(&format!("texts equal: {equal}"));
    for (name, of) in [("prefill", prefill as fn(&Turn) -> f64), ("decode", decode)] {
        let ratios: Vec<f64> = turns.chunks(2).map(|pair| of(&pair[1]) / of(&pair[0])).collect();
        let (least, most) = ratios
            .iter()
            .fold((f64::MAX, 0.0_f64), |(least, most), &ratio| (least.min(ratio), most.max(ratio)));
        let middle = median(&ratios).context("no round was run")?;
        on_line(&format!("{name}, with ÷ without: {middle:.2} ({least:.2}–{most:.2})"));
    }
    if let Some(path) = &asked.json {
        let limit_bytes = asked.limit_bytes();
        let flags = &asked.flags;
        let all = json!({ "limit_bytes": limit_bytes, "flags": flags, "turns": turns });
        std::fs::write(path, serde_json::to_string_pretty(&all)? + "\n")?;
    }
    Ok(())
}

fn prefill(turn: &Turn) -> f64 {
    turn.prefill_per_s
}

fn decode(turn: &Turn) -> f64 {
    turn.decode_per_s
}

fn turn(asked: &Pairs, library: Option<&Path>) -> Result<Turn> {
    asked.prepare_page_cache()?;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let cage = Cage::new(asked.limit_bytes())?;
    let address = format!("127.0.0.1:{}", free_port()?);
    let port = address.rsplit(':').next().unwrap_or_default();
    let mut command = cage.command(&asked.server);
    command.arg("-m").arg(&asked.model).args(["--port", port, "-np", "1", "--no-warmup"]);
    command.args(&asked.flags).env_remove("GGML_BACKEND_PATH");
    if let Some(library) = library {
        command.env("GGML_BACKEND_PATH", library);
    }
    let server = Running::start(Start { command, listens: Listens::At(address) })?;
    let mut random = fastrand::Rng::with_seed(1);
    let prompt: Vec<u32> = (0..asked.prompt).map(|_| random.u32(1000..40_000)).collect();
    let question = json!({
        "prompt": prompt, "n_predict": asked.answer, "temperature": 0, "ignore_eos": true,
        "cache_prompt": false,
    });
    let answer = post(&server.address, "/completion", &question)?;
    let figure = |name: &str| {
        answer["timings"][name].as_f64().with_context(|| format!("no `{name}` in {answer}"))
    };
    Ok(Turn {
        with_library: library.is_some(),
        load: load.split(' ').next().unwrap_or_default().to_owned(),
        prefill_per_s: figure("prompt_per_second")?,
        decode_per_s: figure("predicted_per_second")?,
        peak_bytes: cage.peak_bytes()?,
        text: answer["content"].as_str().unwrap_or_default().to_owned(),
    })
}
