//! The head's end of control: one connection, asked from a thread that waits.

use super::schema::control_client;
use super::schema::{FiguresRequest, JoinRequest};
use super::{Offer, OfferError, WorkerFigures};
use crate::error::LaneError;
use crate::frame::MAX_FAILED_BYTES;
use crate::keys::{Fingerprint, Identity};
use crate::lane::{reach, server_name};
use crate::limits::{CONTROL_HEADER_BYTES, CONTROL_MESSAGE_BYTES};
use crate::tls::{self, ALPN_CONTROL, Allowed};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::client::ClientConfig;
use std::error::Error;
use std::fmt;
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::AsyncBufReadExt;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::{Code, Response, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

/// What every request says it goes to; certificates say who is there.
const ORIGIN: &str = "https://motley";

/// A connection to one worker. Not for threads of an async runtime: its calls wait. A worker closes
/// one that was silent for half a minute or so.
pub struct ControlClient {
    pub(super) runtime: Runtime,
    pub(super) control: control_client::ControlClient<Sender>,
    pub(super) health: HealthClient<Sender>,
    /// Of each call.
    time: Duration,
}

impl ControlClient {
    /// Connects to the worker at `address` (`host:port`), which must be `peer` and know
    /// `identity`. This takes at most `time`, looking up the name not counted, and so does each
    /// call.
    pub fn connect(
        address: &str,
        identity: &Identity,
        peer: Fingerprint,
        time: Duration,
    ) -> Result<Self, ControlError> {
        let config = tls::client(identity, Allowed::One(peer), ALPN_CONTROL)?;
        let (tcp, left) = reach(address, time)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(LaneError::from)?;
        let sender = runtime
            .block_on(async { timeout(left, open(tcp, config)).await })
            .map_err(|_| LaneError::Late)??;
        let origin = http::Uri::from_static(ORIGIN);
        let control = control_client::ControlClient::with_origin(sender.clone(), origin.clone())
            .max_decoding_message_size(CONTROL_MESSAGE_BYTES);
        let health = HealthClient::with_origin(sender, origin)
            .max_decoding_message_size(CONTROL_MESSAGE_BYTES);
        Ok(Self { runtime, control, health, time })
    }

    /// What the worker computes, which must have the model of this hash.
    pub fn join(&mut self, model: [u8; 32]) -> Result<Offer, ControlError> {
        let request = JoinRequest { model: model.into() };
        let offer: Offer =
            wait(&self.runtime, self.time, self.control.join(request))?.try_into()?;
        if offer.model == model { Ok(offer) } else { Err(OfferError::OtherModel.into()) }
    }

    /// Whether the worker would compute rows now.
    pub fn health(&mut self) -> Result<bool, ControlError> {
        let request = HealthCheckRequest { service: String::new() };
        let said = wait(&self.runtime, self.time, self.health.check(request))?;
        Ok(said.status() == ServingStatus::Serving)
    }

    /// What the worker has done since it started.
    pub fn figures(&mut self) -> Result<WorkerFigures, ControlError> {
        let asked = self.control.figures(FiguresRequest {});
        wait(&self.runtime, self.time, asked).map(WorkerFigures::from)
    }
}

impl fmt::Debug for ControlClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ControlClient(calls of {:?})", self.time)
    }
}

/// Everything of the connection happens while somebody waits for an answer.
fn wait<T>(
    runtime: &Runtime,
    time: Duration,
    asked: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, ControlError> {
    match runtime.block_on(async { timeout(time, asked).await }) {
        Ok(answer) => answer.map(Response::into_inner).map_err(ControlError::from),
        Err(_) => Err(LaneError::Late.into()),
    }
}

async fn open(tcp: TcpStream, config: Arc<ClientConfig>) -> Result<Sender, LaneError> {
    tcp.set_nodelay(true)?;
    tcp.set_nonblocking(true)?;
    let tcp = tokio::net::TcpStream::from_std(tcp)?;
    let mut stream = TlsConnector::from(config).connect(server_name()?, tcp).await?;
    tls::peer_of(stream.get_ref().1, ALPN_CONTROL)?;
    wait_until_taken(&mut stream).await?;
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .max_header_list_size(CONTROL_HEADER_BYTES)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(broken)?;
    tokio::spawn(async move {
        // Whoever waits for an answer hears that the connection ended.
        let _ = connection.await;
    });
    Ok(Sender(sender))
}

/// In TLS 1.3 a client is done before the server has looked at it. The server's first frame comes
/// after that; without waiting for it, a refusal would look like a connection that broke.
async fn wait_until_taken<T>(stream: &mut TlsStream<T>) -> Result<(), LaneError>
where
    TlsStream<T>: tokio::io::AsyncBufRead + Unpin,
{
    if stream.fill_buf().await?.is_empty() { Err(LaneError::Closed) } else { Ok(()) }
}

/// What the system or TLS said, where one of them did.
fn broken(error: hyper::Error) -> LaneError {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(io) = inner.downcast_ref::<std::io::Error>() {
            return std::io::Error::from(io.kind()).into();
        }
        source = inner.source();
    }
    LaneError::Closed
}

/// Requests over one connection.
#[derive(Clone)]
pub(super) struct Sender(http2::SendRequest<Body>);

impl Service<http::Request<Body>> for Sender {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// Why a worker says nothing of itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No connection, or none any more.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// The worker does not do what it was asked for; in its words.
    #[error("{0}")]
    Unfit(String),
    /// The worker has no answer to this.
    #[error("it answers {code:?}: {message}")]
    Status { code: Code, message: String },
    /// What the worker says cannot be.
    #[error("it offers {0}")]
    Offer(#[from] OfferError),
}

impl From<rustls::Error> for ControlError {
    fn from(error: rustls::Error) -> Self {
        Self::Lane(error.into())
    }
}

impl From<Status> for ControlError {
    fn from(status: Status) -> Self {
        let connection = status.source().is_some_and(|source| source.is::<hyper::Error>());
        match status.code() {
            _ if connection => LaneError::Closed.into(),
            Code::FailedPrecondition => Self::Unfit(words(status.message())),
            code => Self::Status { code, message: words(status.message()) },
        }
    }
}

/// As much of a stranger's text as is shown; no terminal acts on it.
fn words(text: &str) -> String {
    let shown = &text[..text.floor_char_boundary(MAX_FAILED_BYTES)];
    shown.chars().filter(|character| !character.is_control()).collect()
}
