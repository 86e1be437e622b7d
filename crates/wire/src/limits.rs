//! Times and sizes a peer is held to, beside those of frames. No logic.

use std::time::Duration;

/// Connections a worker has at once, those that still shake hands included.
pub const MAX_CONNECTIONS: usize = 64;

/// From a connection to the end of its handshake.
pub(crate) const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// From there to the end of a pairing: four messages, and nobody types in between.
pub(crate) const PAIRING_TIME: Duration = Duration::from_secs(10);
/// From a frame's first byte to its last, at a worker: 64 MiB at 18 Mbit/s.
pub(crate) const FRAME_TIME: Duration = Duration::from_secs(30);
/// To hand a whole frame to the system, at either end.
pub(crate) const SEND_TIME: Duration = Duration::from_secs(30);
/// To say that a connection ends.
pub(crate) const FAREWELL_TIME: Duration = Duration::from_secs(1);
/// Silence after which the system asks whether the other machine is still there.
pub(crate) const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);
/// Rest of a worker that cannot accept connections, say because it has no descriptors left.
pub(crate) const ACCEPT_REST: Duration = Duration::from_millis(100);

/// Silence on a control connection after which the worker asks whether anybody is there, and the
/// time for an answer.
pub(crate) const CONTROL_PING_TIME: Duration = Duration::from_secs(20);
/// Silence after which it ends, also where nobody has spoken HTTP/2 yet.
pub(crate) const CONTROL_IDLE_TIME: Duration = Duration::from_secs(60);
/// How often a worker looks whether it still serves, for those that watch.
pub(crate) const CONTROL_WATCH_TIME: Duration = Duration::from_secs(1);
/// Requests at once on one control connection.
pub(crate) const CONTROL_STREAMS: u32 = 8;
/// Bytes of one message of control: an offer has 4 KiB at most.
pub(crate) const CONTROL_MESSAGE_BYTES: usize = 64 << 10;
/// Bytes of its headers.
pub(crate) const CONTROL_HEADER_BYTES: u32 = 16 << 10;

/// How long a pairing code can be used, and how often it is tried.
pub(crate) const CODE_TIME: Duration = Duration::from_secs(600);
pub(crate) const CODE_ATTEMPTS: u32 = 3;

/// Bytes taken from the system at once: rustls asks for 4 KiB each time.
pub(crate) const SOCKET_BYTES: usize = 64 << 10;
/// A payload's memory begins with this and doubles as bytes come.
pub(crate) const FIRST_PAYLOAD_BYTES: usize = 64 << 10;
/// Bytes thrown away of a peer that was refused, so that it reads why.
pub(crate) const FAREWELL_BYTES: u64 = 64 << 10;

/// Bytes of a file with a key, and of one with peers.
pub(crate) const MAX_IDENTITY_BYTES: u64 = 64 << 10;
pub(crate) const MAX_PEERS_BYTES: u64 = 1 << 20;
