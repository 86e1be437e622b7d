//! Settings of rustls: TLS 1.3 on which both ends show a certificate. Instead of names and
//! authorities, fingerprints are compared; that an end has the key to its certificate is checked
//! as everywhere. Sessions are never resumed, so every connection is checked anew.

use crate::error::{LaneError, Unknown};
use crate::keys::{Fingerprint, Identity, Peers};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ServerConfig};
use rustls::version::TLS13;
use rustls::{
    CertificateError, CommonState, DigitallySignedStruct, DistinguishedName, Error, OtherError,
    SignatureScheme,
};
use std::sync::{Arc, Mutex, PoisonError};

/// Protocol of frames.
pub(crate) const ALPN_ROWS: &[u8] = b"motley-rows/1";
/// Protocol of control: HTTP/2.
pub(crate) const ALPN_CONTROL: &[u8] = b"h2";
/// Protocol of two that do not know each other yet.
pub(crate) const ALPN_PAIR: &[u8] = b"motley-pair/1";

/// Whose certificates are taken.
#[derive(Debug)]
pub(crate) enum Allowed {
    One(Fingerprint),
    /// Those known at the time of the handshake.
    Known(Arc<Mutex<Peers>>),
    /// Everyone's: who it is, is found out afterwards.
    Anyone,
}

/// Settings of the end that connects.
pub(crate) fn client(
    identity: &Identity,
    allowed: Allowed,
    protocol: &[u8],
) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Verifier::new(allowed, &provider));
    let (chain, key) = identity.chain_and_key();
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_auth_cert(chain, key)?;
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(Arc::new(config))
}

/// Settings of the end that listens. A client without a certificate is refused.
pub(crate) fn server(
    identity: &Identity,
    allowed: Allowed,
    protocol: &[u8],
) -> Result<Arc<ServerConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Verifier::new(allowed, &provider));
    let (chain, key) = identity.chain_and_key();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![protocol.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Who is at the other end, after a handshake for `protocol`. An end that offers no protocol at
/// all is let through by rustls, and stopped here.
pub(crate) fn peer_of(connection: &CommonState, protocol: &[u8]) -> Result<Fingerprint, LaneError> {
    if connection.alpn_protocol() != Some(protocol) {
        return Err(LaneError::Tls(Error::NoApplicationProtocol));
    }
    let certificate = connection.peer_certificates().and_then(<[_]>::first);
    let certificate = certificate.ok_or(LaneError::Tls(Error::NoCertificatesPresented))?;
    Ok(Fingerprint::of(certificate))
}

#[derive(Debug)]
struct Verifier {
    allowed: Allowed,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn new(allowed: Allowed, provider: &CryptoProvider) -> Self {
        Self { allowed, algorithms: provider.signature_verification_algorithms }
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let found = Fingerprint::of(certificate);
        let allowed = match &self.allowed {
            Allowed::One(wanted) => *wanted == found,
            Allowed::Known(peers) => {
                peers.lock().unwrap_or_else(PoisonError::into_inner).allows(&found)
            }
            Allowed::Anyone => true,
        };
        if allowed {
            return Ok(());
        }
        let unknown = OtherError(Arc::new(Unknown(found)));
        Err(Error::InvalidCertificate(CertificateError::Other(unknown)))
    }

    fn check_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }
}

/// Of handshakes that are never made here.
fn older_than_13() -> Error {
    Error::General("TLS 1.2 is not spoken here".to_owned())
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(older_than_13())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(older_than_13())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
