//! Who may use the API: a key, compared in constant time. Names of hosts are checked in `host`.

use crate::error::ApiError;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use subtle::ConstantTimeEq;

/// Where Anthropic's clients put the key.
pub(crate) const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Whether the request carries the key, if one is needed.
pub(crate) fn check_key(key: Option<&str>, headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(key) = key else { return Ok(()) };
    let plain = value(headers, &X_API_KEY);
    // Takes the same time for every key of this length.
    let opens = |given: &[u8]| bool::from(given.ct_eq(key.as_bytes()));
    if opens(bearer(headers)) | opens(plain) {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::UNAUTHORIZED,
        "invalid_api_key",
        "a valid API key is required: `Authorization: Bearer KEY` or `X-Api-Key: KEY`",
    ))
}

fn bearer(headers: &HeaderMap) -> &[u8] {
    let given = value(headers, &header::AUTHORIZATION);
    let scheme = given.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "));
    if scheme { &given[7..] } else { &[] }
}

fn value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a [u8] {
    headers.get(name).map_or(&[][..], |value| value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
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
        let plain = |value| check_key(Some("secret"), &headers(X_API_KEY, value));
        assert!(plain("secret").is_ok());
        assert!(plain("Bearer secret").is_err() && plain("").is_err());
        assert!(check_key(Some("secret"), &HeaderMap::new()).is_err());
        assert!(check_key(None, &HeaderMap::new()).is_ok());
    }
}
