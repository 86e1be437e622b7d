//! A model that is here, and why one is not. Data; `scan` reads it from folders.

use crate::variants::SelectError;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

/// Why something here cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeptError {
    /// Nothing of that name.
    #[error("{name}: not downloaded; `motley list` shows what is")]
    NotHere { name: String },
    /// Several that the name could mean.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// A path is not a name.
    #[error("{}: a file of your own; only what was downloaded is removed by name", path.display())]
    Local { path: PathBuf },
    /// Somebody fetches it.
    #[error("{name}: is being downloaded now; stop that first")]
    Busy { name: String },
    /// A file cannot be removed.
    #[error("{}: cannot be removed: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// A model that is here, whole or in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What to type for it.
    pub name: String,
    /// Its quantisation, or what it is told by.
    pub label: String,
    /// By which it is opened: its first part.
    pub path: PathBuf,
    /// Parts that are whole, in order.
    pub paths: Vec<PathBuf>,
    /// Parts it should have.
    pub count: u64,
    pub bytes: u64,
    /// When the last part came.
    pub modified: Option<SystemTime>,
    /// Bytes of downloads that did not end, in the same folder.
    pub unfinished_bytes: u64,
}

impl Kept {
    /// Whether all parts are here.
    pub fn is_whole(&self) -> bool {
        self.paths.len() as u64 == self.count
    }
}
