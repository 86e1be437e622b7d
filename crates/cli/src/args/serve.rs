//! What `motley serve` takes.

use super::sandbox::SandboxArgs;
use super::wishes::LoadArgs;
use super::worker::WorkersArgs;
use crate::npu::NpuArgs;
use crate::otlp::OtlpArgs;
use clap::Args;
use motley_server::CorsOrigin;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

/// `motley serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// GGUF files (any part of a split one), names as `motley pull` takes, or folders of GGUF
    /// files. Of several models each is loaded when a request names it, and unloaded when another
    /// needs the memory
    #[arg(required = true, value_name = "MODEL")]
    pub(crate) models: Vec<PathBuf>,
    /// Address to listen on; 0.0.0.0 lets other machines in
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: IpAddr,
    /// Port to listen on (0: a free one)
    #[arg(long, default_value_t = 8080)]
    pub(crate) port: u16,
    /// The model's name in requests (default: the file's)
    #[arg(long, value_name = "NAME")]
    pub(crate) alias: Option<String>,
    /// Refuse requests for a model of another name (default: the model answers to any)
    #[arg(long)]
    pub(crate) strict_model: bool,
    /// Unload a model that nobody has used for so long, such as 10m; the next request loads it
    /// again (default: only when another model needs its memory)
    #[arg(long, value_name = "TIME", value_parser = super::time::parse_time)]
    pub(crate) idle: Option<Duration>,
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
    /// Milliseconds a step with prompts takes, about, by shorter chunks of them: new requests and
    /// streams wait less, long prompts take longer (default: only --chunk and --prefill-beside
    /// bound it)
    #[arg(long, value_name = "MS", conflicts_with = "exact",
          value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(crate) step_time: Option<u32>,
    /// Keep beginnings of prompts on disk, at most so many bytes: after a restart, or when memory
    /// had no room, they are read where that is faster than computing them
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["exact", "no_share_prefix", "stream_context"],
          value_parser = motley_plan::decide::parse::parse_size)]
    pub(crate) prefix_cache: Option<u64>,
    /// Folder for --prefix-cache (default: the user's cache folder). Who can read it can learn what
    /// prompts said
    #[arg(long, value_name = "FOLDER", requires = "prefix_cache")]
    pub(crate) prefix_folder: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) otlp: OtlpArgs,
    #[command(flatten)]
    pub(crate) safety: SafetyArgs,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) workers: WorkersArgs,
    #[command(flatten)]
    pub(crate) npu: NpuArgs,
}

impl Serve {
    /// How the model is loaded, with the KV cells of all streams as its context.
    pub(crate) fn loading(&self) -> LoadArgs {
        let mut load = self.load.clone();
        if let Some(each) = self.stream_context {
            load.wishes.context = Some(each.saturating_mul(u32::from(self.streams)));
        }
        load
    }
}

/// Who may do what.
#[derive(Debug, Args)]
#[command(next_help_heading = "Safety")]
pub(crate) struct SafetyArgs {
    /// Key clients must send as `Authorization: Bearer KEY`. Other users of this machine can
    /// read a command line; --api-key-file keeps the key out of it
    #[arg(long, env = "MOTLEY_API_KEY", hide_env_values = true, value_name = "KEY")]
    pub(crate) api_key: Option<String>,
    /// File whose first line is the key
    #[arg(long, value_name = "FILE", conflicts_with = "api_key")]
    pub(crate) api_key_file: Option<PathBuf>,
    /// File of keys for several teams or programs, each with its part of the time, most answers at
    /// once, priority and deadline (TOML; the guide to serving shows one)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["api_key", "api_key_file"])]
    pub(crate) api_keys: Option<PathBuf>,
    /// Do not begin a prompt with what another request has computed: slower, and `cached_tokens`
    /// and the time to a first token no longer tell clients about each other's prompts. This
    /// holds between any two requests, whatever their keys
    #[arg(long)]
    pub(crate) no_share_prefix: bool,
    /// Origin whose pages may call the API, such as `https://app.example` (`*`: all; default: none)
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Option<CorsOrigin>,
    /// Largest request body; eight times as many bytes are held of all requests together
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = motley_plan::decide::parse::parse_size)]
    pub(crate) max_body: u64,
    /// Seconds for a request's headers, and between two requests of a connection
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) header_timeout: u64,
    /// Close a connection after so many seconds in which nothing could be written to it
    #[arg(long, value_name = "SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) write_timeout: u64,
    /// Connections at once
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) connections: u32,
    /// Connections of one other machine at once, a proxy included (default: a quarter of
    /// --connections); this machine's own are not counted
    #[arg(long, value_name = "CONNECTIONS", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(crate) peer_connections: Option<u32>,
    /// Seconds running answers get after Ctrl-C
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) drain_timeout: u64,
    /// Write prompts and answers to the log
    #[arg(long)]
    pub(crate) log_text: bool,
}
