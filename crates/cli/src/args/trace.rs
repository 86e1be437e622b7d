//! What `motley trace` takes.

use super::sampling::SamplingArgs;
use super::wishes::LoadArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// `motley trace`.
#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Convert another project's trace (BigMoeOnEdge's CSV, waste's JSON lines)
    Import(Import),
    /// Show how a trace's routing is spread and how it repeats
    Summary(TraceSummary),
    /// Run a model and write down which experts every token used
    Record(Box<Record>),
}

/// `motley trace import`.
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The trace; its format is recognized by its beginning
    pub(crate) file: PathBuf,
    /// Where to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) waste: WasteArgs,
}

/// `motley trace summary`.
#[derive(Debug, Args)]
pub(crate) struct TraceSummary {
    /// The trace, in any format
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) waste: WasteArgs,
}

/// What waste's traces do not say.
#[derive(Debug, Args)]
pub(crate) struct WasteArgs {
    /// Experts per layer, when the file does not say (waste)
    #[arg(long)]
    pub(crate) experts: Option<u16>,
    /// Name of the model, when the file does not say (default: the file's name)
    #[arg(long)]
    pub(crate) name: Option<String>,
}

/// `motley trace record`.
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// GGUF file (any part of a split one), or a name as `motley pull` takes
    pub(crate) model: PathBuf,
    /// Text to continue
    #[arg(short, long, required_unless_present = "file", conflicts_with = "file")]
    pub(crate) prompt: Option<String>,
    /// File with the text to continue
    #[arg(long)]
    pub(crate) file: Option<PathBuf>,
    /// Most tokens to generate
    #[arg(short = 'n', long, default_value_t = 256)]
    pub(crate) tokens: usize,
    /// Where to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Write the run's figures too, so that `motley sim --run` can run it again
    #[arg(long, value_name = "FILE.json")]
    pub(crate) stats: Option<PathBuf>,
    /// Do not keep this run for `motley explain`
    #[arg(long)]
    pub(crate) no_record: bool,
    #[command(flatten)]
    pub(crate) sampling: SamplingArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}
