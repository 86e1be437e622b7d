//! The worker's end of control. A connection has its own thread, as those of rows have, and a
//! runtime on it: what one peer does holds up no other, and whoever answers may take its time.

use super::schema::control_server::{self, ControlServer};
use super::schema::{FiguresRequest, FiguresResponse, JoinRequest, Offer};
use super::{Control, hash};
use crate::error::LaneError;
use crate::keys::Fingerprint;
use crate::limits::{
    CONTROL_HEADER_BYTES, CONTROL_IDLE_TIME, CONTROL_MESSAGE_BYTES, CONTROL_PING_TIME,
    CONTROL_STREAMS, CONTROL_WATCH_TIME, FAREWELL_BYTES, FAREWELL_TIME,
};
use crate::tls::{self, ALPN_CONTROL};
use futures_util::stream::{self, Stream};
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::server::{Accepted, ServerConfig};
use std::io;
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::server::{StartHandshake, TlsStream};
use tonic::service::Routes;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// A peer whose first message asked for control.
pub(crate) struct Caller {
    pub(crate) accepted: Accepted,
    pub(crate) tcp: TcpStream,
    /// What is left of the time for its handshake.
    pub(crate) left: Duration,
}

/// Silence of a peer is an error of this; boxed, because it has clocks in it.
type Socket = Pin<Box<TimeoutStream<tokio::net::TcpStream>>>;

/// The rest of a peer's handshake, and then what it asks, until it goes. `on_known` is told who it
/// is in between.
pub(crate) fn attend(
    caller: Caller,
    config: Arc<ServerConfig>,
    control: &Arc<dyn Control>,
    on_known: impl FnOnce(Fingerprint),
) -> Result<Fingerprint, LaneError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (stream, peer) = shake_hands(caller, config).await?;
        on_known(peer);
        answer(stream, Door(Arc::clone(control))).await;
        Ok(peer)
    })
}

async fn shake_hands(
    caller: Caller,
    config: Arc<ServerConfig>,
) -> Result<(TlsStream<Socket>, Fingerprint), LaneError> {
    let Caller { accepted, tcp, left } = caller;
    tcp.set_nonblocking(true)?;
    let mut socket = TimeoutStream::new(tokio::net::TcpStream::from_std(tcp)?);
    socket.set_read_timeout(Some(CONTROL_IDLE_TIME));
    socket.set_write_timeout(Some(CONTROL_IDLE_TIME));
    let start = StartHandshake::from_parts(accepted, Box::pin(socket));
    let done = timeout(left, start.into_stream(config).into_fallible()).await;
    match done.map_err(|_| LaneError::Late)? {
        Ok(stream) => {
            let peer = tls::peer_of(stream.get_ref().1, ALPN_CONTROL)?;
            Ok((stream, peer))
        }
        Err((error, socket)) => {
            // Whether it hears why is its own affair.
            let _ = timeout(FAREWELL_TIME, farewell(socket)).await;
            Err(error.into())
        }
    }
}

/// Ends the connection so that the alert arrives: bytes nobody read would make the system tear it
/// down before.
async fn farewell(mut socket: Socket) -> io::Result<u64> {
    socket.shutdown().await?;
    tokio::io::copy(&mut socket.take(FAREWELL_BYTES), &mut tokio::io::sink()).await
}

async fn answer(stream: TlsStream<Socket>, door: Door) {
    let control = ControlServer::new(door.clone()).max_decoding_message_size(CONTROL_MESSAGE_BYTES);
    let health = HealthServer::new(door).max_decoding_message_size(CONTROL_MESSAGE_BYTES);
    let routes = Routes::new(control).add_service(health).prepare();
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(CONTROL_PING_TIME)
        .keep_alive_timeout(CONTROL_PING_TIME)
        .max_concurrent_streams(CONTROL_STREAMS)
        .max_header_list_size(CONTROL_HEADER_BYTES)
        .max_send_buf_size(CONTROL_MESSAGE_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    // A peer that goes, or speaks no HTTP/2, is its own affair too.
    let _ = connection.await;
}

/// Where requests come in.
#[derive(Clone)]
struct Door(Arc<dyn Control>);

#[tonic::async_trait]
impl control_server::Control for Door {
    async fn join(&self, request: Request<JoinRequest>) -> Result<Response<Offer>, Status> {
        let wanted = hash(&request.into_inner().model)
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        let offer = self.0.offer();
        if offer.model != wanted {
            let other = "this worker has another model; both need the same file";
            return Err(Status::failed_precondition(other));
        }
        Ok(Response::new(offer.into()))
    }

    async fn figures(
        &self,
        _: Request<FiguresRequest>,
    ) -> Result<Response<FiguresResponse>, Status> {
        Ok(Response::new(self.0.figures().into()))
    }
}

impl Door {
    /// The whole, by no name, or its one service.
    fn status(&self, service: &str) -> ServingStatus {
        match service {
            "" | control_server::SERVICE_NAME if self.0.is_serving() => ServingStatus::Serving,
            "" | control_server::SERVICE_NAME => ServingStatus::NotServing,
            _ => ServingStatus::ServiceUnknown,
        }
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for Door {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        match self.status(&request.into_inner().service) {
            ServingStatus::ServiceUnknown => Err(Status::not_found("no such service here")),
            status => Ok(Response::new(response(status))),
        }
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let state = (self.clone(), request.into_inner().service, None);
        let changes = stream::unfold(state, async |(door, service, last)| {
            loop {
                let now = door.status(&service);
                if last != Some(now) {
                    return Some((Ok(response(now)), (door, service, Some(now))));
                }
                sleep(CONTROL_WATCH_TIME).await;
            }
        });
        Ok(Response::new(Box::pin(changes)))
    }
}
