//! Who may use the API: a key, compared in constant time; what it gives is in `keys`. Names of hosts are checked in `host`.

use crate::error::ApiError;
use crate::keys::ApiKey;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use subtle::ConstantTimeEq;

/// Where Anthropic's clients put the key.
pub(crate) const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The number of the key that the request carries; `None` where none is needed.
pub(crate) fn check_key(keys: &[ApiKey], headers: &HeaderMap) -> Result<Option<usize>, ApiError> {
    if keys.is_empty() {
        return Ok(None);
    }
    let (token, plain) = (bearer(headers), value(headers, &X_API_KEY));
    let mut found = None;
    for (number, key) in keys.iter().enumerate() {
        // All are compared, and each takes the same time for every key of its length.
        let opens = |given: &[u8]| bool::from(given.ct_eq(key.key.as_bytes()));
        if opens(token) | opens(plain) {
            found = Some(number);
        }
    }
    let wrong = || {
        ApiError::new(
            StatusCode::UNAUTHORIZED,
            "invalid_api_key",
            "a valid API key is required: `Authorization: Bearer KEY` or `X-Api-Key: KEY`",
        )
    };
    found.map(Some).ok_or_else(wrong)
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
        let key = |key: &str| ApiKey { key: key.into(), terms: None };
        let keys = [key("other"), key("secret")];
        let with = |value| check_key(&keys, &headers(header::AUTHORIZATION, value));
        assert_eq!(with("Bearer secret"), Ok(Some(1)));
        assert_eq!(with("bearer other"), Ok(Some(0)));
        for wrong in ["Bearer secre", "Bearer secret2", "secret", "Basic secret", "Bearer", ""] {
            assert!(with(wrong).is_err(), "{wrong:?}");
        }
        let plain = |value| check_key(&keys, &headers(X_API_KEY, value));
        assert!(plain("secret").is_ok());
        assert!(plain("Bearer secret").is_err() && plain("").is_err());
        assert!(check_key(&keys, &HeaderMap::new()).is_err());
        assert_eq!(check_key(&[], &HeaderMap::new()), Ok(None));
    }
}
