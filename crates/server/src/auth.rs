//! Who may use the API: a key, compared in constant time. Names of hosts are checked in `host`.

use crate::error::ApiError;
use axum::http::{HeaderMap, StatusCode, header};
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
}
