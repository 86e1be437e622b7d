//! Readers of other projects' routing traces, one file each.
//! Each is a [`VisitSource`]: it streams, it checks, it names the line.
//!
//! - [`bigmoe`]: `*.route.csv` of BigMoeOnEdge, with weights.
//! - [`waste`]: `trace_*.jsonl` of waste, expert ids only.

use std::io::BufRead;

use crate::read::{TraceError, TraceReader, VisitSource};

pub mod bigmoe;
pub mod waste;

use bigmoe::BigmoeReader;
use waste::{WasteModel, WasteReader};

/// The format of a trace, recognised by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Motley's own.
    Motley,
    /// `route_trace v1` of BigMoeOnEdge.
    Bigmoe,
    /// waste, which names neither its model nor its experts.
    Waste,
}

impl Format {
    /// Looks at what `reader` holds and consumes nothing. What is neither of the others
    /// counts as Motley's own, whose reader says what is wrong with it.
    pub fn of(reader: &mut impl BufRead) -> Result<Self, TraceError> {
        let begins = reader.fill_buf().map_err(|source| TraceError::Io { line: 1, source })?;
        let begins = begins.trim_ascii_start();
        Ok(if begins.starts_with(b"# route_trace") {
            Self::Bigmoe
        } else if begins.starts_with(b"{\"tok\"") {
            Self::Waste
        } else {
            Self::Motley
        })
    }

    /// A reader of this format; `model` is used where the file does not name its own.
    pub fn source<R: BufRead + 'static>(
        self,
        reader: R,
        model: WasteModel,
    ) -> Result<Box<dyn VisitSource>, TraceError> {
        Ok(match self {
            Self::Motley => Box::new(TraceReader::new(reader)?),
            Self::Bigmoe => Box::new(BigmoeReader::new(reader)?),
            Self::Waste => Box::new(WasteReader::new(reader, model)?),
        })
    }
}
