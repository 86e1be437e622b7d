//! What `motley eval` takes.

use super::wishes::LoadArgs;
use crate::npu::NpuArgs;
use clap::Args;
use std::path::PathBuf;

/// `motley eval`.
#[derive(Debug, Args)]
#[command(after_help = "\
A setting for --compare is one of these, or several with commas between:
  exact  loading=mapped|on-demand  memory=SIZE  policy=NAME  prefetch=NAME
  devices=NAMES  threads=N  chunk=N  experts=N  skip-cold=PART
  npu=spill|prune|pad|off  npu-headroom=X (builds with feature npu)")]
pub(crate) struct Eval {
    /// GGUF file (any part of a split one), or a name as `motley pull` takes
    pub(crate) model: PathBuf,
    #[command(flatten)]
    pub(crate) what: What,
    /// Most windows of a text, most questions of a file
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = positive)]
    pub(crate) items: usize,
    /// Tokens of a text's window
    #[arg(long, default_value_t = 512, value_name = "TOKENS", value_parser = positive)]
    pub(crate) window: usize,
    /// Solved examples before each question
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) shots: usize,
    /// Compute every question from its first token instead of its examples once for all
    #[arg(long)]
    pub(crate) whole: bool,
    /// Seed that picks the questions
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u32,
    /// Evaluate under another setting on the same items, and show the paired difference, of a text
    /// how far the next token's distribution is from the first setting's; may be given several times
    #[arg(long, value_name = "SETTING")]
    pub(crate) compare: Vec<String>,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) npu: NpuArgs,
}

/// What is evaluated; at least one.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct What {
    /// Perplexity of a text; where a setting approximates, tokens are computed one by one, as answers
    /// are, and their speed is shown
    #[arg(long, value_name = "FILE")]
    pub(crate) text: Option<PathBuf>,
    /// Yes-or-no questions about passages, BoolQ's JSON lines
    #[arg(long, value_name = "FILE.jsonl")]
    pub(crate) boolq: Option<PathBuf>,
    /// Which ending follows, HellaSwag's JSON lines
    #[arg(long, value_name = "FILE.jsonl")]
    pub(crate) hellaswag: Option<PathBuf>,
}

fn positive(text: &str) -> Result<usize, String> {
    let number: usize = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    (number > 0).then_some(number).ok_or_else(|| "at least 1".into())
}
