//! The worker's end: accepts connections, finds out who is there, gives known heads to whoever
//! computes, and answers those that ask about it. What a stranger does ends its own connection and
//! no other.

use crate::code::{Code, Desk};
use crate::control::Control;
use crate::control::serve::{self as control_end, Caller};
use crate::error::LaneError;
use crate::frame::Frame;
use crate::keys::{Fingerprint, Identity, KeyError, Peers};
use crate::lane::READY;
use crate::limits::{ACCEPT_REST, FAREWELL_TIME, FRAME_TIME, HANDSHAKE_TIME, PAIRING_TIME};
use crate::link::{Duplex, Link, Patience};
use crate::pair::{self, Ends, PairError};
use crate::slots::{Slot, Slots};
use crate::socket::{Socket, after};
use crate::tls::{self, ALPN_CONTROL, ALPN_PAIR, ALPN_ROWS, Allowed};
use rustls::server::{Accepted, Acceptor, ServerConfig};
use rustls::{ServerConnection, StreamOwned};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Accepts heads for a worker.
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
    fingerprint: Fingerprint,
    peers: Arc<Mutex<Peers>>,
    /// For rows and for control, of heads that are known, and for heads that have a code.
    rows: Arc<ServerConfig>,
    control: Arc<ServerConfig>,
    pairing: Arc<ServerConfig>,
    desk: Mutex<Desk>,
    slots: Slots,
}

impl Listener {
    /// Listens, with the keys of `folder` (made where there are none); connections wait until
    /// [`Listener::run`]. The folder's peers may talk, and those that pair from now on.
    pub fn bind(address: SocketAddr, folder: &Path) -> Result<Self, ListenError> {
        let identity = Identity::load_or_make(folder)?;
        let peers = Arc::new(Mutex::new(Peers::load(folder)?));
        let failed = |source| ListenError::Address { address, source };
        let tcp = TcpListener::bind(address).map_err(failed)?;
        Ok(Self {
            address: tcp.local_addr().map_err(failed)?,
            tcp,
            fingerprint: identity.fingerprint(),
            rows: tls::server(&identity, Allowed::Known(Arc::clone(&peers)), ALPN_ROWS)?,
            control: tls::server(&identity, Allowed::Known(Arc::clone(&peers)), ALPN_CONTROL)?,
            pairing: tls::server(&identity, Allowed::Anyone, ALPN_PAIR)?,
            peers,
            desk: Mutex::default(),
            slots: Slots::default(),
        })
    }

    /// Where it listens, with the port the system chose if 0 was asked for.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// A new code for [`crate::pair_with`], in the place of the one before. It ends after one use,
    /// three attempts or ten minutes.
    pub fn open_code(&self) -> String {
        let code = Code::random();
        let shown = code.to_string();
        self.desk().show(code, Instant::now());
        shown
    }

    /// Accepts connections until [`Listener::stop`] and then waits for those under way. Each known
    /// head is given to `serve` on a thread of its own, or asks `control` from one, at most
    /// [`crate::MAX_CONNECTIONS`] at once; what happens beside that is told to `on_event`.
    pub fn run(
        &self,
        serve: impl Fn(Connection) + Send + Sync + 'static,
        control: Arc<dyn Control>,
        on_event: impl Fn(Event) + Send + Sync + 'static,
    ) {
        let host = Host { serve, control, on_event };
        std::thread::scope(|scope| {
            while !self.slots.stopped() {
                let begun = self.next().and_then(|arrival| {
                    let host = &host;
                    let attend = move || self.attend(arrival, host);
                    let thread = std::thread::Builder::new().name("motley-wire".to_owned());
                    thread.spawn_scoped(scope, attend).map_err(Event::CannotAccept)
                });
                match begun {
                    Err(_) if self.slots.stopped() => return,
                    Err(event) => (host.on_event)(event),
                    Ok(_) => {}
                }
            }
        });
    }

    /// The next connection there is a slot for.
    fn next(&self) -> Result<Arrival, Event> {
        let (tcp, from) = self.tcp.accept().map_err(|error| {
            std::thread::sleep(ACCEPT_REST);
            Event::CannotAccept(error)
        })?;
        match self.slots.take(&tcp) {
            Ok(Some(slot)) => Ok(Arrival { tcp, from, slot }),
            Ok(None) => Err(Event::Full { from }),
            Err(error) => Err(Event::CannotAccept(error)),
        }
    }

    /// Ends every connection and [`Listener::run`].
    pub fn stop(&self) {
        self.slots.stop();
        // `accept` wakes up for a connection alone.
        let mut own = self.address;
        if own.ip().is_unspecified() {
            own.set_ip(match own.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let _ = TcpStream::connect_timeout(&own, FAREWELL_TIME);
    }

    /// One connection, from its first byte to its end.
    fn attend(&self, arrival: Arrival, host: &Host<impl Fn(Connection), impl Fn(Event)>) {
        let Arrival { tcp, from, slot } = arrival;
        let Host { serve, control, on_event } = host;
        let welcomed = Socket::new(tcp, after(HANDSHAKE_TIME))
            .map_err(LaneError::from)
            .and_then(|socket| self.welcome(socket));
        match welcomed {
            Ok(Guest::Known(stream, peer)) => {
                on_event(Event::Connected { from, peer });
                serve(Connection { peer, from, link: Link::new(stream), _slot: slot });
                on_event(Event::Ended { from, peer });
            }
            Ok(Guest::Control(caller)) => {
                let on_known = |peer| on_event(Event::ControlConnected { from, peer });
                let config = Arc::clone(&self.control);
                on_event(match control_end::attend(caller, config, control, on_known) {
                    Ok(peer) => Event::ControlEnded { from, peer },
                    Err(why) => Event::Refused { from, why },
                });
            }
            Ok(Guest::Pairing(stream, peer)) => on_event(match self.pair(stream, from, peer) {
                Ok(()) => Event::Paired { from, peer },
                Err(why) => Event::NotPaired { from, why },
            }),
            Err(why) => on_event(Event::Refused { from, why }),
        }
    }

    /// The handshake. What kind it is, the first message says; that of control is only begun.
    fn welcome(&self, mut socket: Socket) -> Result<Guest, LaneError> {
        let accepted = match accept(&mut socket) {
            Ok(accepted) => accepted,
            Err(error) => return Err(refuse(socket, error)),
        };
        // Without a code it is treated as any other: there is no such protocol here.
        let pairing = offers(&accepted, ALPN_PAIR) && self.desk().is_open(Instant::now());
        if !pairing && offers(&accepted, ALPN_CONTROL) {
            let (tcp, left) = socket.into_tcp()?;
            return Ok(Guest::Control(Caller { accepted, tcp, left }));
        }
        let (config, protocol) =
            if pairing { (&self.pairing, ALPN_PAIR) } else { (&self.rows, ALPN_ROWS) };
        let connection = match shake_hands(accepted, Arc::clone(config), &mut socket) {
            Ok(connection) => connection,
            Err(error) => return Err(refuse(socket, error)),
        };
        let peer = tls::peer_of(&connection, protocol)?;
        let mut stream = StreamOwned::new(connection, socket);
        if pairing {
            return Ok(Guest::Pairing(stream, peer));
        }
        stream.write_all(&[READY])?;
        stream.flush()?;
        Ok(Guest::Known(stream, peer))
    }

    fn pair(
        &self,
        mut stream: Stream,
        from: SocketAddr,
        head: Fingerprint,
    ) -> Result<(), PairError> {
        stream.set_deadline(after(PAIRING_TIME));
        let ends = Ends { head, worker: self.fingerprint };
        let begin = || self.desk().begin(Instant::now());
        let result = pair::answer(&mut stream, &ends, begin, |attempt| {
            if !self.desk().succeed(attempt) {
                return Err(PairError::NoCode);
            }
            // Two users of one machine are two heads.
            let name = format!("{} {:.8}", from.ip(), head.to_string());
            Ok(lock(&self.peers).add(&name, head)?)
        });
        // What was said is said; the other end goes now.
        let _ = stream.close();
        result
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        lock(&self.desk)
    }
}

/// Nothing here is left half done by a panic of somebody else.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection of which nothing is known yet.
struct Arrival {
    tcp: TcpStream,
    from: SocketAddr,
    slot: Slot,
}

/// What the caller of [`Listener::run`] does with connections.
struct Host<S, E> {
    serve: S,
    control: Arc<dyn Control>,
    on_event: E,
}

type Stream = StreamOwned<ServerConnection, Socket>;

enum Guest {
    Known(Stream, Fingerprint),
    Control(Caller),
    Pairing(Stream, Fingerprint),
}

fn offers(accepted: &Accepted, protocol: &[u8]) -> bool {
    accepted.client_hello().alpn().into_iter().flatten().any(|offered| offered == protocol)
}

/// The first message of a handshake.
fn accept(socket: &mut Socket) -> Result<Accepted, LaneError> {
    let mut acceptor = Acceptor::default();
    loop {
        if acceptor.read_tls(socket)? == 0 {
            return Err(LaneError::Closed);
        }
        match acceptor.accept() {
            Ok(Some(accepted)) => return Ok(accepted),
            Ok(None) => {}
            Err((error, mut alert)) => {
                alert.write_all(socket)?;
                return Err(error.into());
            }
        }
    }
}

/// The rest of it.
fn shake_hands(
    accepted: Accepted,
    config: Arc<ServerConfig>,
    socket: &mut Socket,
) -> Result<ServerConnection, LaneError> {
    let mut connection = match accepted.into_connection(config) {
        Ok(connection) => connection,
        Err((error, mut alert)) => {
            alert.write_all(socket)?;
            return Err(error.into());
        }
    };
    while connection.is_handshaking() {
        connection.complete_io(socket)?;
    }
    Ok(connection)
}

fn refuse(socket: Socket, error: LaneError) -> LaneError {
    socket.farewell();
    error
}

/// A known head's connection, at the worker. Ends when it is dropped.
#[derive(Debug)]
pub struct Connection {
    /// Who is at the other end.
    pub peer: Fingerprint,
    /// And where.
    pub from: SocketAddr,
    link: Link,
    /// Given back after the link is gone.
    _slot: Slot,
}

impl Connection {
    /// The next frame, however long it takes to begin; `None` when the head has closed the
    /// connection. A frame once begun must be whole within 30 s. After any error the connection is
    /// of no use.
    pub fn receive(&mut self) -> Result<Option<(u64, Frame)>, LaneError> {
        self.link.receive(Patience::Begun(FRAME_TIME))
    }

    /// Hands a whole frame to the system, within 30 s; says how many bytes it had.
    pub fn send(&mut self, block: u64, frame: &Frame) -> Result<usize, LaneError> {
        self.link.send(block, frame)
    }

    /// Bytes of frames sent and received.
    pub fn counts(&self) -> (u64, u64) {
        self.link.counts()
    }
}

/// What happens at a listener, beside frames.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A known head is being served.
    Connected {
        from: SocketAddr,
        peer: Fingerprint,
    },
    /// Its connection is over.
    Ended {
        from: SocketAddr,
        peer: Fingerprint,
    },
    /// A known head asks about the worker, and does so no longer.
    ControlConnected {
        from: SocketAddr,
        peer: Fingerprint,
    },
    ControlEnded {
        from: SocketAddr,
        peer: Fingerprint,
    },
    /// Nobody that is known.
    Refused {
        from: SocketAddr,
        why: LaneError,
    },
    /// All connections are taken.
    Full {
        from: SocketAddr,
    },
    /// A head had the code and is known from now on.
    Paired {
        from: SocketAddr,
        peer: Fingerprint,
    },
    /// It had not.
    NotPaired {
        from: SocketAddr,
        why: PairError,
    },
    /// The system gives no connection, or no thread for one.
    CannotAccept(io::Error),
}

/// Why nothing listens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    #[error(transparent)]
    Keys(#[from] KeyError),
    #[error("{address}: cannot listen there ({source})")]
    Address { address: SocketAddr, source: io::Error },
    #[error("the key of this machine cannot be used ({0})")]
    Tls(#[from] rustls::Error),
}
