//! Streaming reader of routing traces: one line in memory at a time.
//! Every refusal names its line; hostile input is refused, never followed.

use std::io::{self, BufRead, Read};

use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::record::{Problem, TraceHeader, Visit};

/// Longest line, in bytes: 8192 tokens with full scores of 256 experts at 8 characters each.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// Anything that yields visits in the order of execution: a file, an importer, a generator.
pub trait VisitSource {
    /// What the visits refer to.
    fn header(&self) -> &TraceHeader;

    /// Overwrites `visit` with the next one. `Ok(false)` at the end, leaving `visit` unspecified.
    fn read_visit(&mut self, visit: &mut Visit) -> Result<bool, TraceError>;
}

/// Why a trace could not be read further. `line` counts from 1.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The reader failed.
    #[error("line {line}: cannot be read")]
    Io {
        /// Line being read.
        line: u64,
        /// The failure.
        source: io::Error,
    },
    /// A line beyond [`MAX_LINE_BYTES`].
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes")]
    LineTooLong {
        /// The line.
        line: u64,
    },
    /// No header at all.
    #[error("the file is empty; a trace begins with a header line")]
    Empty,
    /// A line that is not the JSON expected.
    #[error("line {line}: not the record expected")]
    Json {
        /// The line.
        line: u64,
        /// What the parser says.
        source: serde_json::Error,
    },
    /// A line that parses but is not valid.
    #[error("line {line}: {problem}")]
    Invalid {
        /// The line.
        line: u64,
        /// What is wrong with it.
        problem: Problem,
    },
}

/// Reads our own format.
#[derive(Debug)]
pub struct TraceReader<R> {
    lines: Lines<R>,
    header: TraceHeader,
    last_pass: u64,
}

impl<R: BufRead> TraceReader<R> {
    /// Reads and checks the header line.
    pub fn new(reader: R) -> Result<Self, TraceError> {
        let mut lines = Lines::new(reader);
        let header: TraceHeader = lines.next_json()?.ok_or(TraceError::Empty)?;
        header.check().map_err(|problem| lines.invalid(problem))?;
        Ok(Self { lines, header, last_pass: 0 })
    }
}

impl<R: BufRead> VisitSource for TraceReader<R> {
    fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn read_visit(&mut self, visit: &mut Visit) -> Result<bool, TraceError> {
        let Some(next) = self.lines.next_json()? else { return Ok(false) };
        *visit = next;
        visit.check(&self.header).map_err(|problem| self.lines.invalid(problem))?;
        if visit.pass < self.last_pass {
            let problem = Problem::PassOrder { found: visit.pass, previous: self.last_pass };
            return Err(self.lines.invalid(problem));
        }
        self.last_pass = visit.pass;
        Ok(true)
    }
}

/// Lines of bounded length with their numbers; shared with the importers.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    text: Vec<u8>,
    /// Number of the line last read, from 1.
    pub(crate) line: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, text: Vec::new(), line: 0 }
    }

    /// The next line that is not blank, without its end; `None` at the end of the file.
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>, TraceError> {
        loop {
            self.line += 1;
            self.text.clear();
            let mut bounded = self.reader.by_ref().take(MAX_LINE_BYTES as u64 + 1);
            let read = bounded
                .read_until(b'\n', &mut self.text)
                .map_err(|source| TraceError::Io { line: self.line, source })?;
            if read == 0 {
                return Ok(None);
            }
            if read > MAX_LINE_BYTES {
                return Err(TraceError::LineTooLong { line: self.line });
            }
            if !self.text.trim_ascii().is_empty() {
                return Ok(Some(self.text.trim_ascii()));
            }
        }
    }

    /// The next line that is not blank, parsed.
    pub(crate) fn next_json<T: DeserializeOwned>(&mut self) -> Result<Option<T>, TraceError> {
        let parsed = self.next_line()?.map(serde_json::from_slice).transpose();
        parsed.map_err(|source| TraceError::Json { line: self.line, source })
    }

    /// `problem` at the line last read.
    pub(crate) fn invalid(&self, problem: Problem) -> TraceError {
        TraceError::Invalid { line: self.line, problem }
    }
}
