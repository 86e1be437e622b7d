//! `cargo xtask versus`: `motley run` with one set of flags against others, in turn, each in a process
//! of its own, cold and under one memory limit. The first set is what the others are measured by.

use super::cage::Cage;
use super::drop_page_cache;
use anyhow::{Context, Result, ensure};
use clap::Args;
use motley_cost::statistics::median;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Options.
#[derive(Debug, Args)]
pub struct Versus {
    /// GGUF file
    model: PathBuf,
    /// Flags of `motley run`, one set each, the first the one to compare with; a first word with a
    /// slash is another program, e.g. "/opt/old/motley --chunk 512". To be given last: all
    /// words after it are sets of flags
    #[arg(long = "flags", required = true, num_args = 1.., allow_hyphen_values = true)]
    ways: Vec<String>,
    /// Texts to ask about, one run each way and round
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    prompts: Vec<PathBuf>,
    /// Limit of the control group in GiB (default: none)
    #[arg(long)]
    limit: Option<f64>,
    /// Tokens of an answer
    #[arg(long, default_value_t = 64)]
    tokens: usize,
    /// Rounds of every set and text
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The `motley` to run (default: the one built beside this program)
    #[arg(long, value_name = "PROGRAM")]
    program: Option<PathBuf>,
    /// Keep what it came to
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// One run.
#[derive(Debug, Clone, Serialize)]
struct Run {
    round: usize,
    prompt: String,
    flags: String,
    prompt_tokens: u64,
    /// Computing the prompt.
    first_token_s: f64,
    decode_tokens_per_s: f64,
    /// Read from disk, prompt and answer together; absent where experts are in memory.
    disk_bytes: Option<u64>,
    /// What came of guesses, where tokens were guessed ahead.
    speculation: Option<Value>,
    peak_bytes: u64,
    /// As the first set's of the same text and round.
    same_tokens: bool,
    load: Option<f64>,
}

/// One set of flags on one text, over all rounds.
#[derive(Debug, Serialize)]
struct Summary {
    prompt: String,
    flags: String,
    prompt_tokens: u64,
    first_token_s: f64,
    decode_tokens_per_s: f64,
    /// Median, least and most of the ratios to the first set within rounds: how much sooner the first
    /// token is there, and how much faster the others follow.
    sooner: [f64; 3],
    faster: [f64; 3],
    disk_mb: Option<f64>,
    /// Rounds in which the tokens were the first set's.
    same_tokens: usize,
}

#[derive(Debug, Serialize)]
struct Outcome {
    model: String,
    limit_gib: Option<f64>,
    tokens: usize,
    rounds: usize,
    summaries: Vec<Summary>,
    runs: Vec<Run>,
}

/// Runs it; a line for each run, then one for each set and text.
pub fn versus(asked: &Versus, on_line: &mut dyn FnMut(&str)) -> Result<()> {
    ensure!(asked.ways.len() > 1, "--flags: give two sets at least");
    let beside = std::env::current_exe()?.with_file_name("motley");
    let program = asked.program.clone().unwrap_or(beside);
    let mut runs = Vec::new();
    for round in 0..asked.rounds {
        for prompt in &asked.prompts {
            let mut order: Vec<usize> = (0..asked.ways.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            let mut all = order
                .into_iter()
                .map(|way| Ok((way, one(asked, &program, (round, way), prompt)?)))
                .collect::<Result<Vec<_>>>()?;
            all.sort_by_key(|(way, _)| *way);
            let first = all[0].1.1.clone();
            for (_, (mut run, tokens)) in all {
                run.same_tokens = tokens == first && tokens.is_array();
                on_line(&run.line());
                runs.push(run);
            }
        }
    }
    let summaries = summaries(asked, &runs);
    summaries.iter().for_each(|summary| on_line(&summary.line()));
    if let Some(path) = &asked.json {
        let outcome = Outcome {
            model: asked.model.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            limit_gib: asked.limit,
            tokens: asked.tokens,
            rounds: asked.rounds,
            summaries,
            runs,
        };
        std::fs::write(path, serde_json::to_string_pretty(&outcome)? + "\n")
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// A cold run, and its tokens.
fn one(
    asked: &Versus,
    program: &Path,
    (round, way): (usize, usize),
    prompt: &Path,
) -> Result<(Run, Value)> {
    let mut words = asked.ways[way].split_whitespace().peekable();
    let other = words.next_if(|word| word.contains('/')).map(PathBuf::from);
    drop_page_cache()?;
    let load = motley_host::load::average(Path::new("/")).map(|load| load.one_min);
    let cage = Cage::new(asked.limit.map(|gib| (gib * f64::from(1 << 30)) as u64))?;
    let mut command = cage.command(other.as_deref().unwrap_or(program));
    command.args(["run", "--json", "--raw", "--trust-file", "--temperature", "0"]);
    command.args(["-n", &asked.tokens.to_string(), "-f"]).arg(prompt);
    command.args(words).arg(&asked.model).stdin(Stdio::null());
    let output = command.output()?;
    let told = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {}", asked.ways[way], told.trim());
    let said: Value = serde_json::from_slice(&output.stdout)?;
    let number = |name: &str| said[name].as_f64().with_context(|| format!("no {name}"));
    let prompt_tokens = number("prompt_tokens")?;
    let run = Run {
        round,
        prompt: prompt.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        flags: asked.ways[way].clone(),
        prompt_tokens: prompt_tokens as u64,
        first_token_s: prompt_tokens / number("prefill_tokens_per_s")?,
        decode_tokens_per_s: number("decode_tokens_per_s")?,
        disk_bytes: said["disk_bytes"].as_u64(),
        speculation: Some(said["speculation"].clone()).filter(|made| !made.is_null()),
        peak_bytes: cage.peak_bytes()?,
        same_tokens: false,
        load,
    };
    Ok((run, said["tokens"].clone()))
}

fn summaries(asked: &Versus, runs: &[Run]) -> Vec<Summary> {
    let mut prompts: Vec<&str> = runs.iter().map(|run| run.prompt.as_str()).collect();
    prompts.dedup();
    prompts.truncate(asked.prompts.len());
    let pairs = prompts.iter().flat_map(|prompt| asked.ways.iter().map(move |way| (*prompt, way)));
    pairs
        .map(|(prompt, way)| {
            let of = |flags: &str| -> Vec<&Run> {
                runs.iter().filter(|run| run.prompt == prompt && run.flags == flags).collect()
            };
            let (first, mine) = (of(&asked.ways[0]), of(way));
            let ratios = |of: fn(&Run, &Run) -> f64| {
                spread(mine.iter().zip(&first).map(|(mine, first)| of(mine, first)).collect())
            };
            let mid = |of: fn(&Run) -> f64| spread(mine.iter().map(|run| of(run)).collect())[0];
            let megabytes: Option<Vec<f64>> =
                mine.iter().map(|run| Some(run.disk_bytes? as f64 / 1e6)).collect();
            Summary {
                prompt: prompt.to_owned(),
                flags: way.clone(),
                prompt_tokens: mine.first().map_or(0, |run| run.prompt_tokens),
                first_token_s: mid(|run| run.first_token_s),
                decode_tokens_per_s: mid(|run| run.decode_tokens_per_s),
                sooner: ratios(|mine, first| first.first_token_s / mine.first_token_s),
                faster: ratios(|mine, first| mine.decode_tokens_per_s / first.decode_tokens_per_s),
                disk_mb: megabytes.map(|all| spread(all)[0]),
                same_tokens: mine.iter().filter(|run| run.same_tokens).count(),
            }
        })
        .collect()
}

/// Median, least and most.
fn spread(values: Vec<f64>) -> [f64; 3] {
    let (least, most) = values
        .iter()
        .fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(*value), most.max(*value)));
    [median(&values).unwrap_or(0.0), least, most]
}

impl Run {
    fn line(&self) -> String {
        let Self { round, prompt, flags, prompt_tokens, first_token_s, .. } = self;
        format!(
            "round {round}, {prompt}, `{flags}`: {prompt_tokens} tokens in {first_token_s:.2} s, then {:.2} tokens/s; {} MB read, peak {} MiB{}",
            self.decode_tokens_per_s,
            self.disk_bytes.unwrap_or(0) / 1_000_000,
            self.peak_bytes >> 20,
            if self.same_tokens { "" } else { "; other tokens" }
        )
    }
}

impl Summary {
    fn line(&self) -> String {
        let range = |[mid, least, most]: [f64; 3]| format!("{mid:.2} ({least:.2}–{most:.2})");
        format!(
            "{}, `{}`: first token after {:.2} s, {} × sooner; {:.2} tokens/s, {} × as fast; {:.0} MB; same tokens {}",
            self.prompt,
            self.flags,
            self.first_token_s,
            range(self.sooner),
            self.decode_tokens_per_s,
            range(self.faster),
            self.disk_mb.unwrap_or(0.0),
            self.same_tokens
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_median_between_the_least_and_the_most() {
        assert_eq!(spread(vec![3.0, 1.0, 2.0]), [2.0, 1.0, 3.0]);
    }
}
