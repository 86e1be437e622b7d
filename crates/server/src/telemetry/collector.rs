//! A collector of traces: its address, and all that is needed of names and files to reach it later,
//! when a sandbox has closed both. Sends nothing.

use super::client::Client;
use axum::http::Uri;
use axum::http::uri::Scheme;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// Where the protocol has traces, below a collector's own address.
const TRACES: &str = "/v1/traces";

/// Why traces cannot go there.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// Not an address of HTTP.
    #[error("`{url}` is no URL such as http://127.0.0.1:4318, without user and password")]
    Url { url: String },
    /// Its name has no address.
    #[error("`{host}` cannot be found: {source}")]
    Name { host: String, source: io::Error },
    /// The exporter cannot be made as variables (`OTEL_…`) say.
    #[error("{reason}")]
    Exporter { reason: String },
}

/// A collector that was found.
#[derive(Debug)]
pub struct Collector {
    pub(super) url: String,
    port: u16,
    pub(super) client: Client,
}

impl Collector {
    /// Finds the collector at `url`: its name is looked up and certificates are read now, once and
    /// for all. `/v1/traces` is added unless it ends so.
    pub fn find(url: &str) -> Result<Self, CollectorError> {
        let (url, host, port) =
            parse(url).ok_or_else(|| CollectorError::Url { url: url.to_owned() })?;
        let failed = |source| CollectorError::Name { host: host.clone(), source };
        let found = (host.as_str(), port).to_socket_addrs().map_err(failed)?;
        let addresses: Vec<SocketAddr> = found.collect();
        if addresses.is_empty() {
            return Err(failed(io::Error::from(io::ErrorKind::NotFound)));
        }
        let client = Client::new(addresses, url.starts_with("https:"));
        Ok(Self { url, port, client })
    }

    /// The port connections are made to.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Where traces go, and the host and port of it.
fn parse(url: &str) -> Option<(String, String, u16)> {
    let uri: Uri = url.parse().ok()?;
    let (scheme, authority) = (uri.scheme()?, uri.authority()?);
    let usual = match () {
        () if *scheme == Scheme::HTTP => 80,
        () if *scheme == Scheme::HTTPS => 443,
        () => return None,
    };
    if authority.as_str().contains('@') || uri.query().is_some() {
        return None;
    }
    let path = uri.path().trim_end_matches('/');
    let rest = if path.ends_with(TRACES) { "" } else { TRACES };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let port = authority.port_u16().unwrap_or(usual);
    Some((format!("{scheme}://{authority}{path}{rest}"), host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_that_of_the_collector_or_of_its_traces() {
        for (given, url, host, port) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces", "127.0.0.1", 4318),
            ("http://[::1]:4318/", "http://[::1]:4318/v1/traces", "::1", 4318),
            ("https://a.example/otlp", "https://a.example/otlp/v1/traces", "a.example", 443),
            ("http://b/v1/traces", "http://b/v1/traces", "b", 80),
        ] {
            assert_eq!(parse(given), Some((url.to_owned(), host.to_owned(), port)), "{given}");
        }
        for wrong in ["", "127.0.0.1:4318", "grpc://a:4317", "http://u:p@a", "http://a?key=k"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
