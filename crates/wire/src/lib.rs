//! What travels between a head and its expert workers, and who may talk. A head sends hidden rows
//! and which expert of a layer each is for; a worker sends back what those experts made of them.
//! Only layers, ids, rows and sizes travel, never pointers or graphs. Computes nothing and chooses
//! no worker.
//!
//! ```text
//! head                                                worker
//! Lane ── frames ── TLS 1.3, both pinned ── TCP ── Connection (a thread each)   ALPN motley-rows/1
//! ControlClient ── gRPC ── TLS 1.3, both pinned ── Control (a thread each)      ALPN h2
//! pair_with ── SPAKE2 ── TLS 1.3, nobody pinned ── Listener with an open code   ALPN motley-pair/1
//! ```
//!
//! Modules in reading order:
//! * `limits`: times and sizes a peer is held to.
//! * [`frame`]: frames as bytes, no I/O; `payload`: what is in them.
//! * [`keys`]: who this machine is, and whom it knows.
//! * `tls`: connections on which both ends show a certificate that is known, or is to be.
//! * `error`: why a connection does not serve; `socket`: TCP with a deadline; `link`: frames over it.
//! * [`lane`]: the head's end.
//! * `code`: one short code, its attempts and its time; [`pair`]: two that know it learn each
//!   other's certificates.
//! * [`control`]: what a worker says of itself, by gRPC.
//! * [`listen`]: the worker's end; `slots`: how many connections it has.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "a hand: it owns threads and reads the clock")]

mod code;
pub mod control;
mod error;
pub mod frame;
pub mod keys;
pub mod lane;
mod limits;
mod link;
pub mod listen;
pub mod pair;
mod payload;
mod slots;
mod socket;
mod tls;

pub use control::client::{ControlClient, ControlError};
pub use control::{Control, Offer, OfferError, WorkerFigures};
pub use error::LaneError;
pub use frame::{
    Computed, Frame, FrameError, FrameHeader, HEADER_BYTES, Hello, Kind, MAX_PAYLOAD_BYTES, Rows,
    VERSION, computed_bytes, rows_bytes,
};
pub use keys::{Fingerprint, Identity, KeyError, Peers};
pub use lane::Lane;
pub use limits::MAX_CONNECTIONS;
pub use listen::{Connection, Event, ListenError, Listener};
pub use pair::{PairError, pair_with};
