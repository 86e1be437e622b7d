//! `Engine`: a loaded model. Opens the files with `motley-model` first, so that
//! llama.cpp only ever meets headers that were read and checked here.

use crate::blocks::drive::Drive;
use crate::blocks::figures::SharedFigures;
use crate::blocks::first_unit::FirstUnitMaker;
use crate::blocks::machine::session::{MachineBlocks, MachineSource};
use crate::blocks::machine::{DeviceOptions, MachineHandle};
use crate::blocks::options::StreamingOptions;
use crate::blocks::remote::{self, Deadlines, RemoteUnit, RemoteWorker, SharedWorkers};
use crate::blocks::routing::RoutingWatcher;
use crate::blocks::step::CurrentStep;
use crate::record::{shared_record, streaming_record};
use crate::session::{Session, SessionError, SessionOptions, SessionParts};
use crate::text::constraint::{Constraint, ConstraintError, TextForm};
use crate::text::sampling::LazyVocabulary;
use crate::threads::contention::ContentionWatch;
use crate::threads::pools::{SharedThreads, every_core, pools};
use crate::weights::{
    ExpertPlan, WeightSource, WeightsError, dense_reads, may_rearrange, nodes_of,
};
use motley_ggml::{
    Context, ContextOptions, LayerGpu, Layout, LoadError, Model, ModelOptions, Pools, ReadCounts,
    Runtime, Weights,
};
use motley_model::{
    FewerError, ModelError, ModelFiles, ModelSpec, OpenedFile, Sizes, ValueError, check_values,
};
use motley_plan::budget::{Budget, SessionShape, TooLittleMemory};
use motley_plan::cores::{NodeShare, ThreadSets};
use motley_plan::{ExpertKernels, Loading};
use motley_sched::spans::Spans;
use motley_store::MappedFiles;
use motley_trace::run::RUN_VERSION;
use motley_trace::{RunRecord, WorkerRecord};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What to load and how.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// How weights come into memory.
    pub loading: Loading,
    /// Let llama.cpp rearrange weights for this CPU (faster; last bits differ).
    /// Experts loaded on demand keep their plain form.
    pub repack: bool,
    /// How the CPU computes experts. Layouts count where `repack` is set.
    pub kernels: ExpertKernels,
    /// Threads of each phase and where they run.
    pub threads: ThreadSets,
    /// Those of another loaded model in place of threads of its own: the two compute in turn, and
    /// idle threads of one do not spin against the other's.
    pub threads_of: Option<SharedThreads>,
    /// Memory nodes that divide the experts, where these are laid out in memory.
    pub nodes: Vec<NodeShare>,
    /// Experts per token in place of the model's own number; not for the bare engine, which reads
    /// the model itself.
    pub experts_used: Option<u32>,
    /// Decode with fewer threads while other programs take the cores away.
    pub yields_cores: bool,
    /// Ceiling for everything, with [`Loading::OnDemand`]; `None` leaves room for
    /// every expert.
    pub memory_bytes: Option<u64>,
    /// How experts are streamed, with [`Loading::OnDemand`].
    pub streaming: StreamingOptions,
    /// Devices that share the experts with the CPU; weights then keep the file's order.
    pub devices: Option<DeviceOptions>,
    /// GPUs llama.cpp computes dense work on; with none it keeps to the CPU.
    pub gpus: Vec<LayerGpu>,
    /// Layers whose dense part, and attention, it computes there.
    pub gpu_layers: u32,
    /// Their routed experts as well: everything fits there, and Motley steps aside.
    pub gpu_experts: bool,
    /// Whether what ran when is recorded ([`Engine::take_spans`]).
    pub records: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            loading: Loading::Mapped,
            repack: true,
            kernels: ExpertKernels::default(),
            threads: every_core(),
            threads_of: None,
            nodes: Vec::new(),
            experts_used: None,
            yields_cores: true,
            memory_bytes: None,
            streaming: StreamingOptions::default(),
            devices: None,
            gpus: Vec::new(),
            gpu_layers: 0,
            gpu_experts: false,
            records: false,
        }
    }
}

/// Why a model could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The files are not a model Motley can read.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It cannot use so many experts per token.
    #[error(transparent)]
    Experts(#[from] FewerError),
    /// Its header has values llama.cpp does not survive.
    #[error("{}: {source}", path.display())]
    Values { path: PathBuf, source: ValueError },
    /// Weights cannot be had from its files.
    #[error(transparent)]
    Weights(#[from] WeightsError),
    /// Somebody wrote to it since its header was read.
    #[error("{}: changed while it was loaded; load it again", path.display())]
    Changed { path: PathBuf },
    /// llama.cpp refused.
    #[error("{}: {source}", path.display())]
    Load { path: PathBuf, source: LoadError },
    /// The system gave no threads.
    #[error("cannot start {0} threads; try fewer with --threads")]
    Threads(u32),
}

/// A loaded model.
pub struct Engine {
    spec: Arc<ModelSpec>,
    files: Vec<OpenedFile>,
    /// The files mapped, when weights are computed where they lie.
    bytes: Option<MappedFiles>,
    model: Arc<Model>,
    pools: Pools,
    threads: ThreadSets,
    options: EngineOptions,
    dense_reads: Option<Arc<ReadCounts>>,
    first_unit: Option<FirstUnitMaker>,
    /// What other machines did, where some compute experts.
    workers: Option<SharedWorkers>,
    machine: MachineHandle,
    vocabulary: LazyVocabulary,
}

impl Engine {
    /// Opens and loads the model at `path` (any part of a split one). `on_progress` is called
    /// with the loaded fraction and may return `false` to stop.
    pub fn load(
        runtime: Runtime,
        path: &Path,
        options: &EngineOptions,
        on_progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Self, EngineError> {
        Self::load_opened(runtime, ModelSpec::open(path)?, options, on_progress)
    }

    /// Loads a model whose header has been read: see [`Engine::load`].
    pub fn load_opened(
        runtime: Runtime,
        (spec, files): (ModelSpec, ModelFiles),
        options: &EngineOptions,
        on_progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Self, EngineError> {
        let (spec, files) = spec.with_experts_used(files, options.experts_used)?;
        let path = &files.paths[0];
        check_values(&files.headers)
            .map_err(|source| EngineError::Values { path: path.into(), source })?;
        let spec = Arc::new(spec);
        let lays_out = options.repack && options.devices.is_none();
        let repack = lays_out && may_rearrange(&spec);
        let EngineOptions { loading, gpu_layers, gpu_experts, .. } = *options;
        let experts = lays_out.then(|| ExpertPlan {
            kernels: options.kernels.clone(),
            threads: options.threads.prefill.threads as usize,
            nodes: nodes_of(&options.nodes),
        });
        let source = WeightSource { runtime, loading, repack, experts, gpu_layers, gpu_experts };
        let weights = source.weights(&spec, &files)?;
        let options = EngineOptions { repack, ..options.clone() };
        Self::load_weights(runtime, (spec, files), weights, &options, on_progress)
    }

    /// Loads `weights`, and has their mapping at hand if they have one; values were checked.
    pub(crate) fn load_weights(
        runtime: Runtime,
        (spec, files): (Arc<ModelSpec>, ModelFiles),
        (weights, bytes): (Weights, Option<MappedFiles>),
        options: &EngineOptions,
        on_progress: &mut dyn FnMut(f32) -> bool,
    ) -> Result<Self, EngineError> {
        let path = &files.paths[0];
        let EngineOptions { repack, gpu_layers, gpu_experts, .. } = *options;
        let dense_reads = dense_reads(&weights);
        let gpus = options.gpus.clone();
        let model_options = ModelOptions { repack, gpus, gpu_layers, gpu_experts };
        let model = Model::load(runtime, weights, &model_options, on_progress)
            .map_err(|source| EngineError::Load { path: path.into(), source })?;
        if let Some(changed) = files.opened.iter().find(|file| !file.is_unchanged()) {
            return Err(EngineError::Changed { path: changed.path().into() });
        }
        let threads = options.threads.clone();
        let pools = match &options.threads_of {
            Some(shared) => shared.0.clone(),
            None => pools(&threads).ok_or(EngineError::Threads(threads.prefill.threads))?,
        };
        Ok(Self {
            spec,
            files: files.opened,
            bytes,
            model: Arc::new(model),
            pools,
            threads,
            options: options.clone(),
            dense_reads,
            first_unit: None,
            workers: None,
            machine: MachineHandle::default(),
            vocabulary: LazyVocabulary::default(),
        })
    }

    /// What ran when since the last call, if it is recorded: on every unit and link.
    pub fn take_spans(&self) -> Option<Spans> {
        self.machine.take_spans()
    }

    /// The devices that share the experts, if there are any: what they did in the session started
    /// last.
    pub fn devices(&self) -> Option<&MachineHandle> {
        self.options.devices.is_some().then_some(&self.machine)
    }

    /// Gives every session started from now on a unit that takes rows before the others.
    pub fn set_first_unit(&mut self, maker: FirstUnitMaker) {
        self.first_unit = Some(maker);
    }

    /// Has sessions started from now on send rows to `workers`.
    pub fn use_workers(&mut self, workers: Vec<RemoteWorker>, deadlines: Deadlines) {
        let layers = self.spec.layers.len();
        let figures = remote::figures_of(layers, &workers);
        self.workers = Some(Arc::clone(&figures));
        self.set_first_unit(Arc::new(move |_| {
            Box::new(RemoteUnit::new(layers, &workers, deadlines, Arc::clone(&figures)))
        }));
    }

    /// What other machines did so far, for all sessions; none where none compute experts.
    pub fn workers(&self) -> Vec<WorkerRecord> {
        self.workers.as_ref().map_or_else(Vec::new, |figures| remote::lock(figures).clone())
    }

    /// Starts a timeline.
    pub fn session(&self, options: &SessionOptions) -> Result<Session, SessionError> {
        self.start(options, None)
    }

    /// As [`Engine::session`], with every routing decision shown to `watcher`: also those of
    /// guesses that are then taken back.
    pub fn watched_session(
        &self,
        options: &SessionOptions,
        watcher: Box<dyn RoutingWatcher>,
    ) -> Result<Session, SessionError> {
        self.start(options, Some(watcher))
    }

    /// The model's shape and where its parts lie.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// Layouts of the routed experts' tensors in memory, with the number of tensors; empty where
    /// they keep the file's order.
    pub fn layouts(&self) -> Vec<(String, usize)> {
        let named = |(layout, count): (Layout, usize)| (layout.name().to_owned(), count);
        self.model.layouts().into_iter().map(named).collect()
    }

    /// Ceiling for everything, if there is one.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.options.memory_bytes
    }

    /// Threads the engine computes with.
    pub fn threads(&self) -> u32 {
        self.pools.decode.threads()
    }

    /// The same threads, for a model beside this one.
    pub fn shared_threads(&self) -> SharedThreads {
        SharedThreads(self.pools.clone())
    }

    /// Whether sessions read experts from disk as they are needed.
    pub fn streams(&self) -> bool {
        self.options.loading == Loading::OnDemand && self.spec.is_moe()
    }

    /// (read, skipped) tensor bytes while loading; `None` when llama.cpp mapped the file.
    pub fn load_reads(&self) -> Option<(u64, u64)> {
        self.dense_reads.as_ref().map(|counts| (counts.read_bytes(), counts.skipped_bytes()))
    }

    /// What an answer may look like: a JSON schema, at its beginning.
    pub fn constraint(&self, schema: &Value) -> Result<Constraint, ConstraintError> {
        self.vocabulary.of(&self.model)?.constraint(schema)
    }

    /// The same for a text that is no JSON.
    pub fn text_constraint(&self, form: TextForm<'_>) -> Result<Constraint, ConstraintError> {
        self.vocabulary.of(&self.model)?.text_constraint(form)
    }

    /// llama.cpp's own.
    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// Whether a sequence's memory can be cut at any position; if not, no token can be taken back
    /// alone, and nothing is guessed ahead.
    pub fn keeps_every_position(&self) -> bool {
        self.model.keeps_every_position()
    }

    /// A context whose blocks run on `drive`.
    pub(crate) fn context(
        &self,
        shape: &ContextOptions,
        drive: Drive,
    ) -> Result<Context, SessionError> {
        let model = Arc::clone(&self.model);
        let claims = drive.claims(&self.spec, &model);
        Ok(Context::new(model, shape, self.pools.clone(), (Box::new(drive), claims))?)
    }

    /// The executor of a context of this shape, and its figures when it streams. Whoever makes
    /// the context's batches says their phase through `step`.
    pub(crate) fn drive(
        &self,
        shape: SessionShape,
        watcher: Option<Box<dyn RoutingWatcher>>,
        step: Arc<CurrentStep>,
    ) -> Result<(Drive, Arc<SharedFigures>), SessionError> {
        let machine = self.machine_blocks(shape)?;
        let places = machine.as_ref().map(MachineBlocks::places);
        let first_unit = self.first_unit.as_ref().map(|make| make(places.clone()));
        let figures = Arc::new(SharedFigures::new(places));
        let drive = Drive::new(machine, watcher, Arc::clone(&figures));
        let drive = drive.with_kernels(self.options.kernels.clone());
        Ok((drive.with_first_unit(first_unit).with_step(step), figures))
    }

    /// The executor of a session whose experts are read from disk or shared with devices.
    fn machine_blocks(&self, shape: SessionShape) -> Result<Option<MachineBlocks>, SessionError> {
        let source = MachineSource {
            spec: Arc::clone(&self.spec),
            files: self.files.clone(),
            bytes: self.bytes.clone(),
            records: self.options.records,
        };
        let (devices, handle) = (self.options.devices.clone(), self.machine.clone());
        if self.streams() {
            let (slots, options) = (self.slots(shape)?, &self.options.streaming);
            let made = MachineBlocks::streaming(source, slots, options, devices, handle)?;
            return Ok(Some(made));
        }
        // Without a mapping llama.cpp has rearranged the bytes, or has them on a GPU.
        match devices.filter(|_| self.spec.is_moe() && self.bytes.is_some()) {
            Some(devices) => Ok(Some(MachineBlocks::beside_cpu(source, devices, handle)?)),
            None => Ok(None),
        }
    }

    /// How weights came into memory.
    pub fn loading(&self) -> Loading {
        self.options.loading
    }

    /// The model's shape and its files.
    pub(crate) fn files(&self) -> (Arc<ModelSpec>, Vec<OpenedFile>) {
        (Arc::clone(&self.spec), self.files.clone())
    }

    /// A watch over a context of this model's, where decoding shall leave cores to other programs.
    pub(crate) fn contention_watch(&self) -> Option<ContentionWatch> {
        let yields = self.options.yields_cores && self.threads.decode.threads > 1;
        let watch = || ContentionWatch::new(self.pools.clone(), self.threads.decode.clone());
        yields.then(watch)
    }

    /// Model and pools, for a context of the caller's own.
    #[cfg(test)]
    pub(crate) fn parts(&self) -> (Arc<Model>, Pools) {
        (Arc::clone(&self.model), self.pools.clone())
    }

    fn start(
        &self,
        options: &SessionOptions,
        watcher: Option<Box<dyn RoutingWatcher>>,
    ) -> Result<Session, SessionError> {
        let step = Arc::<CurrentStep>::default();
        let (drive, figures) = self.drive(options.shape(), watcher, Arc::clone(&step))?;
        let contention = self.contention_watch();
        let parts = SessionParts { pools: self.pools.clone(), drive, figures, step, contention };
        Session::new((Arc::clone(&self.model), &self.spec), options, parts)
    }

    fn slots(&self, shape: SessionShape) -> Result<u32, TooLittleMemory> {
        let EngineOptions { gpus, gpu_layers, .. } = &self.options;
        let apart = *gpu_layers > 0 && gpus.iter().all(|gpu| gpu.device.has_own_memory());
        let budget = Budget::of(&self.spec, shape);
        let budget = if apart { budget.beside_dense_gpu() } else { budget };
        match self.options.memory_bytes {
            Some(memory_bytes) => budget.slots(memory_bytes),
            None => Ok(budget.experts + 1),
        }
    }

    /// The figures of `session`, one of this engine's, with the settings they came from.
    pub fn record(&self, session: &Session) -> RunRecord {
        let stats = session.stats();
        let setup = session.setup();
        let streaming =
            stats.stream.zip(setup).map(|(stream, setup)| streaming_record(setup, &stream));
        RunRecord {
            motley_run: RUN_VERSION,
            model: self.spec.name.clone().unwrap_or_else(|| self.spec.architecture.clone()),
            expert_layers: self.spec.expert_layers().count() as u32,
            expert_bytes: Sizes::of(&self.spec).expert_bytes_max,
            threads: self.threads(),
            memory_bytes: self.options.memory_bytes,
            layouts: self.layouts(),
            streaming,
            shared: self.devices().map(shared_record),
            workers: self.workers(),
            prefill: stats.prefill,
            decode: stats.decode,
            speculation: stats.speculation,
            sampling_s: stats.sampling_time.as_secs_f64(),
            energy: session.energy.record(&stats.prefill, &stats.decode),
        }
    }
}
