//! Experts for other machines: rows in, rows out. The same cache, disk and kernels as a session's,
//! over blocks that come from elsewhere; attention, KV cache and everything else of the model are
//! not here, and take no memory.

use crate::blocks::drive::Drive;
use crate::blocks::figures::SharedFigures;
use crate::blocks::machine::MachineHandle;
use crate::blocks::machine::disk::ExpertsError;
use crate::blocks::machine::session::{MachineBlocks, MachineSource};
use crate::blocks::options::StreamingOptions;
use crate::blocks::step::CurrentStep;
use crate::engine::EngineError;
use crate::threads::pools::pools;
use crate::weights::experts_alone;
pub use motley_ggml::RowsIn;
use motley_ggml::{
    BlockError, ComputeOutcome, KeepError, KeptBlocks, Model, ModelOptions, Runtime,
};
use motley_model::{ModelFiles, ModelSpec, check_values};
use motley_plan::ExpertKernels;
use motley_plan::cores::ThreadSets;
use motley_sched::Phase;
use motley_trace::PhaseRecord;
use std::sync::Arc;

/// How a worker holds and computes experts.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Experts that have room in RAM.
    pub slots: u32,
    pub streaming: StreamingOptions,
    pub kernels: ExpertKernels,
    pub threads: ThreadSets,
}

impl WorkerOptions {
    /// Computes as the bare engine does: heads add its rows to their own.
    pub fn new(slots: u32, threads: ThreadSets) -> Self {
        let (streaming, kernels) = (StreamingOptions::default(), ExpertKernels::exact());
        Self { slots, streaming, kernels, threads }
    }
}

/// Why a worker cannot start.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Experts(#[from] ExpertsError),
    #[error("its experts cannot be computed apart from the model: {0}")]
    Keep(#[from] KeepError),
}

/// The experts of a model, ready to compute.
pub struct ExpertWorker {
    spec: Arc<ModelSpec>,
    kept: KeptBlocks,
    drive: Drive,
    step: Arc<CurrentStep>,
    figures: Arc<SharedFigures>,
}

impl ExpertWorker {
    /// Opens the experts of a model whose header has been read; no byte of them is read yet.
    pub fn load(
        runtime: Runtime,
        (spec, files): (ModelSpec, ModelFiles),
        options: &WorkerOptions,
    ) -> Result<Self, WorkerError> {
        let path = files.paths[0].clone();
        let values = |source| EngineError::Values { path: path.clone(), source };
        check_values(&files.headers).map_err(values)?;
        let weights = experts_alone(&spec, &files).map_err(EngineError::from)?;
        let plain =
            ModelOptions { repack: false, gpus: Vec::new(), gpu_layers: 0, gpu_experts: false };
        let refused = |source| EngineError::Load { path: path.clone(), source };
        let model = Model::load(runtime, weights, &plain, &mut |_| true).map_err(refused)?;
        let threads = options.threads.prefill.threads;
        let pools = pools(&options.threads).ok_or(EngineError::Threads(threads))?;
        let kept = KeptBlocks::of(Arc::new(model), &pools)?;
        let spec = Arc::new(spec);
        let source = MachineSource {
            spec: Arc::clone(&spec),
            files: files.opened,
            bytes: None,
            records: false,
        };
        let handle = MachineHandle::default();
        let blocks =
            MachineBlocks::streaming(source, options.slots, &options.streaming, None, handle)?;
        let figures = Arc::new(SharedFigures::new(Some(blocks.places())));
        let step = Arc::<CurrentStep>::default();
        let drive = Drive::new(Some(blocks), None, Arc::clone(&figures));
        let drive = drive.with_kernels(options.kernels.clone()).with_step(Arc::clone(&step));
        Ok(Self { spec, kept, drive, step, figures })
    }

    /// The model.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// Floats of a row that goes into the experts of `layer`, and of one that comes out; `None`
    /// when the layer has no experts.
    pub fn width(&self, layer: u32) -> Option<(usize, usize)> {
        self.kept.width(layer)
    }

    /// Computes `rows` of `layer`, into `out`: one row each, in their order.
    ///
    /// # Panics
    /// When there is no such layer or expert, no row, or a place outside of the rows given.
    pub fn compute(
        &mut self,
        phase: Phase,
        layer: u32,
        rows: RowsIn<'_>,
        out: &mut Vec<f32>,
    ) -> Result<(), BlockError> {
        assert!(rows.experts.iter().all(|&expert| expert < self.spec.experts), "experts there are");
        self.step.set(phase);
        match self.kept.run(layer, rows, &mut self.drive, out)? {
            ComputeOutcome::Done => Ok(()),
            other => Err(BlockError { layer, reason: format!("computing ended: {other:?}") }),
        }
    }

    /// What was done so far: prompts, then decoding.
    pub fn figures(&self) -> (PhaseRecord, PhaseRecord) {
        let sums = self.figures.get();
        (sums.prefill, sums.decode)
    }
}
