//! A whole trace in memory, for what needs the future or a half: bounds, hold-outs, fitting.
//! Not for traces of millions of tokens; those stream through a `VisitSource`.

use crate::read::{TraceError, VisitSource};
use crate::record::{Phase, TraceHeader, Visit};

/// Header and visits.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// What the visits refer to.
    pub header: TraceHeader,
    /// The visits in the order of execution.
    pub visits: Vec<Visit>,
}

impl Trace {
    /// Everything `source` yields.
    pub fn collect(source: &mut dyn VisitSource) -> Result<Self, TraceError> {
        let mut visits = Vec::new();
        let mut visit = Visit::default();
        while source.read_visit(&mut visit)? {
            visits.push(std::mem::take(&mut visit));
        }
        Ok(Self { header: source.header().clone(), visits })
    }

    /// The visits once more, one by one.
    pub fn source(&self) -> TraceSource<'_> {
        TraceSource { trace: self, next: 0 }
    }

    /// Forward passes of `phase`.
    pub fn passes(&self, phase: Phase) -> u64 {
        let mut last = None;
        let of_phase = self.visits.iter().filter(|visit| visit.phase == phase);
        of_phase.filter(|visit| last.replace(visit.pass) != Some(visit.pass)).count() as u64
    }

    /// The number of the pass before which half of the decode passes lie: where a hold-out
    /// begins. Prefill belongs to the first half of what follows it.
    pub fn middle_pass(&self) -> u64 {
        self.pass_after(0.5)
    }

    /// The same for another part (0 to 1) of the decode passes.
    pub fn pass_after(&self, part: f64) -> u64 {
        let before = self.passes(Phase::Decode) as f64 * part;
        let mut last = None;
        let mut decode = self
            .visits
            .iter()
            .filter(|visit| visit.phase == Phase::Decode)
            .filter(|visit| last.replace(visit.pass) != Some(visit.pass));
        decode.nth(before as usize).map_or(0, |visit| visit.pass)
    }

    /// The visits of passes before `pass`, as a trace of their own.
    pub fn before(&self, pass: u64) -> Self {
        let visits = self.visits.iter().filter(|visit| visit.pass < pass).cloned().collect();
        Self { header: self.header.clone(), visits }
    }

    /// How often each expert was chosen in passes before `pass`, dense by grid index.
    pub fn uses_before(&self, pass: u64) -> Vec<u64> {
        let grid = self.header.grid();
        let mut uses = vec![0; grid.len()];
        for visit in self.visits.iter().filter(|visit| visit.pass < pass) {
            visit.experts.iter().for_each(|&expert| uses[grid.index(visit.key(expert))] += 1);
        }
        uses
    }
}

/// A [`Trace`] read from memory.
#[derive(Clone, Debug)]
pub struct TraceSource<'a> {
    trace: &'a Trace,
    next: usize,
}

impl VisitSource for TraceSource<'_> {
    fn header(&self) -> &TraceHeader {
        &self.trace.header
    }

    fn read_visit(&mut self, visit: &mut Visit) -> Result<bool, TraceError> {
        let Some(next) = self.trace.visits.get(self.next) else { return Ok(false) };
        visit.clone_from(next);
        self.next += 1;
        Ok(true)
    }
}
