//! A byte source that knows where it is, where the file ends, and how much it may read.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use super::error::ReadError;
use super::limits::GgufLimits;

/// Buffer between the file and the header reader.
const BUFFER_BYTES: usize = 1 << 18;

/// Little-endian reads that name what they read, checked against file length and header limit
/// before anything is allocated.
pub(super) struct Source<R> {
    inner: BufReader<R>,
    offset: u64,
    file_len: u64,
    header_limit: u64,
}

impl<R: Read + Seek> Source<R> {
    /// Starts at the beginning of `inner`, wherever it stands.
    pub(super) fn new(mut inner: R, limits: &GgufLimits) -> Result<Self, ReadError> {
        let io = |source| ReadError::Io { what: "file length", offset: 0, source };
        let file_len = inner.seek(SeekFrom::End(0)).map_err(io)?;
        inner.seek(SeekFrom::Start(0)).map_err(io)?;
        Ok(Self {
            inner: BufReader::with_capacity(BUFFER_BYTES, inner),
            offset: 0,
            file_len,
            header_limit: limits.max_header_bytes,
        })
    }

    /// Bytes read so far.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Length of the whole file.
    pub(super) fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Refuses unless `need` more bytes exist and the header may be that long.
    pub(super) fn ensure(&self, what: &'static str, need: u64) -> Result<(), ReadError> {
        let have = self.file_len - self.offset;
        if need > have {
            return Err(ReadError::Truncated { what, offset: self.offset, need, have });
        }
        let value = self.offset + need;
        if value > self.header_limit {
            let (offset, limit) = (self.offset, self.header_limit);
            return Err(ReadError::Limit { what: "header bytes", offset, value, limit });
        }
        Ok(())
    }

    /// Refuses unless `count` items of at least `each` bytes can follow.
    pub(super) fn ensure_items(
        &self,
        what: &'static str,
        count: u64,
        each: u64,
    ) -> Result<(), ReadError> {
        self.ensure(what, count.saturating_mul(each))
    }

    /// Fills `bytes`.
    pub(super) fn fill(&mut self, what: &'static str, bytes: &mut [u8]) -> Result<(), ReadError> {
        self.ensure(what, bytes.len() as u64)?;
        let offset = self.offset;
        self.inner.read_exact(bytes).map_err(|source| match source.kind() {
            // The file shrank while it was read.
            io::ErrorKind::UnexpectedEof => {
                ReadError::Truncated { what, offset, need: bytes.len() as u64, have: 0 }
            }
            _ => ReadError::Io { what, offset, source },
        })?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// The next `N` bytes.
    pub(super) fn bytes<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], ReadError> {
        let mut bytes = [0; N];
        self.fill(what, &mut bytes)?;
        Ok(bytes)
    }

    /// The next number of 4 bytes.
    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, ReadError> {
        self.bytes(what).map(u32::from_le_bytes)
    }

    /// The next number of 8 bytes.
    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, ReadError> {
        self.bytes(what).map(u64::from_le_bytes)
    }

    /// The next 8-byte number, which must not exceed `limit`.
    pub(super) fn count(&mut self, what: &'static str, limit: u64) -> Result<u64, ReadError> {
        let offset = self.offset;
        let value = self.u64(what)?;
        if value > limit {
            return Err(ReadError::Limit { what, offset, value, limit });
        }
        Ok(value)
    }

    /// The next string of at most `limit` bytes.
    pub(super) fn string(&mut self, what: &'static str, limit: u64) -> Result<Vec<u8>, ReadError> {
        let len = self.count(what, limit)?;
        self.ensure(what, len)?;
        let mut bytes = vec![0; len as usize];
        self.fill(what, &mut bytes)?;
        Ok(bytes)
    }

    /// The next string, which must be UTF-8 without NUL and not empty: llama.cpp holds keys and
    /// tensor names as C strings, and two readers must not see two names.
    pub(super) fn name(&mut self, what: &'static str, limit: u64) -> Result<String, ReadError> {
        let offset = self.offset;
        let bytes = self.string(what, limit)?;
        match String::from_utf8(bytes) {
            Ok(name) if !name.is_empty() && !name.contains('\0') => Ok(name),
            _ => Err(ReadError::Name { what, offset }),
        }
    }
}
