//! Accepting connections, limiting what each may do, draining at the end. Handlers are in
//! `api`.

use crate::keys::Caller;
use crate::models::offered::{LoadError, OfferedModels};
use crate::models::{Models, keep};
use crate::options::ServeOptions;
use crate::peers::{PeerConnection, Peers, client_of};
use crate::routes::router;
use axum::Router;
use axum::http::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;
use tower::util::BoxCloneService;

/// Pause after a failed accept: too many open files do not go away at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The model that was to be there from the start cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The address is in use, or does not belong to this machine.
    #[error("cannot listen on {address}: {source}; choose another with --host and --port")]
    Listen { address: SocketAddr, source: std::io::Error },
}

/// A server that listens; [`Server::run`] answers.
pub struct Server {
    models: Arc<Models>,
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Listens, and loads the models `at_once`; the others wait until somebody asks for them.
    pub async fn start(
        offered: OfferedModels,
        at_once: &[usize],
        mut options: ServeOptions,
    ) -> Result<Self, ServeError> {
        let address = options.address;
        let failed = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        options.address = listener.local_addr().map_err(failed)?;
        let address = options.address;
        let models = Arc::new(Models::new(offered, options));
        at_once.iter().try_for_each(|model| models.load_now(*model))?;
        Ok(Self { models, listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is done; then running answers get their time and no new
    /// ones are taken. `true` when all could be finished. Nothing computes any more when this is
    /// done: a process may not end beside a thread that does.
    pub async fn run(self, stop: impl Future<Output = ()>) -> bool {
        let routes = router(Arc::clone(&self.models));
        let keeper = tokio::spawn(keep(Arc::clone(&self.models)));
        let graceful = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        let limits = &self.models.options.limits;
        let permits = Arc::new(Semaphore::new(limits.connections));
        let peers = Peers::new(limits.peer_connections);
        tokio::pin!(stop);
        let mut could_accept = true;
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next() => continue,
                accepted = accept(&self.listener, &permits) => accepted,
            };
            if let (Err(error), true) = (&accepted, could_accept) {
                tracing::warn!(target: "motley", "no connection can be accepted: {error}");
            }
            could_accept = accepted.is_ok();
            match accepted {
                Ok(((stream, peer), permit)) => match peers.connect(peer.ip()) {
                    Some(held) => {
                        let routes = routes_for(&routes, Caller::of_address(client_of(peer.ip())));
                        let connection = self.connection(stream, routes, &graceful);
                        connections.spawn(hold(connection, (permit, held)));
                    }
                    None => tracing::debug!(target: "motley", %peer, "has its share already"),
                },
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
        drop(self.listener);
        self.models.draining.store(true, Relaxed);
        let drain_time = self.models.options.limits.drain_time;
        let finished = tokio::time::timeout(drain_time, graceful.shutdown()).await.is_ok();
        keeper.abort();
        // Nobody is left who uses a model.
        let _ = keeper.await;
        connections.shutdown().await;
        self.models.options.telemetry.close().await;
        self.models.unload_all().await;
        finished
    }

    /// Answers a client until it leaves.
    fn connection(
        &self,
        stream: TcpStream,
        routes: ClientRoutes,
        graceful: &GracefulShutdown,
    ) -> impl Future + Send + use<> {
        // Answers are small pieces, each wanted at once.
        let _ = stream.set_nodelay(true);
        let limits = &self.models.options.limits;
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(limits.write_time));
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_time)
            .max_headers(limits.headers)
            .max_buf_size(limits.header_bytes)
            .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(routes));
        graceful.watch(connection)
    }
}

/// A connection, and what it takes of the limits while it lasts. How it ends is no matter: a client
/// that disconnects or violates HTTP is not an error of the server.
async fn hold(connection: impl Future, held: (OwnedSemaphorePermit, PeerConnection)) {
    let _ = connection.await;
    drop(held);
}

type ClientRoutes = BoxCloneService<Request<Incoming>, Response, Infallible>;

/// The routes, told whose requests they get.
fn routes_for(routes: &Router, caller: Caller) -> ClientRoutes {
    let tell = move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(caller);
        request
    };
    BoxCloneService::new(routes.clone().map_request(tell))
}

async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> std::io::Result<((TcpStream, SocketAddr), OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.map_err(std::io::Error::other)?;
    Ok((listener.accept().await?, permit))
}
