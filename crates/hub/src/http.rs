//! One client for everything: follows redirects itself, shows the token to the endpoint alone, asks
//! for ranges and checks that it gets them. Knows no models and writes no files.

use crate::address::Address;
use crate::error::FetchError;
use crate::limits::{
    ANSWER_TIME, CONNECT_TIME, MAX_HTTP_HEADER_BYTES, MAX_JSON_BYTES, MAX_REDIRECTS,
    MAX_SAID_BYTES, READ_TIME,
};
use crate::retry::Retry;
use crate::settings::{Settings, Token};
use serde::de::DeserializeOwned;
use std::io::Read;
use std::time::Duration;
use ureq::http::{HeaderMap, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// The client.
#[derive(Debug)]
pub struct Client {
    agent: Agent,
    endpoint: String,
    /// The only origin the token is shown to.
    origin: String,
    token: Option<Token>,
    offline: bool,
    pub(crate) retry: Retry,
}

/// Bytes asked for: from, and how many at most; `None` is to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) from: u64,
    pub(crate) most: Option<u64>,
}

/// A piece of a file as it comes.
pub(crate) struct Piece {
    pub(crate) url: String,
    /// Where the body begins in the file: what was asked for, or 0 where the server gives all.
    pub(crate) from: u64,
    /// Length of the whole file, where the server says so.
    pub(crate) whole_bytes: Option<u64>,
    /// What tells this version of the file from another.
    pub(crate) etag: Option<String>,
    body: ureq::BodyReader<'static>,
}

impl Piece {
    /// Reads some bytes; 0 at the end.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, FetchError> {
        self.body
            .read(buffer)
            .map_err(|source| FetchError::Broken { url: self.url.clone(), source })
    }
}

impl Client {
    /// A client with these settings.
    pub fn new(settings: &Settings, retry: Retry) -> Self {
        let config = Agent::config_builder()
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIME))
            .timeout_recv_response(Some(ANSWER_TIME))
            .timeout_per_read(Some(READ_TIME))
            .max_response_header_size(MAX_HTTP_HEADER_BYTES)
            .user_agent(concat!("motley/", env!("CARGO_PKG_VERSION")))
            // Bytes as they are: lengths and ranges are those of the file.
            .accept_encoding("identity")
            .tls_config(TlsConfig::builder().root_certs(root_certificates()).build())
            .build();
        let origin = Address::parse(&settings.endpoint).map(|address| address.origin());
        Self {
            agent: config.into(),
            endpoint: settings.endpoint.clone(),
            origin: origin.unwrap_or_default(),
            token: settings.token.clone(),
            offline: settings.offline,
            retry,
        }
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// An answer in JSON, and the page after it if there is one.
    pub(crate) fn json<T: DeserializeOwned>(
        &self,
        url: &str,
    ) -> Result<(T, Option<String>), FetchError> {
        self.retry.until(|| self.json_once(url))
    }

    fn json_once<T: DeserializeOwned>(&self, url: &str) -> Result<(T, Option<String>), FetchError> {
        let (response, at) = self.get(url, None)?;
        let bad = |why: String| FetchError::Json { url: at.to_string(), why };
        let next = response.headers().get("link").and_then(|link| next_page(link.to_str().ok()?));
        let next = next.map(|next| {
            let joined = at.join(next).filter(|next| next.origin() == at.origin());
            joined.map(|next| next.whole()).ok_or_else(|| bad(format!("its next page is {next:?}")))
        });
        let mut body = response.into_body().into_reader().take(MAX_JSON_BYTES + 1);
        let mut bytes = Vec::new();
        body.read_to_end(&mut bytes)
            .map_err(|source| FetchError::Broken { url: at.to_string(), source })?;
        if bytes.len() as u64 > MAX_JSON_BYTES {
            return Err(bad(format!("more than the limit of {MAX_JSON_BYTES} bytes")));
        }
        let value = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        Ok((value, next.transpose()?))
    }

    /// A piece of a file; tried once.
    pub(crate) fn piece(&self, url: &str, span: Span) -> Result<Piece, FetchError> {
        let (response, at) = self.get(url, Some(span))?;
        let url = at.to_string();
        let header = |name: &str| text(response.headers(), name);
        let etag = header("etag").or_else(|| header("last-modified"));
        let (from, whole_bytes) = match response.status().as_u16() {
            206 => {
                let said = header("content-range").unwrap_or_default();
                let error =
                    || FetchError::Range { url: url.clone(), asked: span.from, said: said.clone() };
                let range = ContentRange::parse(&said).ok_or_else(error)?;
                if range.from != span.from {
                    return Err(error());
                }
                (range.from, range.whole)
            }
            _ => (0, header("content-length").and_then(|length| length.parse().ok())),
        };
        let body = response.into_body().into_reader();
        Ok(Piece { url, from, whole_bytes, etag, body })
    }

    /// Asks, and follows redirects; anything but 200 and 206 is an error.
    fn get(&self, url: &str, span: Option<Span>) -> Result<(Response<Body>, Address), FetchError> {
        let shown = || url.split('?').next().unwrap_or_default().to_owned();
        if self.offline {
            return Err(FetchError::Offline { url: shown() });
        }
        let mut at = Address::parse(url).ok_or_else(|| FetchError::Url { url: shown() })?;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.once(&at, span)?;
            match response.status().as_u16() {
                200 => return Ok((response, at)),
                206 if span.is_some() => return Ok((response, at)),
                301 | 302 | 303 | 307 | 308 => at = redirected(&at, response.headers())?,
                status => return Err(refused(&at, status, response)),
            }
        }
        let why = "one redirect too many";
        Err(FetchError::Redirect { url: shown(), to: at.to_string(), why })
    }

    fn once(&self, at: &Address, span: Option<Span>) -> Result<Response<Body>, FetchError> {
        let mut request = self.agent.get(at.whole());
        if let Some(Span { from, most }) = span {
            let last = most.map(|most| from.saturating_add(most.max(1) - 1).to_string());
            request = request.header("range", format!("bytes={from}-{}", last.unwrap_or_default()));
        }
        if let Some(token) = self.token.as_ref().filter(|_| at.origin() == self.origin) {
            request = request.header("authorization", format!("Bearer {}", token.secret()));
        }
        let url = || at.to_string();
        request
            .call()
            .map_err(|error| FetchError::Transport { url: url(), source: Box::new(error) })
    }
}

/// Those of the system, so that a company's own are known; Mozilla's where it has none.
fn root_certificates() -> RootCerts {
    let found = rustls_native_certs::load_native_certs().certs;
    if found.is_empty() {
        return RootCerts::WebPki;
    }
    found.iter().map(|der| Certificate::from_der(der).to_owned()).into()
}

fn redirected(at: &Address, headers: &HeaderMap) -> Result<Address, FetchError> {
    let to = text(headers, "location").unwrap_or_default();
    let error = |why| {
        let to = to.split('?').next().unwrap_or_default().to_owned();
        FetchError::Redirect { url: at.to_string(), to, why }
    };
    let next = at.join(&to).ok_or_else(|| error("which is no URL that is followed"))?;
    match at.downgrades_to(&next) {
        true => Err(error("which gives up encryption")),
        false => Ok(next),
    }
}

fn refused(at: &Address, status: u16, response: Response<Body>) -> FetchError {
    let seconds = text(response.headers(), "retry-after").and_then(|value| value.parse().ok());
    let named = text(response.headers(), "x-error-message");
    let said = named.unwrap_or_else(|| {
        let mut bytes = Vec::new();
        // What it says is a help; that it cannot be read is no other error.
        let _ = response.into_body().into_reader().take(MAX_SAID_BYTES).read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    });
    // On one line, so that it is not taken for anything else that is said.
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = said.chars().take(MAX_SAID_BYTES as usize).collect();
    let asked_wait = Duration::from_secs(seconds.unwrap_or(0));
    FetchError::Status { url: at.to_string(), status, said, asked_wait }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// `<URL>; rel="next"` among others.
fn next_page(link: &str) -> Option<&str> {
    let part = link.split(',').find(|part| part.contains("rel=\"next\""))?;
    part.trim().strip_prefix('<')?.split_once('>').map(|(url, _)| url)
}

/// `bytes 0-99/1000`, or `*` for a length nobody knows.
struct ContentRange {
    from: u64,
    whole: Option<u64>,
}

impl ContentRange {
    fn parse(text: &str) -> Option<Self> {
        let (range, whole) = text.strip_prefix("bytes ")?.split_once('/')?;
        let (from, last) = range.split_once('-')?;
        let (from, last): (u64, u64) = (from.parse().ok()?, last.parse().ok()?);
        let whole = match whole {
            "*" => None,
            whole => Some(whole.parse().ok()?),
        };
        let sound = from <= last && whole.is_none_or(|whole| last < whole);
        sound.then_some(Self { from, whole })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_a_server_are_read_with_care() {
        let range = |text| ContentRange::parse(text).map(|range| (range.from, range.whole));
        assert_eq!(range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(range("bytes 0-9/*"), Some((0, None)));
        for wrong in ["", "bytes 5-4/10", "bytes 0-10/10", "bytes */10", "bytes -1-2/3", "x 0-1/2"]
        {
            assert_eq!(range(wrong), None, "{wrong}");
        }
        let link = r#"<https://a/b?cursor=c>; rel="next", <https://a/b>; rel="last""#;
        assert_eq!(next_page(link), Some("https://a/b?cursor=c"));
        assert_eq!(next_page("https://a/b; rel=\"next\""), None);
    }
}
