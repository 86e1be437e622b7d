//! What `motley serve` takes.

use super::sandbox::SandboxArgs;
use super::wishes::LoadArgs;
use clap::Args;
use std::net::IpAddr;
use std::path::PathBuf;

/// `motley serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// GGUF file (any part of a split one)
    pub(crate) model: PathBuf,
    /// Address to listen on; 0.0.0.0 lets other machines in
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Port to listen on (0: a free one)
    #[arg(long, default_value_t = 8080)]
    pub(crate) port: u16,
    /// The model's name in requests (default: the file's)
    #[arg(long, value_name = "NAME")]
    pub(crate) alias: Option<String>,
    /// Answers computed at once
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) streams: u16,
    /// Give each stream a KV cache of its own of so many tokens, in place of a share of
    /// --context: faster with many streams, and none can get longer
    #[arg(long, value_name = "TOKENS", conflicts_with_all = ["context", "plan"],
          value_parser = clap::value_parser!(u32).range(16..=1 << 20))]
    pub(crate) stream_context: Option<u32>,
    /// Requests that may wait; more get 429
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) queue: u32,
    /// Prompt tokens computed in a step in which others decode
    #[arg(long, default_value_t = 128, value_name = "TOKENS",
          value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) prefill_beside: u32,
    #[command(flatten)]
    pub(crate) safety: SafetyArgs,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
}

impl Serve {
    /// How the model is loaded, with the KV cells of all streams as its context.
    pub(crate) fn loading(&self) -> LoadArgs {
        let mut load = self.load.clone();
        if let Some(each) = self.stream_context {
            load.wishes.context = each.saturating_mul(u32::from(self.streams));
        }
        load
    }
}

/// Who may do what.
#[derive(Debug, Args)]
#[command(next_help_heading = "Safety")]
pub(crate) struct SafetyArgs {
    /// Key clients must send as `Authorization: Bearer KEY`
    #[arg(long, env = "MOTLEY_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub(crate) api_key: Option<String>,
    /// Origin whose pages may call the API (`*`: all; default: none)
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Option<String>,
    /// Largest request body
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = super::size::parse_size)]
    pub(crate) max_body: u64,
    /// Seconds for a request's headers
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) header_timeout: u64,
    /// Connections at once
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) connections: u32,
    /// Seconds running answers get after Ctrl-C
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) drain_timeout: u64,
    /// Write prompts and answers to the log
    #[arg(long)]
    pub(crate) log_text: bool,
}
