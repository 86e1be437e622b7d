//! Why a connection does not serve, told apart by what helps.

use crate::frame::FrameError;
use crate::keys::Fingerprint;
use rustls::{AlertDescription, CertificateError};
use std::io;

/// Why a connection could not be made, or is of no use any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaneError {
    /// No such host, or no port.
    #[error("{address}: not an address of the form host:port that can be found ({source})")]
    Address { address: String, source: io::Error },
    /// Nobody answers there.
    #[error("{address}: cannot be reached ({source})")]
    Connect { address: String, source: io::Error },
    /// The other end has another certificate than the one that is known.
    #[error("the other end is not known: its fingerprint is {found}; pair with it (--pair-code)")]
    Stranger { found: Fingerprint },
    /// The other end ended the handshake.
    #[error("the other end refused the connection ({alert:?}); pair with it")]
    Refused { alert: AlertDescription },
    /// What came is no TLS, or not as it must be here.
    #[error("no secure connection ({0})")]
    Tls(rustls::Error),
    /// What came is no frame, or what should go.
    #[error("{0}")]
    Frame(#[from] FrameError),
    /// Not all came, or went, in time.
    #[error("the other end took too long")]
    Late,
    /// The other end is gone.
    #[error("the other end closed the connection")]
    Closed,
    /// Used after an error.
    #[error("the connection failed before")]
    Broken,
    /// Anything else the system says.
    #[error("the connection broke ({0})")]
    Io(io::Error),
}

impl From<io::Error> for LaneError {
    fn from(error: io::Error) -> Self {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(tls) = tls {
            return tls.clone().into();
        }
        match error.kind() {
            io::ErrorKind::TimedOut => Self::Late,
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

impl From<rustls::Error> for LaneError {
    fn from(error: rustls::Error) -> Self {
        match error {
            rustls::Error::AlertReceived(alert) => Self::Refused { alert },
            rustls::Error::InvalidCertificate(CertificateError::Other(ref other)) => {
                match other.0.downcast_ref() {
                    Some(Unknown(found)) => Self::Stranger { found: *found },
                    None => Self::Tls(error),
                }
            }
            error => Self::Tls(error),
        }
    }
}

/// What a handshake fails with where the other end's certificate is not known.
#[derive(Debug, thiserror::Error)]
#[error("{0} is not known")]
pub(crate) struct Unknown(pub(crate) Fingerprint);
