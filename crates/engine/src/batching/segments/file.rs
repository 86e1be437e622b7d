//! A segment as a file: a header of fixed length, then what llama.cpp gave. Little-endian.
//!
//! ```text
//!   0  "motleysg"    8  version  u32    12  tokens  u32   16  first  u32   20  zero  u32
//!  24  bytes of the state  u64           32  root          64  parent       96  key
//! 128  SHA-256 of all of this and the state               160  the state
//! ```

use motley_sched::batch::{Segment, SegmentKey};
use motley_trace::whole_file::WholeFile;
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};
use std::path::Path;

const MAGIC: [u8; 8] = *b"motleysg";
const VERSION: u32 = 1;
/// Of the header, what the hash is taken of.
const HASHED: usize = 128;
const LENGTH: usize = 160;

/// What stands before a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) first: u32,
    tokens: u32,
    state_bytes: u64,
    root: SegmentKey,
    parent: SegmentKey,
    pub(super) key: SegmentKey,
}

impl Header {
    pub(super) fn new(root: SegmentKey, segment: &Segment, state_bytes: u64) -> Self {
        let Segment { key, parent, first, tokens, .. } = *segment;
        Self { first, tokens, state_bytes, root, parent, key }
    }

    /// Bytes of the whole file.
    pub(super) fn file_bytes(&self) -> u64 {
        self.state_bytes.saturating_add(LENGTH as u64)
    }

    pub(super) fn segment(&self) -> Segment {
        let Self { first, tokens, parent, key, .. } = *self;
        Segment { key, parent, first, tokens, bytes: self.file_bytes() }
    }

    fn to_bytes(self) -> [u8; HASHED] {
        let mut bytes = [0; HASHED];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.tokens.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.first.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.state_bytes.to_le_bytes());
        bytes[32..64].copy_from_slice(&self.root.0);
        bytes[64..96].copy_from_slice(&self.parent.0);
        bytes[96..].copy_from_slice(&self.key.0);
        bytes
    }

    fn from_bytes(bytes: &[u8; HASHED]) -> Option<Self> {
        let number = |at: usize| Some(u32::from_le_bytes(bytes[at..at + 4].try_into().ok()?));
        let key = |at: usize| Some(SegmentKey(bytes[at..at + 32].try_into().ok()?));
        let known = bytes[..8] == MAGIC && number(8)? == VERSION && number(20)? == 0;
        let header = Self {
            tokens: number(12)?,
            first: number(16)?,
            state_bytes: u64::from_le_bytes(bytes[24..32].try_into().ok()?),
            root: key(32)?,
            parent: key(64)?,
            key: key(96)?,
        };
        let ends = header.first.checked_add(header.tokens);
        (known && header.tokens > 0 && ends.is_some()).then_some(header)
    }
}

/// Writes a segment, for its owner alone; whole, or not at all.
pub(super) fn write(path: &Path, header: &Header, state: &[u8]) -> io::Result<()> {
    let bytes = header.to_bytes();
    let mut file = WholeFile::private(path)?;
    file.write_all(&bytes)?;
    file.write_all(&checksum(&bytes, state))?;
    file.write_all(state)?;
    file.finish()
}

/// The header of a file of `len_bytes` bytes.
pub(super) fn header(file: &mut impl Read, len_bytes: u64) -> io::Result<Header> {
    let (_, header) = read_header(file)?;
    if header.file_bytes() != len_bytes {
        return Err(damaged("it is not as long as it says"));
    }
    Ok(header)
}

/// The state of `segment`, of the model that is `root`.
pub(super) fn read(
    file: &mut impl Read,
    root: SegmentKey,
    segment: &Segment,
) -> io::Result<Vec<u8>> {
    let (bytes, header) = read_header(file)?;
    if header.root != root {
        return Err(damaged("it is of another model"));
    }
    if header != Header::new(root, segment, header.state_bytes) {
        return Err(damaged("it is another segment"));
    }
    let mut sum = [0; 32];
    file.read_exact(&mut sum)?;
    let mut state = Vec::new();
    let most = header.state_bytes.saturating_add(1);
    file.take(most).read_to_end(&mut state)?;
    if state.len() as u64 != header.state_bytes || sum != checksum(&bytes, &state) {
        return Err(damaged("it is damaged"));
    }
    Ok(state)
}

/// A header, as it stands there and as it is read.
fn read_header(file: &mut impl Read) -> io::Result<([u8; HASHED], Header)> {
    let mut bytes = [0; HASHED];
    file.read_exact(&mut bytes)?;
    let header = Header::from_bytes(&bytes).ok_or_else(|| damaged("it is no segment"))?;
    Ok((bytes, header))
}

fn checksum(header: &[u8; HASHED], state: &[u8]) -> [u8; 32] {
    Sha256::new_with_prefix(header).chain_update(state).finalize().into()
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
