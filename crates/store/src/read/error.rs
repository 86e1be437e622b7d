//! Why bytes did not arrive.

use std::io;
use std::path::PathBuf;

/// Why bytes did not arrive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system reported an error twice.
    #[error("{}: reading {len_bytes} bytes at {offset} failed twice", path.display())]
    Io {
        path: PathBuf,
        offset: u64,
        len_bytes: usize,
        /// The second error.
        source: io::Error,
    },
    /// Fewer bytes than asked for, twice.
    #[error(
        "{}: {got_bytes} of {len_bytes} bytes at {offset}; was the file truncated?", path.display()
    )]
    Short { path: PathBuf, offset: u64, len_bytes: usize, got_bytes: usize },
    /// The file was written to since it was opened: its bytes belong to another model.
    #[error("{}: changed while in use; restart to load it again", path.display())]
    Changed { path: PathBuf },
    /// The request names a range the file did not have when it was opened.
    #[error("{}: {len_bytes} bytes at {offset} lie beyond its end", path.display())]
    BeyondEnd { path: PathBuf, offset: u64, len_bytes: u64 },
    /// The request names a file that was not opened.
    #[error("file {file} of the model is unknown")]
    NoSuchFile { file: usize },
    /// The data would not fit into the slot.
    #[error("{len_bytes} bytes at {at_bytes} do not fit into a slot of {slot_bytes}")]
    DoesNotFit { at_bytes: usize, len_bytes: u64, slot_bytes: usize },
}
