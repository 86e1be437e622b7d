//! Line files: a header line with a version, then one JSON record per line. What traces and
//! profiles have in common; what a record means is theirs. Lines are bounded and every refusal
//! names its line: hostile input is refused, never followed.

use std::io::{self, BufRead, Read, Write};
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// First line of a line file.
pub trait FileHeader: DeserializeOwned {
    /// The only version that is read.
    const VERSION: u32;
    /// What to do with a file of another version.
    const OTHER_VERSION: &'static str;

    /// The version that the line names.
    fn version(&self) -> u32;
}

/// Why a line file could not be read further. `line` counts from 1; `P` says what is wrong with
/// a record.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LineFileError<P> {
    /// The reader failed.
    #[error("line {line}: cannot be read")]
    Io { line: u64, source: io::Error },
    /// A line beyond the limit of the format.
    #[error("line {line} is longer than {limit_bytes} bytes")]
    LineTooLong { line: u64, limit_bytes: usize },
    /// A record is missing; `line` is where it should be.
    #[error("the file ends at line {line}, before the {kind} is complete")]
    Truncated {
        line: u64,
        /// What the file should be: `trace`, `profile`.
        kind: &'static str,
    },
    /// A line that is not the JSON expected.
    #[error("line {line}: not the record expected")]
    Json { line: u64, source: serde_json::Error },
    /// A header with another version.
    #[error("line {line}: format version {found} is not {expected}; {advice}")]
    Version { line: u64, found: u32, expected: u32, advice: &'static str },
    /// A record that parses but is not valid.
    #[error("line {line}: {problem}")]
    Invalid { line: u64, problem: P },
}

/// Lines of bounded length with their numbers; one line in memory at a time.
#[derive(Debug)]
pub struct LineReader<R, P> {
    reader: R,
    kind: &'static str,
    max_line_bytes: usize,
    text: Vec<u8>,
    /// Number of the line last read, from 1.
    line: u64,
    problem: PhantomData<P>,
}

impl<R: BufRead, P> LineReader<R, P> {
    /// Reads nothing yet. `kind` names the file in errors.
    pub fn new(reader: R, kind: &'static str, max_line_bytes: usize) -> Self {
        Self { reader, kind, max_line_bytes, text: Vec::new(), line: 0, problem: PhantomData }
    }

    /// The next line that is not blank, without its end; `None` at the end of the file.
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, LineFileError<P>> {
        loop {
            self.line += 1;
            self.text.clear();
            let mut bounded = self.reader.by_ref().take(self.max_line_bytes as u64 + 1);
            let read = bounded
                .read_until(b'\n', &mut self.text)
                .map_err(|source| LineFileError::Io { line: self.line, source })?;
            if read == 0 {
                return Ok(None);
            }
            if read > self.max_line_bytes {
                let (line, limit_bytes) = (self.line, self.max_line_bytes);
                return Err(LineFileError::LineTooLong { line, limit_bytes });
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(Some(self.text.trim_ascii()));
            }
        }
    }

    /// The next record; `None` at the end of the file.
    pub fn next_record<T: DeserializeOwned>(&mut self) -> Result<Option<T>, LineFileError<P>> {
        let parsed = self.next_line()?.map(serde_json::from_slice).transpose();
        parsed.map_err(|source| LineFileError::Json { line: self.line, source })
    }

    /// The next record, which must be there.
    pub fn record<T: DeserializeOwned>(&mut self) -> Result<T, LineFileError<P>> {
        let record = self.next_record()?;
        record.ok_or(LineFileError::Truncated { line: self.line, kind: self.kind })
    }

    /// The header, which must have the version that is read.
    pub fn header<H: FileHeader>(&mut self) -> Result<H, LineFileError<P>> {
        let header: H = self.record()?;
        let (found, expected) = (header.version(), H::VERSION);
        if found != expected {
            let (line, advice) = (self.line, H::OTHER_VERSION);
            return Err(LineFileError::Version { line, found, expected, advice });
        }
        Ok(header)
    }

    /// `problem` at the line last read.
    pub fn invalid(&self, problem: P) -> LineFileError<P> {
        LineFileError::Invalid { line: self.line, problem }
    }
}

/// Writes one record and the end of its line.
pub fn write_record(writer: &mut impl Write, record: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *writer, record)?;
    writer.write_all(b"\n")
}
