//! The GGUF headers of files that are not here: read through range requests that grow, until the
//! reader of `motley_model` has all it wants. Tensor data is never asked for on purpose; the last
//! request may reach into it.

use crate::error::FetchError;
use crate::http::{Client, Span};
use crate::limits::{CONNECTIONS, FIRST_HEADER_BYTES, MAX_HEADER_BYTES, MOST_HEADER_BYTES};
use crate::offer::RemoteFile;
use crate::parallel;
use motley_model::gguf::{GgufHeader, GgufLimits, ReadError};
use std::io::{self, Read, Seek, SeekFrom};

/// Why a header was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The server did not give it.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It is none.
    #[error("{path}: cannot be used: {source}")]
    Header { path: String, source: ReadError },
}

/// The headers of all `files`, in order.
pub(crate) fn read(client: &Client, files: &[RemoteFile]) -> Result<Vec<GgufHeader>, HeaderError> {
    parallel::each(files, CONNECTIONS, |file, _| read_one(client, file))
}

fn read_one(client: &Client, file: &RemoteFile) -> Result<GgufHeader, HeaderError> {
    let mut begun = Beginning { client, file, bytes: Vec::new(), at: 0, failed: None };
    let limits = GgufLimits { max_header_bytes: MAX_HEADER_BYTES, ..GgufLimits::default() };
    let read = GgufHeader::read(&mut begun, &limits);
    if let Some(failed) = begun.failed {
        return Err(failed.into());
    }
    read.map_err(|source| HeaderError::Header { path: file.path.clone(), source })
}

/// A file of which only the beginning is here, and more of it as it is read.
struct Beginning<'a> {
    client: &'a Client,
    file: &'a RemoteFile,
    /// From the file's first byte on.
    bytes: Vec<u8>,
    at: u64,
    /// Why the network gave no more; a reader's error has no room for it.
    failed: Option<FetchError>,
}

impl Beginning<'_> {
    /// Makes the byte at `at` be here, with as many again as there are.
    fn grow(&mut self) -> Result<(), FetchError> {
        let have = self.bytes.len() as u64;
        let more = have.clamp(FIRST_HEADER_BYTES, MOST_HEADER_BYTES).max(self.at - have + 1);
        let more = more.min(self.file.bytes - have);
        let retry = self.client.retry;
        let piece = retry.until(|| fetch(self.client, self.file, have, more))?;
        self.bytes.extend_from_slice(&piece);
        Ok(())
    }
}

/// Exactly `len` bytes from `from` on.
fn fetch(client: &Client, file: &RemoteFile, from: u64, len: u64) -> Result<Vec<u8>, FetchError> {
    let mut piece = client.piece(&file.url, Span { from, most: Some(len) })?;
    if let Some(whole) = piece.whole_bytes.filter(|whole| *whole != file.bytes) {
        let said = format!("a file of {whole} bytes, not {}", file.bytes);
        return Err(FetchError::Range { url: piece.url, asked: from, said });
    }
    // A server without ranges begins at the beginning; what is known already passes by.
    let mut skip = from - piece.from;
    let mut bytes = vec![0; len as usize];
    let (mut filled, mut passed) = (0, [0; 1 << 14]);
    while filled < bytes.len() {
        let buffer = match skip {
            0 => &mut bytes[filled..],
            skip => &mut passed[..(skip.min(1 << 14)) as usize],
        };
        match (piece.read(buffer)?, skip) {
            (0, _) => return Err(FetchError::Early { url: piece.url, bytes: filled as u64 }),
            (read, 0) => filled += read,
            (read, _) => skip -= read as u64,
        }
    }
    Ok(bytes)
}

impl Read for Beginning<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.file.bytes.min(MAX_HEADER_BYTES) {
            return Ok(0);
        }
        if self.at >= self.bytes.len() as u64
            && let Err(error) = self.grow()
        {
            let said = io::Error::other(error.to_string());
            self.failed = Some(error);
            return Err(said);
        }
        let rest = &self.bytes[self.at as usize..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.at += len as u64;
        Ok(len)
    }
}

impl Seek for Beginning<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (base, offset) = match to {
            SeekFrom::Start(at) => (at, 0),
            SeekFrom::End(offset) => (self.file.bytes, offset),
            SeekFrom::Current(offset) => (self.at, offset),
        };
        let at = base.checked_add_signed(offset).filter(|at| *at <= self.file.bytes);
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}
