//! An origin whose pages may call the API, as `--cors` names it. Checked when it is typed: a
//! browser compares origins byte for byte, so one written differently would never match.

use axum::http::{HeaderValue, Uri};
use std::str::FromStr;

/// Whose pages may call the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorsOrigin {
    /// `*`: every page.
    Any,
    /// Pages of this origin, as browsers write it.
    Exact(HeaderValue),
}

/// Why a text is no origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not an origin: write scheme://host or scheme://host:port, or `*` for all")]
pub struct NoOrigin {
    given: String,
}

impl FromStr for CorsOrigin {
    type Err = NoOrigin;

    fn from_str(given: &str) -> Result<Self, NoOrigin> {
        if given == "*" {
            return Ok(Self::Any);
        }
        let origin = normal(given).and_then(|origin| origin.parse().ok());
        let no_origin = || NoOrigin { given: given.escape_default().to_string() };
        origin.map(Self::Exact).ok_or_else(no_origin)
    }
}

/// In lower case and without the port its scheme has anyway.
fn normal(given: &str) -> Option<String> {
    let lower = given.to_ascii_lowercase();
    let uri: Uri = lower.parse().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    // Nothing but the two: no path, no user.
    if lower != format!("{scheme}://{authority}") || authority.as_str().contains('@') {
        return None;
    }
    let port = match authority.as_str().strip_prefix(authority.host())? {
        "" => None,
        port => Some(port.strip_prefix(':')?.parse::<u16>().ok()?),
    };
    let usual = matches!((scheme, port), ("http", Some(80)) | ("https", Some(443)));
    match port {
        Some(port) if !usual => Some(format!("{scheme}://{}:{port}", authority.host())),
        _ => Some(format!("{scheme}://{}", authority.host())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_taken_as_browsers_write_them() {
        let exact = |text: &'static str| CorsOrigin::Exact(HeaderValue::from_static(text));
        for (given, sent) in [
            ("https://ok.example", "https://ok.example"),
            ("HTTPS://OK.example:443", "https://ok.example"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://[::1]:80", "http://[::1]"),
            ("chrome-extension://abcdef", "chrome-extension://abcdef"),
        ] {
            assert_eq!(given.parse(), Ok(exact(sent)), "{given}");
        }
        assert_eq!("*".parse(), Ok(CorsOrigin::Any));
    }

    #[test]
    fn what_no_browser_sends_is_refused() {
        for given in [
            "",
            "ok.example",
            "https://",
            "https://ok.example/",
            "https://ok.example/path",
            "https://ok.example?q",
            "https://user@ok.example",
            "https://ok.example:99999",
            "https://ok.example:",
            "https://ok.example\u{7f}",
            "https://é.example",
            "https://a.example,https://b.example",
            "null",
            "**",
        ] {
            assert!(given.parse::<CorsOrigin>().is_err(), "{given}");
        }
    }
}
