//! One model of the host's whose experts we hold: where they are in its files, and who computes
//! them. Started by its first block, when the host's context is there.

use crate::decision::Choice;
use crate::say::say;
use motley_engine::hosted::HostedModel;
use motley_ggml::hosted::HandedTensor;
use motley_ggml::hosted::maps::{self, Advice, Mapping};
use motley_ggml::{BlockError, BlockExecutor, ComputeOutcome, CpuUnit, ExpertBlock};
use motley_model::{ModelFiles, ModelSpec, SpecTensor, read_exact_at};
use motley_trace::RunRecord;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes at both ends of a tensor by which it is told from others.
const COMPARED_BYTES: usize = 1 << 16;

/// A host loads a model twice in a row, to see what fits and to have it; what was decided counts
/// for both.
const FRESH_TIME: Duration = Duration::from_secs(60);

/// The model.
pub(crate) struct Model {
    pub(crate) spec: Arc<ModelSpec>,
    pub(crate) files: ModelFiles,
    pub(crate) choice: Choice,
    running: Mutex<Running>,
    /// Where the host has mapped its files.
    mapped: Mutex<Vec<Mapping>>,
    decided: Instant,
}

#[derive(Default)]
struct Running {
    experts: Option<HostedModel>,
    /// Why its experts cannot be had; said once, and every block fails with it.
    problem: Option<String>,
}

impl Model {
    pub(crate) fn new(spec: ModelSpec, files: ModelFiles, choice: Choice) -> Self {
        Self {
            spec: Arc::new(spec),
            files,
            choice,
            running: Mutex::default(),
            mapped: Mutex::default(),
            decided: Instant::now(),
        }
    }

    /// Whether what was decided may be of yesterday.
    pub(crate) fn is_stale(&self) -> bool {
        self.decided.elapsed() > FRESH_TIME
    }

    /// What it is called in lines for people.
    pub(crate) fn name(&self) -> String {
        let file = || self.files.paths[0].file_name().unwrap_or_default().to_string_lossy();
        self.spec.name.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| file().into())
    }

    /// The tensor of this name and shape.
    pub(crate) fn tensor(&self, wanted: &HandedTensor<'_>) -> Option<&SpecTensor> {
        let tensor = self.spec.tensors.iter().find(|tensor| tensor.name == wanted.name)?;
        let dim = |at: usize| tensor.dims.get(at).copied().unwrap_or(1);
        let same = (0..4).all(|at| dim(at) == wanted.dims[at]);
        (same && tensor.ty.id() == wanted.type_id).then_some(tensor)
    }

    /// Whether `path` is one of its files, as number `file`.
    pub(crate) fn has_file(&self, file: usize, path: &Path) -> bool {
        self.files.opened.get(file).is_some_and(|opened| same_file(opened.path(), path))
    }

    /// Whether any of its files is `path`.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        (0..self.files.opened.len()).any(|file| self.has_file(file, path))
    }

    /// Whether `bytes`, which begin at `offset` of the tensor, are those of its file: both ends are
    /// compared.
    pub(crate) fn has_bytes(&self, tensor: &SpecTensor, offset: usize, bytes: &[u8]) -> bool {
        let end = (offset as u64).checked_add(bytes.len() as u64);
        if bytes.is_empty() || end.is_none_or(|end| end > tensor.range.len_bytes) {
            return false;
        }
        let part = bytes.len().min(COMPARED_BYTES);
        let same = |from: usize| {
            let mut there = vec![0; part];
            let read = self.read(tensor, offset + from, &mut there);
            read.is_ok() && there == bytes[from..from + part]
        };
        same(0) && same(bytes.len() - part)
    }

    /// Bytes of a tensor from its file.
    pub(crate) fn read(
        &self,
        tensor: &SpecTensor,
        offset: usize,
        out: &mut [u8],
    ) -> io::Result<()> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let file = self.files.opened.get(tensor.range.file).ok_or_else(missing)?;
        read_exact_at(file.file(), out, tensor.range.offset + offset as u64)
    }

    /// The host has mapped file number `file` there, without reading it: dense weights are read now,
    /// ahead of the loader, and experts are left where they are.
    pub(crate) fn mapped_at(&self, file: usize, mapping: &Mapping) {
        let mut mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        if mapped.iter().any(|known| known.start == mapping.start) {
            return;
        }
        mapped.push(mapping.clone());
        let experts = |tensor: &SpecTensor| tensor.role.is_expert_matrix();
        let dense = self.spec.tensors.iter().filter(|tensor| tensor.range.file == file);
        for range in dense.filter(|tensor| !experts(tensor)).map(|tensor| tensor.range) {
            let Some(into) = range.offset.checked_sub(mapping.offset) else { continue };
            let start = mapping.start + into as usize;
            maps::advise(start, start + range.len_bytes as usize, Advice::Soon);
        }
    }

    /// From now on the system reads ahead again where dense weights are needed.
    fn read_ahead(&self) {
        let mapped = self.mapped.lock().unwrap_or_else(PoisonError::into_inner);
        for mapping in mapped.iter() {
            maps::advise(mapping.start, mapping.end, Advice::Normal);
        }
    }

    /// Its experts cannot be had: every block fails, with this reason.
    pub(crate) fn refuse(&self, problem: String) {
        let mut running = self.lock();
        if running.problem.is_none() {
            say(&format!("{}: {problem}", self.name()));
            running.problem = Some(problem);
        }
    }

    /// Computes a block; the first one opens the experts.
    pub(crate) fn execute(
        &self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        let layer = block.layer();
        let mut running = self.lock();
        if let Some(problem) = &running.problem {
            return Err(BlockError { layer, reason: problem.clone() });
        }
        if running.experts.is_none() {
            match self.start() {
                Ok(experts) => running.experts = Some(experts),
                Err(problem) => {
                    running.problem = Some(problem.clone());
                    return Err(BlockError { layer, reason: problem });
                }
            }
        }
        let experts = running.experts.as_mut().expect("started just now");
        experts.execute(block, cpu)
    }

    /// What it came to; `None` before its first block.
    pub(crate) fn record(&self) -> Option<RunRecord> {
        self.lock().experts.as_ref().map(HostedModel::record)
    }

    fn start(&self) -> Result<HostedModel, String> {
        self.read_ahead();
        let options = self.choice.options().map_err(|error| error.to_string())?;
        let experts = self.choice.decision.budget.experts;
        let slots = options.slots.min(experts);
        let opened = self.files.opened.clone();
        let started = HostedModel::start(Arc::clone(&self.spec), opened, options);
        let started = started.map_err(|error| error.to_string())?;
        say(&format!("{}: room for {slots} of {experts} experts in memory", self.name()));
        Ok(started)
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// By path, or where both lead to.
fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| PathBuf::from(path));
    one == other || real(one) == real(other)
}
