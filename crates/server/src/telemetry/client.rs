//! HTTP to a collector, for the exporter. Needs no file and no name once it is made.

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use std::net::SocketAddr;
use std::time::Duration;
use ureq::Agent;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// For one try, from connecting to the last byte of what the collector says.
const TRY_TIME: Duration = Duration::from_secs(5);
/// Of what the collector says.
const MAX_SAID_BYTES: u64 = 64 << 10;
/// As many as `ureq` takes.
const MAX_ADDRESSES: usize = 16;

/// The client. Redirects and proxies are not followed: the sandbox lets it reach one port alone.
#[derive(Debug)]
pub(super) struct Client(Agent);

impl Client {
    /// A client of who is at `addresses`, with the system's certificates where it `encrypts`.
    pub(super) fn new(addresses: Vec<SocketAddr>, encrypts: bool) -> Self {
        let certificates = if encrypts { root_certificates() } else { RootCerts::WebPki };
        let config = Agent::config_builder()
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(TRY_TIME))
            .user_agent(concat!("motley/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().root_certs(certificates).build())
            .build();
        Self(Agent::with_parts(config, DefaultConnector::default(), Known(addresses)))
    }
}

/// Called by the exporter's own thread, which may wait.
#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let answer = self.0.run(Request::from_parts(parts, &body[..]))?;
        let (parts, mut body) = answer.into_parts();
        let said = body.with_config().limit(MAX_SAID_BYTES).read_to_vec()?;
        Ok(Response::from_parts(parts, said.into()))
    }
}

/// Where the collector was found at the start.
#[derive(Debug)]
struct Known(Vec<SocketAddr>);

impl Resolver for Known {
    fn resolve(
        &self,
        _: &Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        self.0.iter().take(MAX_ADDRESSES).for_each(|address| addresses.push(*address));
        Ok(addresses)
    }
}

/// Those of the system; Mozilla's where it has none.
fn root_certificates() -> RootCerts {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return RootCerts::WebPki;
    }
    found.iter().map(|der| Certificate::from_der(der).to_owned()).into()
}
