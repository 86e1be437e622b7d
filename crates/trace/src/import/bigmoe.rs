//! Reader of BigMoeOnEdge's `route_trace v1` CSV. It keeps ids and weights; residency and bytes,
//! which describe that project's own cache, are passed over.
//!
//! ```text
//! # route_trace v1
//! # model=/…/Qwen3-30B-A3B-Q4_K_M.gguf arch=qwen3moe n_layer=48 n_expert=128 n_expert_used=6
//! # layer=0 expert_bytes=3059712 dense_bytes=11953152
//! turn,phase,step,layer,slot,expert,weight,residency,expert_bytes
//! 0,0,0,0,0,49,0.221297,0,3059712
//! ```
//!
//! Phase 0 is prefill and comes layer by layer, each layer with all steps of the chunk; phase 1 is
//! decode and comes step by step. The last layer of a prefill may name the last step only, because
//! only its output is needed.

use std::io::BufRead;

use crate::read::{TraceError, TraceLines, VisitSource, trace_lines};
use crate::record::{FORMAT_VERSION, MAX_TOKENS_PER_VISIT, Phase, Problem, TraceHeader, Visit};

/// Reads one `*.route.csv`.
#[derive(Debug)]
pub struct BigmoeReader<R> {
    lines: TraceLines<R>,
    header: TraceHeader,
    /// First row of the next visit, already read.
    pending: Option<Row>,
    pass: u64,
}

/// The columns that are kept.
#[derive(Clone, Copy, Debug)]
struct Row {
    turn: u32,
    phase: Phase,
    step: u32,
    layer: u16,
    expert: u16,
    weight: f32,
}

impl Row {
    /// Whether `other` is needed together with this row.
    fn same_visit(&self, other: &Self) -> bool {
        self.turn == other.turn
            && self.phase == other.phase
            && self.layer == other.layer
            && (self.phase == Phase::Prefill || self.step == other.step)
    }
}

impl<R: BufRead> BigmoeReader<R> {
    /// Reads the preamble and the first row.
    pub fn new(reader: R) -> Result<Self, TraceError> {
        let mut lines = trace_lines(reader);
        let mut header = None;
        while let Some(text) = lines.next_line()? {
            if text.starts_with(b"# model=") {
                header = parse_model(text);
            } else if text.starts_with(b"turn,") {
                break;
            }
        }
        let header = header.ok_or_else(|| lines.invalid(Problem::Preamble { name: "# model=" }))?;
        header.check().map_err(|problem| lines.invalid(problem))?;
        let pending = next_row(&mut lines)?;
        Ok(Self { lines, header, pending, pass: 0 })
    }
}

impl<R: BufRead> VisitSource for BigmoeReader<R> {
    fn header(&self) -> &TraceHeader {
        &self.header
    }

    fn read_visit(&mut self, visit: &mut Visit) -> Result<bool, TraceError> {
        let Some(first) = self.pending else { return Ok(false) };
        *visit = Visit { layer: first.layer, phase: first.phase, ..Visit::default() };
        visit.pass = self.pass;
        while let Some(row) = self.pending.filter(|row| first.same_visit(row)) {
            push(visit, &row).map_err(|problem| self.lines.invalid(problem))?;
            self.pending = next_row(&mut self.lines)?;
        }
        if self.pending.is_some_and(|next| next.layer <= first.layer) {
            self.pass += 1;
        }
        visit.check(&self.header).map_err(|problem| self.lines.invalid(problem))?;
        Ok(true)
    }
}

fn push(visit: &mut Visit, row: &Row) -> Result<(), Problem> {
    let starts_token =
        visit.positions.last() != Some(&row.step) || visit.sequences.last() != Some(&row.turn);
    if starts_token {
        if visit.tokens() == MAX_TOKENS_PER_VISIT {
            let limit = MAX_TOKENS_PER_VISIT as u64;
            return Err(Problem::Range { field: "step", found: limit + 1, limit });
        }
        visit.positions.push(row.step);
        visit.sequences.push(row.turn);
    }
    visit.experts.push(row.expert);
    visit.weights.push(row.weight);
    Ok(())
}

/// The header from `# model=… n_layer=… n_expert=… n_expert_used=…`; the model loses its folder.
fn parse_model(text: &[u8]) -> Option<TraceHeader> {
    let text = std::str::from_utf8(text).ok()?;
    let value = |name: &str| {
        text.split_ascii_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let file = value("model")?.rsplit(['/', '\\']).next()?;
    Some(TraceHeader {
        version: FORMAT_VERSION,
        model: file.trim_end_matches(".gguf").to_owned(),
        layers: value("n_layer")?.parse().ok()?,
        experts: value("n_expert")?.parse().ok()?,
        k: value("n_expert_used")?.parse().ok()?,
    })
}

fn next_row<R: BufRead>(lines: &mut TraceLines<R>) -> Result<Option<Row>, TraceError> {
    let parsed = match lines.next_line()? {
        None => return Ok(None),
        Some(text) => parse_row(text),
    };
    parsed.map(Some).map_err(|problem| lines.invalid(problem))
}

fn parse_row(text: &[u8]) -> Result<Row, Problem> {
    let text = std::str::from_utf8(text).map_err(|_| Problem::Column { column: "turn" })?;
    let mut columns = text.split(',');
    let turn = parse(&mut columns, "turn")?;
    let phase = match parse(&mut columns, "phase")? {
        0_u8 => Phase::Prefill,
        1 => Phase::Decode,
        _ => return Err(Problem::Column { column: "phase" }),
    };
    let step = parse(&mut columns, "step")?;
    let layer = parse(&mut columns, "layer")?;
    let _slot: u16 = parse(&mut columns, "slot")?;
    let expert = parse(&mut columns, "expert")?;
    let weight = parse(&mut columns, "weight")?;
    Ok(Row { turn, phase, step, layer, expert, weight })
}

fn parse<'a, T: std::str::FromStr>(
    columns: &mut impl Iterator<Item = &'a str>,
    column: &'static str,
) -> Result<T, Problem> {
    let text = columns.next().ok_or(Problem::Column { column })?;
    text.parse().map_err(|_| Problem::Column { column })
}
