//! Streaming writer of routing traces: what it accepts, the reader accepts.

use std::io::{self, Write};

use thiserror::Error;

use crate::line_file::write_record;
use crate::record::{Problem, TraceHeader, Visit};

/// Why a visit (or header) was not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The record is not valid; nothing was written.
    #[error("visit {visit}: {problem}")]
    Invalid {
        /// Number of the visit, from 0; the header counts as 0 too.
        visit: u64,
        problem: Problem,
    },
    /// The writer failed.
    #[error("visit {visit}: {source}")]
    Io {
        /// Number of the visit being written.
        visit: u64,
        source: io::Error,
    },
}

/// Writes Motley's own format. Give it a buffered writer.
#[derive(Debug)]
pub struct TraceWriter<W> {
    writer: W,
    header: TraceHeader,
    visits: u64,
    last_pass: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Checks and writes the header line.
    pub fn new(writer: W, header: TraceHeader) -> Result<Self, WriteError> {
        header.check().map_err(|problem| WriteError::Invalid { visit: 0, problem })?;
        let mut this = Self { writer, header, visits: 0, last_pass: 0 };
        write_record(&mut this.writer, &this.header)
            .map_err(|source| WriteError::Io { visit: 0, source })?;
        Ok(this)
    }

    /// Checks and writes one visit.
    pub fn write_visit(&mut self, visit: &Visit) -> Result<(), WriteError> {
        let invalid = |problem| WriteError::Invalid { visit: self.visits, problem };
        visit.check(&self.header).map_err(invalid)?;
        if visit.pass < self.last_pass {
            return Err(invalid(Problem::PassOrder {
                found: visit.pass,
                previous: self.last_pass,
            }));
        }
        self.last_pass = visit.pass;
        write_record(&mut self.writer, visit)
            .map_err(|source| WriteError::Io { visit: self.visits, source })?;
        self.visits += 1;
        Ok(())
    }

    /// Flushes and gives the writer back.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.writer.flush().map_err(|source| WriteError::Io { visit: self.visits, source })?;
        Ok(self.writer)
    }
}
