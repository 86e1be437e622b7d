//! The head's end of a connection to one worker.

use crate::error::LaneError;
use crate::frame::Frame;
use crate::keys::{Fingerprint, Identity};
use crate::link::{Link, Patience};
use crate::socket::{Socket, after};
use crate::tls::{self, ALPN_ROWS, Allowed};
use rustls::client::ClientConfig;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a worker sends when it has taken a head's certificate. In TLS 1.3 a client is done before
/// the server has looked at it; without this, a refusal would come up in the middle of work.
pub(crate) const READY: u8 = b'+';

/// A connection to one worker.
#[derive(Debug)]
pub struct Lane {
    link: Link,
}

impl Lane {
    /// Connects to the worker at `address` (`host:port`), which must be `peer` and know
    /// `identity`; ready for frames within `timeout`, looking up the name not counted.
    pub fn connect(
        address: &str,
        identity: &Identity,
        peer: Fingerprint,
        timeout: Duration,
    ) -> Result<Self, LaneError> {
        let config = tls::client(identity, Allowed::One(peer), ALPN_ROWS)?;
        let mut stream = dial(address, config, timeout)?;
        tls::peer_of(&stream.conn, ALPN_ROWS)?;
        let mut ready = [0];
        stream.read_exact(&mut ready)?;
        if ready != [READY] {
            return Err(io::Error::from(io::ErrorKind::InvalidData).into());
        }
        Ok(Self { link: Link::new(stream) })
    }

    /// Hands a whole frame to the system, within 30 s; says how many bytes it had.
    pub fn send(&mut self, block: u64, frame: &Frame) -> Result<usize, LaneError> {
        self.link.send(block, frame)
    }

    /// The next frame, all of it within `deadline` from now, else [`LaneError::Late`]. After any
    /// error the lane is of no use: whatever is asked of it is [`LaneError::Broken`].
    pub fn receive(&mut self, deadline: Duration) -> Result<(u64, Frame), LaneError> {
        self.link.receive(Patience::Whole(deadline))?.ok_or(LaneError::Closed)
    }

    /// Bytes of frames sent and received.
    pub fn counts(&self) -> (u64, u64) {
        self.link.counts()
    }
}

/// A connection whose handshake is done, and whose deadline is still `timeout` from now.
pub(crate) fn dial(
    address: &str,
    config: Arc<ClientConfig>,
    timeout: Duration,
) -> Result<StreamOwned<ClientConnection, Socket>, LaneError> {
    let (tcp, left) = reach(address, timeout)?;
    shake_hands(Socket::new(tcp, after(left))?, config)
}

/// A connection, and what it left of `timeout`.
pub(crate) fn reach(address: &str, timeout: Duration) -> Result<(TcpStream, Duration), LaneError> {
    let not_found = |source| LaneError::Address { address: address.to_owned(), source };
    let addresses = address.to_socket_addrs().map_err(not_found)?;
    let begun = Instant::now();
    let left = || timeout.saturating_sub(begun.elapsed());
    let mut failure = not_found(io::ErrorKind::NotFound.into());
    for one in addresses {
        if left().is_zero() {
            break;
        }
        match TcpStream::connect_timeout(&one, left()) {
            Ok(tcp) => return Ok((tcp, left())),
            Err(source) => failure = LaneError::Connect { address: address.to_owned(), source },
        }
    }
    Err(failure)
}

fn shake_hands(
    mut socket: Socket,
    config: Arc<ClientConfig>,
) -> Result<StreamOwned<ClientConnection, Socket>, LaneError> {
    let mut connection = ClientConnection::new(config, server_name()?)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut socket)?;
    }
    Ok(StreamOwned::new(connection, socket))
}

/// Certificates are known by their fingerprint; the name is neither sent nor compared.
pub(crate) fn server_name() -> io::Result<ServerName<'static>> {
    ServerName::try_from("motley").map_err(io::Error::other)
}
