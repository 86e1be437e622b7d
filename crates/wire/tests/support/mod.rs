//! A worker that doubles rows and tells about it, and strangers that speak TLS without the library's manners.
#![allow(dead_code, reason = "each test takes what it needs")]
#![allow(clippy::disallowed_methods, reason = "tests own threads and read the clock")]

use motley_wire::frame::{Computed, Frame, Rows};
use motley_wire::{
    Connection, Control, ControlClient, ControlError, Event, Fingerprint, Identity, Lane,
    LaneError, Listener, Offer, Peers, WorkerFigures,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    ServerConnection, SignatureScheme, StreamOwned,
};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than anything here takes, also on a machine with other work.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A folder and who lives in it.
pub(crate) struct Machine {
    pub(crate) folder: TempDir,
    pub(crate) identity: Identity,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let identity = Identity::load_or_make(folder.path()).expect("an identity");
        Self { folder, identity }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.identity.fingerprint()
    }

    pub(crate) fn peers(&self) -> Peers {
        Peers::load(self.folder.path()).expect("peers")
    }

    pub(crate) fn knows(&self, name: &str, other: Fingerprint) {
        self.peers().add(name, other).expect("kept");
    }

    /// What a stranger's own program would read.
    pub(crate) fn chain_and_key(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let text = std::fs::read(self.folder.path().join("identity.pem")).expect("a key");
        let certificate = CertificateDer::from_pem_slice(&text).expect("a certificate");
        (vec![certificate], PrivateKeyDer::from_pem_slice(&text).expect("a key"))
    }
}

/// What a worker says of itself; anything.
pub(crate) struct Said {
    pub(crate) offer: Offer,
    pub(crate) figures: WorkerFigures,
    pub(crate) serving: bool,
}

impl Default for Said {
    fn default() -> Self {
        let offer = Offer {
            model: [7; 32],
            build: "motley 1 avx2".to_owned(),
            layers: vec![2, 3, 65_535],
            experts: 0..128,
            slots: 64,
        };
        let (requests, rows, failed, compute_us, disk_bytes, heads) = (1, 2, 3, 4, u64::MAX, 6);
        let figures = WorkerFigures { requests, rows, failed, compute_us, disk_bytes, heads };
        Self { offer, figures, serving: true }
    }
}

#[derive(Default)]
struct Mouth(Mutex<Said>);

impl Control for Mouth {
    fn offer(&self) -> Offer {
        self.0.lock().unwrap().offer.clone()
    }

    fn figures(&self) -> WorkerFigures {
        self.0.lock().unwrap().figures
    }

    fn is_serving(&self) -> bool {
        self.0.lock().unwrap().serving
    }
}

/// A worker on a thread, which doubles rows.
pub(crate) struct Worker {
    pub(crate) machine: Machine,
    mouth: Arc<Mouth>,
    pub(crate) listener: Arc<Listener>,
    pub(crate) events: Arc<Mutex<Vec<String>>>,
    running: Option<JoinHandle<()>>,
}

impl Worker {
    /// One that knows these heads.
    pub(crate) fn knowing(heads: &[&Machine]) -> Self {
        let machine = Machine::new();
        for (number, head) in heads.iter().enumerate() {
            machine.knows(&format!("head {number}"), head.fingerprint());
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Arc::new(Listener::bind(address, machine.folder.path()).expect("a port"));
        let events = Arc::<Mutex<Vec<String>>>::default();
        let mouth = Arc::<Mouth>::default();
        let (runner, told) = (Arc::clone(&listener), Arc::clone(&events));
        let control = Arc::clone(&mouth);
        let running = std::thread::spawn(move || {
            let tell = move |event: Event| told.lock().unwrap().push(format!("{event:?}"));
            runner.run(serve, control, tell);
        });
        Self { machine, mouth, listener, events, running: Some(running) }
    }

    pub(crate) fn address(&self) -> String {
        self.listener.local_address().to_string()
    }

    pub(crate) fn lane(&self, head: &Machine) -> Result<Lane, LaneError> {
        Lane::connect(&self.address(), &head.identity, self.machine.fingerprint(), LONG)
    }

    pub(crate) fn control(&self, head: &Machine) -> Result<ControlClient, ControlError> {
        ControlClient::connect(&self.address(), &head.identity, self.machine.fingerprint(), LONG)
    }

    /// From now on it says something else.
    pub(crate) fn say(&self, change: impl FnOnce(&mut Said)) {
        change(&mut self.mouth.0.lock().unwrap());
    }

    /// Waits for an event with these words.
    pub(crate) fn wait_for(&self, words: &str) {
        let begun = Instant::now();
        while !self.events.lock().unwrap().iter().any(|event| event.contains(words)) {
            assert!(begun.elapsed() < LONG, "no {words:?} in {:?}", self.events.lock().unwrap());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.listener.stop();
        if let Some(running) = self.running.take() {
            let ended = running.join();
            assert!(std::thread::panicking() || ended.is_ok(), "the listener panicked");
        }
    }
}

fn serve(mut connection: Connection) {
    while let Ok(Some((block, frame))) = connection.receive() {
        let answer = match frame {
            Frame::Rows(rows) => Frame::Computed(doubled(&rows)),
            other => Frame::Failed(format!("{:?} is no rows", other.kind())),
        };
        if connection.send(block, &answer).is_err() {
            return;
        }
    }
}

/// What an exchange must bring.
pub(crate) fn doubled(rows: &Rows) -> Computed {
    let width = rows.width as usize;
    let row = |place: &u32| rows.hidden[*place as usize * width..][..width].iter().map(|x| 2.0 * x);
    let out = rows.places.iter().flat_map(row).collect();
    Computed { width: rows.width, compute_us: 1, rows: out }
}

/// Some rows that are different for each seed.
pub(crate) fn rows(pairs: usize, hidden_rows: usize, width: usize, seed: u32) -> Rows {
    Rows {
        decode: true,
        layer: 5,
        width: width as u32,
        experts: (0..pairs as u32).collect(),
        places: (0..pairs).map(|pair| (pair % hidden_rows) as u32).collect(),
        hidden: (0..hidden_rows * width).map(|at| (at as u32 ^ seed) as f32).collect(),
    }
}

/// One exchange that works.
pub(crate) fn exchange(lane: &mut Lane, block: u64, rows: &Rows) {
    lane.send(block, &Frame::Rows(rows.clone())).expect("sent");
    let answer = lane.receive(LONG).expect("an answer");
    assert_eq!(answer, (block, Frame::Computed(doubled(rows))));
}

/// Takes every certificate.
#[derive(Debug)]
pub(crate) struct Anyone;

/// A client of its own making; without a machine it has no certificate, and maybe no protocol.
pub(crate) fn raw_client(
    address: &str,
    machine: Option<&Machine>,
    protocol: Option<&str>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone));
    let mut config = match machine.map(Machine::chain_and_key) {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).expect("a key"),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = protocol.into_iter().map(Into::into).collect();
    let name = ServerName::try_from("motley").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("settings");
    let tcp = TcpStream::connect(address).expect("a connection");
    tcp.set_read_timeout(Some(LONG)).expect("a time");
    StreamOwned::new(connection, tcp)
}

/// A server of its own making, for a client that is there.
pub(crate) fn raw_server(
    tcp: TcpStream,
    machine: &Machine,
    protocol: &str,
) -> StreamOwned<ServerConnection, TcpStream> {
    let (chain, key) = machine.chain_and_key();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_client_cert_verifier(Arc::new(Anyone))
        .with_single_cert(chain, key)
        .expect("a key");
    config.alpn_protocols = vec![protocol.into()];
    tcp.set_read_timeout(Some(LONG)).expect("a time");
    StreamOwned::new(ServerConnection::new(Arc::new(config)).expect("settings"), tcp)
}

macro_rules! any_signature {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            unreachable!("TLS 1.3 alone")
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let known = ring::default_provider().signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signature, &known)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            ring::default_provider().signature_verification_algorithms.supported_schemes()
        }
    };
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    any_signature!();
}

impl ClientCertVerifier for Anyone {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    any_signature!();
}
