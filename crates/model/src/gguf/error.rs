//! Why the reader refuses a header: one enum for files, one for single tensors.

use super::ggml_type::GgmlType;

/// Why a header was refused. Offsets are bytes from the start of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file does not begin with `GGUF`.
    #[error("not a GGUF file: it begins with {found:02x?} instead of \"GGUF\"")]
    Magic { found: [u8; 4] },
    /// The file was written for big-endian machines.
    #[error("big-endian GGUF is not supported: convert the model again for this machine")]
    BigEndian,
    /// A version other than 2 or 3.
    #[error("GGUF version {found} is not supported (2 and 3 are): convert the model again")]
    Version { found: u32 },
    /// The file ends before what it announces.
    #[error(
        "file ends too early: {what} at byte {offset} needs {need} bytes, {have} are left; \
         the download may be incomplete"
    )]
    Truncated {
        what: &'static str,
        offset: u64,
        /// Bytes needed there.
        need: u64,
        /// Bytes left there.
        have: u64,
    },
    /// A number is larger than its limit in [`super::GgufLimits`].
    #[error("{what} at byte {offset} is {value}, more than the limit of {limit}")]
    Limit { what: &'static str, offset: u64, value: u64, limit: u64 },
    /// A number that means nothing there.
    #[error("{what} at byte {offset} has the invalid value {value}")]
    Invalid { what: &'static str, offset: u64, value: u64 },
    /// A key or tensor name that is empty, not UTF-8, or holds NUL.
    #[error("{what} at byte {offset} is not a usable name (empty, not UTF-8, or with NUL)")]
    Name { what: &'static str, offset: u64 },
    /// The same key or tensor name twice.
    #[error("{what} {name:?} at byte {offset} appears twice")]
    Duplicate {
        what: &'static str,
        name: String,
        /// Where the second one stands.
        offset: u64,
    },
    /// A tensor whose type, shape or place does not hold.
    #[error("tensor {name:?}: {problem}")]
    Tensor { name: String, problem: TensorProblem },
    /// The file could not be read.
    #[error("cannot read {what} at byte {offset}")]
    Io { what: &'static str, offset: u64, source: std::io::Error },
}

/// What is wrong with one tensor info.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TensorProblem {
    /// A type this llama.cpp does not know or has removed.
    #[error("element type {id} is unknown or was removed: convert the model again")]
    Type { id: u32 },
    /// Rows that are not whole blocks, or a size beyond 63 bits.
    #[error("shape {dims:?} does not fit type {ty}")]
    Shape {
        /// Dimensions, fastest first.
        dims: Vec<u64>,
        ty: GgmlType,
    },
    /// An offset that is not a multiple of the alignment.
    #[error("offset {offset} is not a multiple of the alignment {alignment}")]
    Unaligned {
        /// Offset from the start of the data.
        offset: u64,
        alignment: u64,
    },
    /// Data beyond the end of the file.
    #[error(
        "its data ends at byte {end} but the file has {file_len}; the download may be incomplete"
    )]
    OutOfFile {
        /// Where the data would end.
        end: u64,
        file_len: u64,
    },
    /// Data shared with another tensor.
    #[error("its data overlaps that of {other:?}")]
    Overlap { other: String },
}
