//! Reader of waste's `trace_*.jsonl`: expert ids per token and layer, nothing else.
//! The file names neither the model nor its expert count, so the caller does.
//!
//! ```text
//! {"tok": 0, "layers": [[36, 38, 85, 103, 116, 133, 138, 255], [51, 139, …], …]}
//! ```
//!
//! Ids come sorted, so their order says nothing of weight. Every line is taken as one decode pass.

use std::io::BufRead;

use serde::Deserialize;

use crate::read::{TraceError, TraceLines, VisitSource, trace_lines};
use crate::record::{FORMAT_VERSION, Phase, Problem, TraceHeader, Visit};

/// What the file does not say.
#[derive(Clone, Debug)]
pub struct WasteModel {
    pub name: String,
    /// Routed experts per layer.
    pub experts: u16,
}

/// Reads one `trace_*.jsonl`.
#[derive(Debug)]
pub struct WasteReader<R> {
    lines: TraceLines<R>,
    header: TraceHeader,
    token: Token,
    /// Layer of `token` that comes next.
    next_layer: usize,
    pass: u64,
}

#[derive(Debug, Deserialize)]
struct Token {
    tok: u32,
    layers: Vec<Vec<u16>>,
}

impl<R: BufRead> WasteReader<R> {
    /// Reads the first token, which gives the number of layers and of experts per token.
    pub fn new(reader: R, model: WasteModel) -> Result<Self, TraceError> {
        let mut lines = trace_lines(reader);
        let token = lines.record::<Token>()?;
        let header = TraceHeader {
            version: FORMAT_VERSION,
            model: model.name,
            layers: u16::try_from(token.layers.len()).unwrap_or(u16::MAX),
            experts: model.experts,
            k: token.layers.first().map_or(0, |row| u16::try_from(row.len()).unwrap_or(u16::MAX)),
        };
        header.check().map_err(|problem| lines.invalid(problem))?;
        Ok(Self { lines, header, token, next_layer: 0, pass: 0 })
    }
}

impl<R: BufRead> VisitSource for WasteReader<R> {
    fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn read_visit(&mut self, visit: &mut Visit) -> Result<bool, TraceError> {
        if self.next_layer == self.token.layers.len() {
            let Some(token) = self.lines.next_record()? else { return Ok(false) };
            self.check_layers(&token).map_err(|problem| self.lines.invalid(problem))?;
            self.token = token;
            self.next_layer = 0;
            self.pass += 1;
        }
        *visit = Visit {
            pass: self.pass,
            layer: self.next_layer as u16,
            phase: Phase::Decode,
            positions: vec![self.token.tok],
            experts: std::mem::take(&mut self.token.layers[self.next_layer]),
            ..Visit::default()
        };
        self.next_layer += 1;
        visit.check(&self.header).map_err(|problem| self.lines.invalid(problem))?;
        Ok(true)
    }
}

impl<R> WasteReader<R> {
    fn check_layers(&self, token: &Token) -> Result<(), Problem> {
        let expected = usize::from(self.header.layers);
        let found = token.layers.len();
        if found == expected {
            Ok(())
        } else {
            Err(Problem::Length { field: "layers", found, expected })
        }
    }
}
