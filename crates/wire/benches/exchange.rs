//! One exchange of rows (16 KiB there, 64 KiB back) over loopback, as frames and as a unary call of
//! tonic, both under mutual TLS 1.3 with the same kind of keys: `cargo bench -p motley-wire`. Prints
//! p50 and p99 of each; the runs alternate, so that both see the same machine.
#![allow(clippy::disallowed_methods, reason = "a bench owns threads and reads the clock")]

use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use motley_wire::frame::{Computed, Frame, Rows};
use motley_wire::{Connection, Control, Identity, Lane, Listener, Offer, Peers, WorkerFigures};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

/// Floats of a row; one goes there, four come back.
const WIDTH: usize = 4096;
const PAIRS: usize = 4;
const WARM_UP: usize = 500;
const EXCHANGES: usize = 5000;
const ROUNDS: usize = 3;
const TIME: Duration = Duration::from_secs(10);

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let identity = Identity::load_or_make(folder.path()).expect("an identity");
    let mut peers = Peers::load(folder.path()).expect("peers");
    peers.add("itself", identity.fingerprint()).expect("kept");
    println!("16 KiB there, 64 KiB back, {EXCHANGES} exchanges; p50 and p99 in microseconds");
    for _ in 0..ROUNDS {
        report("frames", frames(folder.path(), &identity));
        report("tonic", tonic(folder.path()));
    }
}

fn report(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let at = |percent: usize| took[took.len() * percent / 100].as_micros();
    println!("{what:8} {:6} {:6}", at(50), at(99));
}

/// How long each took, after some that do not count.
fn time(mut exchange: impl FnMut()) -> Vec<Duration> {
    (0..WARM_UP).for_each(|_| exchange());
    let one = |_| {
        let begun = Instant::now();
        exchange();
        begun.elapsed()
    };
    (0..EXCHANGES).map(one).collect()
}

struct Nothing;

impl Control for Nothing {
    fn offer(&self) -> Offer {
        unreachable!("nobody asks")
    }

    fn figures(&self) -> WorkerFigures {
        WorkerFigures::default()
    }

    fn is_serving(&self) -> bool {
        true
    }
}

fn frames(folder: &Path, identity: &Identity) -> Vec<Duration> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(address, folder).expect("a port");
    std::thread::scope(|scope| {
        scope.spawn(|| listener.run(serve, Arc::new(Nothing), |_| {}));
        let address = listener.local_address().to_string();
        let lane = Lane::connect(&address, identity, identity.fingerprint(), TIME);
        let mut lane = lane.expect("a lane");
        let rows = Frame::Rows(Rows {
            decode: true,
            layer: 1,
            width: WIDTH as u32,
            experts: (0..PAIRS as u32).collect(),
            places: vec![0; PAIRS],
            hidden: vec![1.0; WIDTH],
        });
        let took = time(|| {
            lane.send(1, &rows).expect("sent");
            let (_, Frame::Computed(answer)) = lane.receive(TIME).expect("an answer") else {
                panic!("another answer")
            };
            assert_eq!(answer.rows.len(), PAIRS * WIDTH);
        });
        drop(lane);
        listener.stop();
        took
    })
}

fn serve(mut connection: Connection) {
    let (width, rows) = (WIDTH as u32, vec![1.0; PAIRS * WIDTH]);
    let answer = Frame::Computed(Computed { width, compute_us: 0, rows });
    while let Ok(Some((block, _))) = connection.receive() {
        connection.send(block, &answer).expect("sent");
    }
}

/// Floats as bytes on one connection, each end on a thread of its own.
fn tonic(folder: &Path) -> Vec<Duration> {
    let (server, client) = configs(folder);
    let runtime = single();
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::scope(|scope| {
        scope.spawn(move || runtime.block_on(answer(listener, TlsAcceptor::from(server))));
        let runtime = single();
        let sender = runtime.block_on(connect(address, TlsConnector::from(client)));
        let origin = http::Uri::from_static("https://motley");
        let mut grpc = tonic::client::Grpc::with_origin(sender, origin);
        let request = vec![1_u8; WIDTH * 4];
        time(|| {
            runtime.block_on(async {
                grpc.ready().await.expect("a connection");
                let path = http::uri::PathAndQuery::from_static("/rows/exchange");
                let codec = ProstCodec::<Vec<u8>, Vec<u8>>::default();
                let answer = grpc.unary(Request::new(request.clone()), path, codec).await;
                assert_eq!(answer.expect("an answer").into_inner().len(), PAIRS * WIDTH * 4);
            });
        })
    })
}

fn single() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// One connection, to its end.
async fn answer(listener: TcpListener, acceptor: TlsAcceptor) {
    let (tcp, _) = listener.accept().await.expect("a client");
    tcp.set_nodelay(true).expect("an option");
    let stream = acceptor.accept(tcp).await.expect("a handshake");
    let unary = tower::service_fn(async |request: http::Request<Incoming>| {
        let mut grpc = tonic::server::Grpc::new(ProstCodec::<Vec<u8>, Vec<u8>>::default());
        let rows = tower::service_fn(async |_: Request<Vec<u8>>| {
            Ok::<_, Status>(Response::new(vec![1_u8; PAIRS * WIDTH * 4]))
        });
        Ok::<_, Infallible>(grpc.unary(rows, request).await)
    });
    let served = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(unary))
        .await;
    // The client goes without a word.
    let _ = served;
}

async fn connect(address: SocketAddr, connector: TlsConnector) -> Sender {
    let tcp = TcpStream::connect(address).await.expect("a connection");
    tcp.set_nodelay(true).expect("an option");
    let name = ServerName::try_from("motley").expect("a name");
    let stream = connector.connect(name, tcp).await.expect("a handshake");
    let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    Sender(sender)
}

/// The key of the folder at both ends, its certificate trusted by both.
fn configs(folder: &Path) -> (Arc<ServerConfig>, Arc<ClientConfig>) {
    let text = std::fs::read(folder.join("identity.pem")).expect("a key");
    let certificate = CertificateDer::from_pem_slice(&text).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(&text).expect("a key");
    let chain = vec![certificate.clone()];
    let mut roots = RootCertStore::empty();
    roots.add(certificate).expect("a root");
    let (roots, provider) = (Arc::new(roots), Arc::new(ring::default_provider()));
    let tls13 = &[&rustls::version::TLS13];
    let clients =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
    let mut server = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(tls13)
        .expect("TLS 1.3")
        .with_client_cert_verifier(clients.build().expect("a verifier"))
        .with_single_cert(chain.clone(), key.clone_key())
        .expect("a key");
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(tls13)
        .expect("TLS 1.3")
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key)
        .expect("a key");
    server.alpn_protocols = vec![b"h2".to_vec()];
    client.alpn_protocols = vec![b"h2".to_vec()];
    (Arc::new(server), Arc::new(client))
}

/// Requests over one connection.
#[derive(Clone)]
struct Sender(SendRequest<Body>);

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
