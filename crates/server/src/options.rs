//! What a server is started with.

use crate::keys::ApiKey;
use crate::origin::CorsOrigin;
use crate::telemetry::Telemetry;
use motley_engine::EnergyCounter;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How to serve.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Where to listen; port 0 takes a free one.
    pub address: SocketAddr,
    /// Refuse requests that name another model. Otherwise one that is served alone answers to any
    /// name: most programs have one built in.
    pub strict_model: bool,
    /// Clients must send one of them, as a bearer token; none is needed where there are none.
    pub keys: Vec<ApiKey>,
    /// The one origin whose pages may call the API; none by default.
    pub cors_origin: Option<CorsOrigin>,
    /// Write prompts and responses to the log.
    pub log_text: bool,
    /// Who is told where the time of requests goes.
    pub telemetry: Telemetry,
    /// Energy since the start.
    pub energy: Arc<EnergyCounter>,
    pub limits: ServeLimits,
}

/// Largest body unless another is given.
const BODY_BYTES: usize = 4 << 20;
/// Bodies of the largest size that are held at once.
const LARGEST_BODIES: u64 = 8;

/// Bytes of all large bodies together when the largest has `body_bytes`.
pub fn bodies_bytes(body_bytes: usize) -> u64 {
    (body_bytes as u64).saturating_mul(LARGEST_BODIES)
}

/// What a client may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServeLimits {
    /// Requests that wait for a model or in its queue; more get 429.
    pub waiting: usize,
    pub body_bytes: usize,
    /// Bytes of all large bodies together that are read or prepared; more get 503.
    pub bodies_bytes: u64,
    /// Requests prepared at once: read as JSON, written out, tokenized.
    pub preparers: usize,
    /// Time for all headers of a request, and between two requests of a connection.
    pub header_time: Duration,
    pub body_time: Duration,
    /// A connection on which nothing could be written for so long is closed.
    pub write_time: Duration,
    pub headers: usize,
    /// Bytes of all headers together.
    pub header_bytes: usize,
    /// Connections at once; more wait.
    pub connections: usize,
    /// Of them by one peer; more are closed at once. This machine's own are not counted.
    pub peer_connections: usize,
    pub choices: u32,
    /// Time that running responses get after a shutdown has begun.
    pub drain_time: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            waiting: 128,
            body_bytes: BODY_BYTES,
            bodies_bytes: bodies_bytes(BODY_BYTES),
            preparers: std::thread::available_parallelism().map_or(4, usize::from).max(4),
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            write_time: Duration::from_secs(30),
            headers: 64,
            header_bytes: 32 << 10,
            connections: 1024,
            peer_connections: 256,
            choices: 16,
            drain_time: Duration::from_secs(60),
        }
    }
}
