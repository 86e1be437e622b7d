//! Streaming reader of routing traces: one line in memory at a time.
//! Every refusal names its line; hostile input is refused, never followed.

use std::io::BufRead;

use crate::line_file::{LineFileError, LineReader};
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

/// Why a trace could not be read further.
pub type TraceError = LineFileError<Problem>;

/// Lines of a trace, Motley's own or another project's.
pub(crate) type TraceLines<R> = LineReader<R, Problem>;

pub(crate) fn trace_lines<R: BufRead>(reader: R) -> TraceLines<R> {
    LineReader::new(reader, "trace", MAX_LINE_BYTES)
}

/// Reads Motley's own format.
#[derive(Debug)]
pub struct TraceReader<R> {
    lines: TraceLines<R>,
    header: TraceHeader,
    last_pass: u64,
}

impl<R: BufRead> TraceReader<R> {
    /// Reads and checks the header line.
    pub fn new(reader: R) -> Result<Self, TraceError> {
        let mut lines = trace_lines(reader);
        let header: TraceHeader = lines.header()?;
        header.check().map_err(|problem| lines.invalid(problem))?;
        Ok(Self { lines, header, last_pass: 0 })
    }
}

impl<R: BufRead> VisitSource for TraceReader<R> {
    fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn read_visit(&mut self, visit: &mut Visit) -> Result<bool, TraceError> {
        let Some(next) = self.lines.next_record()? else { return Ok(false) };
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
