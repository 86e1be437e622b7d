//! A session's routing written down as it happens, within a limit. Watches; changes nothing.
//!
//! Weights stay in llama.cpp's graph and never reach the seam, so a trace has ids only, best
//! first; what learns from weights (MRS) then takes the chosen experts as equal.

use crate::known::model_name;
use motley_engine::{RoutedBlock, RoutingWatcher};
use motley_model::ModelSpec;
use motley_trace::record::FORMAT_VERSION;
use motley_trace::whole_file::WholeFile;
use motley_trace::write::WriteError;
use motley_trace::{Phase, TraceHeader, TraceWriter, Visit};
use serde::Serialize;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    pub(crate) prefill_tokens: u64,
    pub(crate) decode_tokens: u64,
    pub(crate) visits: u64,
}

/// The header of a trace of this model.
pub(crate) fn header(spec: &ModelSpec, path: &Path) -> TraceHeader {
    TraceHeader {
        version: FORMAT_VERSION,
        model: model_name(spec, path),
        layers: spec.layers.len() as u16,
        experts: spec.experts as u16,
        k: spec.used as u16,
    }
}

/// A recorder shared with the session it watches.
#[derive(Clone)]
pub(crate) struct SharedRecorder(Arc<Mutex<Recorder>>);

impl SharedRecorder {
    /// Records into the file at `path`, which changes when recording ends; after `max_visits`
    /// only counts.
    pub(crate) fn new(
        path: &Path,
        header: TraceHeader,
        max_visits: u64,
    ) -> Result<Self, WriteError> {
        let begun = |source| WriteError::Io { visit: 0, source };
        let file = WholeFile::replace(path).map_err(begun)?;
        let writer = TraceWriter::new(BufWriter::new(file), header)?;
        Ok(Self(Arc::new(Mutex::new(Recorder::new(writer, max_visits)))))
    }

    /// What a session shows its routing to.
    pub(crate) fn watcher(&self) -> Box<dyn RoutingWatcher> {
        Box::new(self.clone())
    }

    /// Writes out what is left and gives the file its place; the first failure, if there was one.
    pub(crate) fn finish(&self) -> Result<Counts, WriteError> {
        self.lock().finish()
    }

    fn lock(&self) -> MutexGuard<'_, Recorder> {
        self.0.lock().expect("nobody panics with this lock")
    }
}

impl RoutingWatcher for SharedRecorder {
    fn on_routed(&mut self, routed: &RoutedBlock) {
        self.lock().on_routed(routed);
    }
}

/// Turns what the seam shows into visits. Layers rise within a pass, so one that does not
/// begins the next.
struct Recorder {
    writer: Option<TraceWriter<BufWriter<WholeFile>>>,
    failed: Option<WriteError>,
    max_visits: u64,
    visit: Visit,
    last_layer: Option<u32>,
    /// Position of the pass's first token, and its number of tokens.
    pass: (u32, u32),
    counts: Counts,
}

impl Recorder {
    fn new(writer: TraceWriter<BufWriter<WholeFile>>, max_visits: u64) -> Self {
        Self {
            writer: Some(writer),
            failed: None,
            max_visits,
            visit: Visit::default(),
            last_layer: None,
            pass: (0, 0),
            counts: Counts::default(),
        }
    }

    fn on_routed(&mut self, routed: &RoutedBlock) {
        let tokens = routed.tokens() as u32;
        if self.last_layer.is_none_or(|last| routed.layer <= last) {
            self.begin_pass(routed.phase, tokens);
        }
        self.last_layer = Some(routed.layer);
        if tokens == 0 {
            return;
        }
        let (first, count) = self.pass;
        // The last layer computes only the tokens whose output is wanted: the last ones, or none.
        let end = first + count;
        self.visit.layer = routed.layer as u16;
        self.visit.positions.clear();
        self.visit.positions.extend(end - tokens.min(count)..end);
        self.visit.experts.clear();
        self.visit.experts.extend(routed.experts.iter().map(|&expert| expert as u16));
        self.write();
    }

    fn begin_pass(&mut self, phase: Phase, tokens: u32) {
        self.visit.pass += u64::from(self.last_layer.is_some());
        self.pass = (self.pass.0 + self.pass.1, tokens);
        self.visit.phase = phase;
        match self.visit.phase {
            Phase::Prefill => self.counts.prefill_tokens += u64::from(tokens),
            Phase::Decode => self.counts.decode_tokens += u64::from(tokens),
        }
    }

    /// After a failure nothing more is written; it is reported at the end.
    fn write(&mut self) {
        let may = self.failed.is_none() && self.counts.visits < self.max_visits;
        let Some(writer) = self.writer.as_mut().filter(|_| may) else { return };
        match writer.write_visit(&self.visit) {
            Ok(()) => self.counts.visits += 1,
            Err(error) => self.failed = Some(error),
        }
    }

    fn finish(&mut self) -> Result<Counts, WriteError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if let Some(writer) = self.writer.take() {
            let ended = |source| WriteError::Io { visit: self.counts.visits, source };
            let file = writer.finish()?.into_inner().map_err(io::IntoInnerError::into_error);
            file.and_then(WholeFile::finish).map_err(ended)?;
        }
        Ok(self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_trace::{Trace, TraceReader};
    use std::fs::File;
    use std::io::BufReader;

    use Phase::{Decode, Prefill};

    fn routed(phase: Phase, layer: u32, experts: &[u32]) -> RoutedBlock {
        RoutedBlock { phase, layer, slots: 2, experts: experts.to_vec() }
    }

    fn recorded(max_visits: u64) -> (Counts, Trace) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        let header =
            TraceHeader { version: FORMAT_VERSION, model: "m".into(), layers: 2, experts: 4, k: 2 };
        let recorder = SharedRecorder::new(&path, header, max_visits).unwrap();
        let mut watcher = recorder.watcher();
        for visit in [
            routed(Prefill, 0, &[0, 1, 2, 3]),
            routed(Prefill, 1, &[1, 2]),
            routed(Decode, 0, &[3, 0]),
            routed(Decode, 1, &[0, 2]),
            routed(Prefill, 0, &[1, 0, 2, 3]),
            routed(Prefill, 1, &[1, 3]),
        ] {
            watcher.on_routed(&visit);
        }
        let counts = recorder.finish().unwrap();
        let mut reader = TraceReader::new(BufReader::new(File::open(&path).unwrap())).unwrap();
        (counts, Trace::collect(&mut reader).unwrap())
    }

    #[test]
    fn passes_keep_the_phase_of_their_batch_also_between_prompts() {
        let (counts, trace) = recorded(u64::MAX);
        assert_eq!(counts, Counts { prefill_tokens: 4, decode_tokens: 1, visits: 6 });
        let phases: Vec<_> = trace.visits.iter().map(|v| (v.pass, v.phase)).collect();
        let expected =
            [(0, Prefill), (0, Prefill), (1, Decode), (1, Decode), (2, Prefill), (2, Prefill)];
        assert_eq!(phases, expected);
        assert_eq!(trace.visits[1].positions, [1], "the last token of the prompt");
        assert_eq!(trace.visits[4].positions, [3, 4]);
    }

    #[test]
    fn at_the_limit_it_only_counts() {
        let (counts, trace) = recorded(3);
        assert_eq!((counts.visits, trace.visits.len()), (3, 3));
        assert_eq!(counts.prefill_tokens, 4);
    }
}
