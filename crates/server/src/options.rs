//! What a server is started with.

use std::net::SocketAddr;
use std::time::Duration;

/// How to serve.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// Name of the model in requests.
    pub model_name: String,
    /// Clients must send it as a bearer token.
    pub api_key: Option<String>,
    /// The one origin whose pages may call the API; none by default.
    pub cors_origin: Option<String>,
    /// Write prompts and responses to the log.
    pub log_text: bool,
    /// Ceiling for memory, shown beside what is used.
    pub memory_bytes: Option<u64>,
    pub limits: ServeLimits,
}

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeLimits {
    pub body_bytes: usize,
    /// Time for all headers of a request.
    pub header_time: Duration,
    pub body_time: Duration,
    pub headers: usize,
    /// Bytes of all headers together.
    pub header_bytes: usize,
    /// Connections at once; more wait.
    pub connections: usize,
    pub choices: u32,
    /// Time that running responses get after a shutdown has begun.
    pub drain_time: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            headers: 64,
            header_bytes: 32 << 10,
            connections: 1024,
            choices: 16,
            drain_time: Duration::from_secs(60),
        }
    }
}
