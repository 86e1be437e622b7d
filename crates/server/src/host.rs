//! The name a request was sent to: well-formed, said once, and this machine's own where a
//! foreign page could otherwise reach the server through a name of its own (DNS rebinding).

use crate::error::ApiError;
use axum::http::{HeaderMap, StatusCode, Uri, Version, header};
use std::net::IpAddr;

/// The name a request was sent to, without its port; `None` when an old client says none.
/// Refuses what has two readings: RFC 9112, 3.2 asks for 400.
pub(crate) fn requested_host<'a>(
    version: Version,
    uri: &'a Uri,
    headers: &'a HeaderMap,
) -> Result<Option<&'a str>, ApiError> {
    let mut said = headers.get_all(header::HOST).iter();
    let host = said.next();
    if said.next().is_some() {
        return Err(malformed("a request must have one Host header"));
    }
    let target = uri.authority().map(|authority| authority.as_str());
    let Some(host) = host else {
        return match (version >= Version::HTTP_11, target) {
            (true, _) => Err(malformed("a request must have a Host header")),
            (false, None) => Ok(None),
            (false, Some(target)) => name(target).map(Some),
        };
    };
    let host = std::str::from_utf8(host.as_bytes())
        .map_err(|_| malformed("the Host header must be a name or an address"))?;
    // A proxy may believe the one and we the other.
    if target.is_some_and(|target| !target.eq_ignore_ascii_case(host)) {
        return Err(malformed("the request's target and its Host header differ"));
    }
    name(host).map(Some)
}

/// Whether a server that listens on `listens_on`, without a key, answers to `name`.
pub(crate) fn check_host(listens_on: IpAddr, name: Option<&str>) -> Result<(), ApiError> {
    if !listens_on.is_loopback() || name.is_none_or(is_local) {
        return Ok(());
    }
    let message = "this server accepts requests for localhost only; start it with --api-key to use other names";
    Err(ApiError::new(StatusCode::FORBIDDEN, "host_not_allowed", message))
}

/// The name of `name[:port]`; of an IPv6 address what is between the brackets.
fn name(host: &str) -> Result<&str, ApiError> {
    let (name, rest) = match host.strip_prefix('[') {
        Some(inner) => inner.split_once(']').unwrap_or(("", "")),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~%".contains(c);
    let address = |c: char| c.is_ascii_hexdigit() || ":.".contains(c);
    let known = match host.starts_with('[') {
        true => name.chars().all(address),
        false => name.chars().all(plain),
    };
    let port = rest.strip_prefix(':').unwrap_or(rest);
    if name.is_empty() || !known || !port.chars().all(|c| c.is_ascii_digit()) {
        return Err(malformed("the Host header must be a name or an address"));
    }
    Ok(name)
}

fn is_local(name: &str) -> bool {
    let address = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    address || name.eq_ignore_ascii_case("localhost")
}

fn malformed(message: &str) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "bad_host", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn asked(target: &str, hosts: &[&[u8]]) -> Result<Option<String>, ApiError> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, HeaderValue::from_bytes(host).unwrap());
        }
        let uri = target.parse().unwrap();
        requested_host(Version::HTTP_11, &uri, &headers).map(|name| name.map(str::to_owned))
    }

    #[test]
    fn one_well_formed_host_is_a_name() {
        for (host, name) in
            [("localhost:8080", "localhost"), ("[::1]:80", "::1"), ("a-b.example", "a-b.example")]
        {
            assert_eq!(asked("/", &[host.as_bytes()]).unwrap().as_deref(), Some(name));
        }
        let absolute = asked("http://localhost:1/v1", &[b"LOCALHOST:1"]);
        assert_eq!(absolute.unwrap().as_deref(), Some("LOCALHOST"));
    }

    #[test]
    fn hosts_with_two_readings_are_refused() {
        let bad: [&[u8]; 10] = [
            b"\xe9vil.example",
            "évil.example".as_bytes(),
            b"",
            b"localhost:80@evil.example",
            b"user@localhost",
            b"localhost evil",
            b"localhost/",
            b"[::1",
            b"[::1]evil",
            b"localhost:80:80",
        ];
        for host in bad {
            assert!(asked("/", &[host]).is_err(), "{}", String::from_utf8_lossy(host));
        }
        assert!(asked("/", &[]).is_err(), "none");
        assert!(asked("/", &[b"localhost", b"evil.example"]).is_err(), "two");
        assert!(asked("/", &[b"localhost", b"localhost"]).is_err(), "two alike");
        assert!(asked("http://evil.example/", &[b"localhost"]).is_err(), "another target");
    }

    #[test]
    fn an_old_client_need_not_say_a_host() {
        let (uri, headers) = (Uri::from_static("/health"), HeaderMap::new());
        assert_eq!(requested_host(Version::HTTP_10, &uri, &headers).unwrap(), None);
    }

    #[test]
    fn foreign_names_do_not_reach_a_local_server() {
        let local = "127.0.0.1".parse().unwrap();
        for host in ["localhost", "127.0.0.1", "::1", "LOCALHOST"] {
            assert!(check_host(local, Some(host)).is_ok(), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "::2", "localhost.evil", ""] {
            assert!(check_host(local, Some(host)).is_err(), "{host}");
        }
        assert!(check_host("0.0.0.0".parse().unwrap(), Some("any.example")).is_ok());
    }
}
