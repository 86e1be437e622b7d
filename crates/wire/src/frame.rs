//! Frames: what a head and a worker say to each other, and its bytes. No I/O. Who reads bytes of a
//! stranger finds every limit here; a frame that is encoded can always be decoded.
//!
//! Everything is little-endian. Before the payload (`payload.rs`) comes the header:
//!
//! ```text
//! offset bytes
//!  0     4     magic, "MTLY"
//!  4     1     version
//!  5     1     kind
//!  6     2     reserved, 0
//!  8     4     payload bytes
//! 12     8     block: which question this is, or answers
//! ```

use std::fmt;

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 20;
/// Of the format; another is refused.
pub const VERSION: u8 = 1;
/// Bytes of one payload.
pub const MAX_PAYLOAD_BYTES: usize = 64 << 20;
/// Floats of a row.
pub const MAX_WIDTH: usize = 65_536;
/// Pairs of an expert and a row in one frame, and hidden rows in one: places fit 16 bits.
pub const MAX_PAIRS: usize = 65_536;
/// Bytes of why something failed; longer texts are cut.
pub const MAX_FAILED_BYTES: usize = 1024;

const MAGIC: u32 = u32::from_le_bytes(*b"MTLY");

/// One thing said.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// The head's first.
    Hello(Hello),
    /// The worker's answer to it: it has that model too.
    Welcome,
    /// Experts to compute.
    Rows(Rows),
    /// What came out.
    Computed(Computed),
    /// Why nothing did. Cut after [`MAX_FAILED_BYTES`].
    Failed(String),
}

/// Which model the head has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Hash of the model's header.
    pub model: [u8; 32],
}

/// Hidden rows, and which expert each is for. A pair is an expert and the row it reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// Whether this is a step of decoding rather than a prompt.
    pub decode: bool,
    pub layer: u16,
    /// Floats of a hidden row.
    pub width: u32,
    /// (pairs), each below 65 536.
    pub experts: Vec<u32>,
    /// (pairs), which hidden row each pair reads.
    pub places: Vec<u32>,
    /// (hidden rows, width)
    pub hidden: Vec<f32>,
}

/// One row for each pair of the question, in its order.
#[derive(Debug, Clone, PartialEq)]
pub struct Computed {
    /// Floats of a row.
    pub width: u32,
    /// Time the worker took for them, in microseconds.
    pub compute_us: u32,
    /// (pairs, width)
    pub rows: Vec<f32>,
}

/// Which variant of [`Frame`] follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Hello = 1,
    Welcome = 2,
    Rows = 3,
    Computed = 4,
    Failed = 5,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] =
        [Self::Hello, Self::Welcome, Self::Rows, Self::Computed, Self::Failed];

    /// Most bytes of a payload of this kind.
    pub const fn max_payload_bytes(self) -> usize {
        match self {
            Self::Hello => 32,
            Self::Welcome => 0,
            Self::Rows | Self::Computed => MAX_PAYLOAD_BYTES,
            Self::Failed => MAX_FAILED_BYTES,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What is known of a frame before its payload has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    pub kind: Kind,
    /// Bytes of the payload.
    pub length: usize,
    /// Which question this is, or answers.
    pub block: u64,
}

impl FrameHeader {
    /// Refuses what is no frame of this version, and payloads longer than their kind may be.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, FrameError> {
        let [m0, m1, m2, m3, version, kind, r0, r1, l0, l1, l2, l3, block @ ..] = *bytes;
        let magic = u32::from_le_bytes([m0, m1, m2, m3]);
        if magic != MAGIC {
            return Err(FrameError::Magic(magic));
        }
        if version != VERSION {
            return Err(FrameError::Version(version));
        }
        let known = Kind::ALL.into_iter().find(|known| *known as u8 == kind);
        let kind = known.ok_or(FrameError::Kind(kind))?;
        if [r0, r1] != [0, 0] {
            return Err(FrameError::Reserved);
        }
        let length = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        check_length(kind, length)?;
        Ok(Self { kind, length, block: u64::from_le_bytes(block) })
    }

    fn write(&self, into: &mut Vec<u8>) {
        into.extend(MAGIC.to_le_bytes());
        into.extend([VERSION, self.kind as u8, 0, 0]);
        into.extend((self.length as u32).to_le_bytes());
        into.extend(self.block.to_le_bytes());
    }
}

fn check_length(kind: Kind, bytes: usize) -> Result<(), FrameError> {
    let most = kind.max_payload_bytes();
    if bytes <= most { Ok(()) } else { Err(FrameError::Long { kind, bytes, most }) }
}

impl Frame {
    /// Which variant it is.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Hello(_) => Kind::Hello,
            Self::Welcome => Kind::Welcome,
            Self::Rows(_) => Kind::Rows,
            Self::Computed(_) => Kind::Computed,
            Self::Failed(_) => Kind::Failed,
        }
    }

    /// Appends header and payload to `into`, which stays as it was when the frame is against a
    /// limit.
    pub fn encode(&self, block: u64, into: &mut Vec<u8>) -> Result<(), FrameError> {
        self.check()?;
        let header = FrameHeader { kind: self.kind(), length: self.payload_bytes(), block };
        check_length(header.kind, header.length)?;
        into.reserve(HEADER_BYTES + header.length);
        header.write(into);
        self.write_payload(into);
        Ok(())
    }

    /// The frame of a header and the payload that followed it. What it takes is bounded by the
    /// payload's own bytes.
    pub fn decode(header: &FrameHeader, payload: &[u8]) -> Result<Self, FrameError> {
        let FrameHeader { kind, length, .. } = *header;
        check_length(kind, length)?;
        if payload.len() != length {
            return Err(FrameError::Length { kind, bytes: payload.len(), wanted: length });
        }
        let frame = Self::read_payload(kind, payload)?;
        frame.check()?;
        Ok(frame)
    }
}

/// Bytes of a whole [`Frame::Rows`], header included.
pub fn rows_bytes(pairs: usize, hidden_rows: usize, width: usize) -> usize {
    let hidden = hidden_rows.saturating_mul(width).saturating_mul(size_of::<f32>());
    let indices = pairs.saturating_mul(2 * size_of::<u16>());
    (HEADER_BYTES + 16).saturating_add(indices).saturating_add(hidden)
}

/// Bytes of a whole [`Frame::Computed`], header included.
pub fn computed_bytes(pairs: usize, width: usize) -> usize {
    let rows = pairs.saturating_mul(width).saturating_mul(size_of::<f32>());
    (HEADER_BYTES + 12).saturating_add(rows)
}

/// Why bytes are no frame, or a frame cannot become bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    #[error("begins with {0:#010x}, which is no frame")]
    Magic(u32),
    #[error("version {0} of frames, this end has {VERSION}: run the same Motley on both")]
    Version(u8),
    #[error("kind {0} of frames is not known")]
    Kind(u8),
    #[error("bits that must be zero are not")]
    Reserved,
    #[error("a payload of {bytes} bytes, {kind} has at most {most}")]
    Long { kind: Kind, bytes: usize, most: usize },
    #[error("a payload of {bytes} bytes, {kind} says {wanted}")]
    Length { kind: Kind, bytes: usize, wanted: usize },
    #[error("{count} {what}, allowed are {least} to {most}")]
    Count { what: &'static str, count: usize, least: usize, most: usize },
    #[error("{experts} experts for {places} places")]
    Pairs { experts: usize, places: usize },
    #[error("{floats} floats are no rows of {width}")]
    Floats { floats: usize, width: u32 },
    #[error("a pair reads row {place} of {rows}")]
    Place { place: u32, rows: usize },
    #[error("expert {0} does not fit 16 bits")]
    Expert(u32),
    #[error("text that is not UTF-8")]
    Text,
}
