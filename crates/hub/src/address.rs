//! Addresses of requests: parsed, joined with where a redirect points, compared by origin. Sends
//! nothing.

use crate::limits::MAX_URL_BYTES;
use std::fmt;
use ureq::http::Uri;

/// A URL of HTTP: scheme, host with port, and the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    https: bool,
    /// Host and port as written, in lower case.
    authority: String,
    /// Path and query.
    path: String,
}

impl Address {
    /// Parses an absolute URL without user or password.
    pub(crate) fn parse(url: &str) -> Option<Self> {
        if url.len() > MAX_URL_BYTES {
            return None;
        }
        let uri: Uri = url.split('#').next()?.parse().ok()?;
        let https = match uri.scheme_str()? {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let authority = uri.authority()?.as_str().to_ascii_lowercase();
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        (!authority.contains('@') && !authority.is_empty()).then_some(Self {
            https,
            authority,
            path,
        })
    }

    /// Where a redirect from here points: another URL, or a path on the same host.
    pub(crate) fn join(&self, location: &str) -> Option<Self> {
        match location {
            path if path.starts_with("//") => {
                Self::parse(&format!("{}:{path}", if self.https { "https" } else { "http" }))
            }
            path if path.starts_with('/') => Self::parse(&format!("{}{path}", self.origin())),
            url => Self::parse(url),
        }
    }

    /// Scheme, host and port.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", if self.https { "https" } else { "http" }, self.authority)
    }

    /// Whether going from here to `other` gives up encryption.
    pub(crate) fn downgrades_to(&self, other: &Self) -> bool {
        self.https && !other.https
    }
}

/// Without the query, which may hold a signature.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path.split('?').next().unwrap_or_default())
    }
}

impl Address {
    /// All of it, for the request itself.
    pub(crate) fn whole(&self) -> String {
        format!("{}{}", self.origin(), self.path)
    }
}

/// A path of a repository as part of a URL.
pub(crate) fn encoded(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    path.bytes().fold(String::new(), |mut text, byte| {
        match plain(byte) {
            true => text.push(char::from(byte)),
            false => text += &format!("%{byte:02X}"),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_joined_and_strange_ones_refused() {
        let here = Address::parse("https://Hub.example:8443/a/resolve/main/x.gguf?a=b").unwrap();
        assert_eq!(here.to_string(), "https://hub.example:8443/a/resolve/main/x.gguf");
        let joined = |location| here.join(location).map(|address| address.whole());
        assert_eq!(joined("/b?c=d").unwrap(), "https://hub.example:8443/b?c=d");
        assert_eq!(joined("//cdn.example/b").unwrap(), "https://cdn.example/b");
        assert_eq!(joined("http://cdn.example").unwrap(), "http://cdn.example/");
        for strange in ["file:///etc/passwd", "b", "", "https://u:p@cdn.example/", "ftp://x/y"] {
            assert_eq!(joined(strange), None, "{strange}");
        }
        assert!(here.downgrades_to(&Address::parse("http://hub.example:8443/").unwrap()));
    }

    #[test]
    fn paths_are_encoded() {
        assert_eq!(encoded("Q4 0/ü#?.gguf"), "Q4%200/%C3%BC%23%3F.gguf");
    }
}
