//! Who may use the API: a key compared in constant time, and no foreign pages by way
//! of a name that points at this machine.

use crate::error::ApiError;
use axum::http::{HeaderMap, StatusCode, header};
use std::net::IpAddr;
use subtle::ConstantTimeEq;

/// Whether the request carries the key, if one is needed.
pub(crate) fn check_key(key: Option<&str>, headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(key) = key else { return Ok(()) };
    let given = headers.get(header::AUTHORIZATION).map_or(&[][..], |value| value.as_bytes());
    let scheme = given.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "));
    let token = if scheme { &given[7..] } else { &[] };
    // Takes the same time for every key of this length.
    if bool::from(token.ct_eq(key.as_bytes())) {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::UNAUTHORIZED,
        "invalid_api_key",
        "a valid API key is required: `Authorization: Bearer KEY`",
    ))
}

/// Without a key, a server on this machine only answers to this machine's names: a page
/// elsewhere could otherwise reach it through a name of its own (DNS rebinding).
pub(crate) fn check_host(listens_on: IpAddr, headers: &HeaderMap) -> Result<(), ApiError> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("");
    if !listens_on.is_loopback() || is_local(host) {
        return Ok(());
    }
    let message = "this server accepts requests for localhost only; start it with --api-key to use other names";
    Err(ApiError::new(StatusCode::FORBIDDEN, "host_not_allowed", message))
}

fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(""),
        None => host.split(':').next().unwrap_or(""),
    };
    let address = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    address || name.eq_ignore_ascii_case("localhost") || host.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, value.parse().unwrap())])
    }

    #[test]
    fn only_the_key_opens() {
        let with = |value| check_key(Some("secret"), &headers(header::AUTHORIZATION, value));
        assert!(with("Bearer secret").is_ok());
        assert!(with("bearer secret").is_ok());
        for wrong in ["Bearer secre", "Bearer secret2", "secret", "Basic secret", "Bearer", ""] {
            assert!(with(wrong).is_err(), "{wrong:?}");
        }
        assert!(check_key(Some("secret"), &HeaderMap::new()).is_err());
        assert!(check_key(None, &HeaderMap::new()).is_ok());
    }

    #[test]
    fn foreign_names_do_not_reach_a_local_server() {
        let local = "127.0.0.1".parse().unwrap();
        let check = |host| check_host(local, &headers(header::HOST, host)).is_ok();
        for host in ["localhost", "localhost:8080", "127.0.0.1:1", "[::1]:8080", "LOCALHOST"] {
            assert!(check(host), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "[::2]", "localhost.evil:80"] {
            assert!(!check(host), "{host}");
        }
        let public = "0.0.0.0".parse().unwrap();
        assert!(check_host(public, &headers(header::HOST, "any.example")).is_ok());
    }
}
