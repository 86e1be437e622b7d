//! What the hub holds, how it behaves, and who asked what: shared by its threads.

use super::message::{Reply, Request, Stored};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Answers in place of the usual one.
pub type Instead = Box<dyn Fn(&Request) -> Option<Reply> + Send>;

/// How the server behaves; the default is well.
#[derive(Default)]
pub struct Behaviour {
    /// Every other answer of weights ends at a random byte; drawn from this seed.
    pub breaks: Option<u64>,
    /// Weights come no faster than this, over all connections of one file.
    pub bytes_per_s: Option<u64>,
    /// Answers of weights wait until this is false again.
    pub holds_weights: bool,
    /// The file whose first byte of weights is another one.
    pub damages: Option<String>,
    /// Ranges are not understood.
    pub ignores_ranges: bool,
    /// Nobody is answered without this token.
    pub wants_token: Option<String>,
    /// What is said in place of the usual.
    pub instead: Option<Instead>,
}

/// One request, as it was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Whether the endpoint was asked, or the host of the bytes.
    pub endpoint: bool,
    pub method: String,
    pub path: String,
    pub range: Option<String>,
    pub token: Option<String>,
}

impl Asked {
    /// Whether it asks for a file to its end, as downloads do; headers are asked for by pieces.
    pub fn is_for_weights(&self) -> bool {
        let open = self.range.as_deref().is_none_or(|range| range.ends_with('-'));
        let of_bytes = self.path.starts_with("/bytes/") || self.path.starts_with("/plain/");
        self.method == "GET" && of_bytes && open
    }
}

/// What both hosts share.
pub(super) struct State {
    pub(super) files: Mutex<BTreeMap<(String, String), Stored>>,
    pub(super) behaviour: Mutex<Behaviour>,
    pub(super) log: Mutex<Vec<Asked>>,
    pub(super) bytes_host: SocketAddr,
}

impl State {
    pub(super) fn files(&self) -> MutexGuard<'_, BTreeMap<(String, String), Stored>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn behaviour(&self) -> MutexGuard<'_, Behaviour> {
        self.behaviour.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
