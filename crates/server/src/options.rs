//! What a server is started with.

use std::net::SocketAddr;
use std::time::Duration;

/// How to serve.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// The model's name in requests.
    pub model_name: String,
    /// Clients must send it as a bearer token.
    pub api_key: Option<String>,
    /// The one origin whose pages may call the API; none by default.
    pub cors_origin: Option<String>,
    /// Write prompts and answers to the log.
    pub log_text: bool,
    /// Ceiling for memory, shown beside what is used.
    pub memory_bytes: Option<u64>,
    /// What a client may do.
    pub limits: ServeLimits,
}

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeLimits {
    /// Largest body.
    pub body_bytes: usize,
    /// Time for all headers of a request.
    pub header_time: Duration,
    /// Time for a whole body.
    pub body_time: Duration,
    /// Headers of a request.
    pub headers: usize,
    /// Bytes of all headers together.
    pub header_bytes: usize,
    /// Connections at once; more wait.
    pub connections: usize,
    /// Answers asked for in one request.
    pub choices: u32,
    /// Time running answers get when the server is told to stop.
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
