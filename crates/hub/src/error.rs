//! Why a request failed, and whether the same one may succeed later.

use crate::limits::MAX_ASKED_WAIT;
use std::io;
use std::time::Duration;

/// Why a request failed. URLs are shown without their query.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// No request is allowed.
    #[error("{url}: not asked for, because HF_HUB_OFFLINE is set")]
    Offline { url: String },
    /// No answer, or one that broke off.
    #[error("{url}: cannot be reached ({source})")]
    Transport { url: String, source: Box<ureq::Error> },
    /// The answer broke off.
    #[error("{url}: the connection broke ({source})")]
    Broken { url: String, source: io::Error },
    /// The answer ended before all of it was there.
    #[error("{url}: the answer ended after {bytes} bytes, too early")]
    Early { url: String, bytes: u64 },
    /// An answer that is not the thing.
    #[error("{url}: {}{}", meaning(*status), with_colon(said))]
    Status { url: String, status: u16, said: String, asked_wait: Duration },
    /// A redirect that is not followed.
    #[error("{url}: redirected to {to:?}, {why}")]
    Redirect { url: String, to: String, why: &'static str },
    /// Another piece than was asked for.
    #[error("{url}: asked for bytes from {asked}, got {said:?}")]
    Range { url: String, asked: u64, said: String },
    /// JSON that cannot be used.
    #[error("{url}: the answer cannot be used: {why}")]
    Json { url: String, why: String },
    /// A URL that is none.
    #[error("{url:?}: not a URL of http or https without user and password")]
    Url { url: String },
}

fn meaning(status: u16) -> String {
    match status {
        401 | 403 => format!(
            "{status}: not allowed; a private or gated model needs HF_TOKEN, and its terms \
             accepted on its page"
        ),
        404 => "404: there is no such model or file".to_owned(),
        429 => "429: too many requests".to_owned(),
        status => format!("the server answered {status}"),
    }
}

fn with_colon(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

impl FetchError {
    /// Whether the same request may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Transport { source, .. } => match &**source {
                // A certificate nobody vouches for comes as data that is not valid.
                ureq::Error::Io(error) => error.kind() != io::ErrorKind::InvalidData,
                // A name is not found while a network is away, too.
                ureq::Error::HostNotFound
                | ureq::Error::Timeout(_)
                | ureq::Error::Protocol(_)
                | ureq::Error::ConnectionFailed
                | ureq::Error::BodyStalled => true,
                _ => false,
            },
            Self::Broken { .. } | Self::Early { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 425 | 429 | 500..=599),
            _ => false,
        }
    }

    /// How long the server asked to wait, as far as that is followed.
    pub(crate) fn asked_wait(&self) -> Duration {
        match self {
            Self::Status { asked_wait, .. } => (*asked_wait).min(MAX_ASKED_WAIT),
            _ => Duration::ZERO,
        }
    }
}
