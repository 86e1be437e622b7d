//! The blocks of a session through a device and the CPU at once: what `Engine` makes of
//! [`HybridOptions`]. Puts parts together and counts; the scheduler decides.

use super::device::{CpuHome, DeviceJob, DeviceUnit};
use super::executor::{Executor, ExecutorParts};
use super::figures::HybridFigures;
use super::several::{self, ByLayer, DeviceRoom, Devices};
use super::units::Flow;
use crate::blocks::clock::Clock;
use crate::blocks::gates::Gates;
use crate::blocks::helper::BlockHelper;
use crate::blocks::loads::Loads;
use crate::blocks::predict::{Predictor, Wants};
use crate::blocks::streaming::trace_header;
use motley_ggml::gpu::GpuUnit;
use motley_ggml::{ComputeOutcome, CpuUnit, ExpertBlock};
use motley_machine::Regime;
use motley_model::{ModelSpec, OpenedFile, Sizes};
use motley_plan::ExpertKernels;
use motley_sched::cache::Routed;
use motley_sched::prefetch::Prediction;
use motley_sched::regime::typical_hybrid;
use motley_sched::shares::Shares;
use motley_sched::spans::Spans;
use motley_sched::{Costs, Phase, Routing, Rules, SchedulerSetup};
use motley_store::MappedFiles;
use motley_trace::ExpertKey;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// How devices share the experts of a model with the CPU.
#[derive(Debug, Clone)]
pub struct HybridOptions {
    /// The devices; each has the experts of some layers.
    pub devices: Vec<DeviceRoom>,
    /// Most experts there at once.
    pub experts_most: u32,
    /// Who decides. Experts the CPU computed are not brought afterwards, unless the prefetcher is
    /// one of the refills.
    pub rules: Rules,
    /// Experts known to be used much, the most used first: the devices begin with them.
    pub most_used: Vec<ExpertKey>,
    /// What things cost; `None` takes typical ones.
    pub costs: Option<Costs>,
    /// Whether what ran when is recorded.
    pub records: bool,
}

impl HybridOptions {
    /// The defaults of the regime over `devices`.
    pub fn over(devices: Vec<DeviceRoom>) -> Self {
        Self {
            devices,
            experts_most: u32::MAX,
            rules: Rules::default_for(Regime::Hybrid),
            most_used: Vec::new(),
            costs: None,
            records: false,
        }
    }
}

type DeviceExecutor = Executor<ByLayer<DeviceUnit>>;

/// A window on the sessions' device from outside.
#[derive(Clone, Default)]
pub struct HybridHandle(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    executor: Option<Arc<DeviceExecutor>>,
    report: HybridReport,
    setup: Option<SchedulerSetup>,
}

/// What the device was given and did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HybridReport {
    /// Experts that may stay on it.
    pub cache_slots: u32,
    /// Blocks the device could not take, and why the last.
    pub refused: u64,
    pub refused_reason: Option<String>,
    pub figures: HybridFigures,
}

impl HybridHandle {
    /// Figures of the session started last.
    pub fn report(&self) -> HybridReport {
        let state = self.lock();
        let figures = state.executor.as_ref().map(|executor| executor.figures());
        HybridReport { figures: figures.unwrap_or_default(), ..state.report.clone() }
    }

    /// Who decides in the session started last, once its first block came.
    pub fn setup(&self) -> Option<SchedulerSetup> {
        self.lock().setup.clone()
    }

    /// What ran when, if it was recorded.
    pub fn take_spans(&self) -> Option<Spans> {
        self.lock().executor.as_ref().and_then(|executor| executor.take_spans())
    }

    /// The CPU takes the block; said, not silent.
    fn refuse(&self, reason: String) -> Option<ComputeOutcome> {
        let mut state = self.lock();
        state.report.refused += 1;
        state.report.refused_reason = Some(reason);
        None
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The model, and where the bytes of its experts are.
#[derive(Clone)]
pub(crate) struct HelperSource {
    pub(crate) spec: Arc<ModelSpec>,
    pub(crate) files: Vec<OpenedFile>,
    pub(crate) bytes: MappedFiles,
}

/// The device in one session. Starts with the first block: then everything else is in memory.
pub(crate) struct HybridHelper {
    source: HelperSource,
    options: HybridOptions,
    handle: HybridHandle,
    started: Option<Started>,
    loads: Loads,
}

struct Started {
    executor: Arc<DeviceExecutor>,
    /// To ask whether a block is taken.
    units: ByLayer<GpuUnit>,
    /// Layers and numbers of rows for which the answer was yes: it stays, and every token asks.
    taken: HashSet<(u32, usize)>,
    predictor: Option<Predictor>,
}

impl BlockHelper for HybridHelper {
    fn run(
        &mut self,
        phase: Phase,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
        kernels: &ExpertKernels,
    ) -> Result<Option<ComputeOutcome>, String> {
        let job = match DeviceJob::new(block) {
            Ok(job) => job,
            Err(reason) => return Ok(self.handle.refuse(reason.to_string())),
        };
        if self.started.is_none() {
            self.started = Some(self.start()?);
        }
        let Some(Started { executor, units, taken, predictor }) = &mut self.started else {
            return Ok(None);
        };
        let kind = (block.layer(), block.tokens() * block.slots());
        if !taken.contains(&kind) {
            if let Err(reason) = units.check(&job) {
                return Ok(self.handle.refuse(reason.to_string()));
            }
            taken.insert(kind);
        }
        self.loads.count(block);
        if let Some(predictor) = predictor {
            predictor.look(phase, block, self.loads.experts(), cpu);
        }
        let (scores, predictions): (&[f32], &[Prediction]) = match predictor {
            Some(predictor) => (predictor.scores(), predictor.predictions()),
            None => (&[], &[]),
        };
        let routed = Routed {
            layer: block.layer() as u16,
            tokens: block.tokens() as u32,
            experts: self.loads.experts(),
            loads: self.loads.tokens(),
            weights: &[],
            scores,
        };
        let routing = Routing { routed, phase, predictions };
        let done = executor.run(&routing, job, &mut CpuHome { block, cpu, kernels });
        let done = done.map_err(|error| error.to_string())?;
        done.job.finish(block);
        Ok(Some(match done.flow {
            Flow::Done => ComputeOutcome::Done,
            Flow::Cancelled => ComputeOutcome::Aborted,
        }))
    }
}

impl HybridHelper {
    pub(crate) fn new(source: HelperSource, options: HybridOptions, handle: HybridHandle) -> Self {
        Self { source, options, handle, started: None, loads: Loads::default() }
    }

    fn start(&self) -> Result<Started, String> {
        let options = &self.options;
        // A session that has ended gives its memory back first.
        self.handle.lock().executor = None;
        let (spec, most) = (&self.source.spec, options.experts_most);
        let Devices { shares, fast, link, units } =
            several::start(&options.devices, most, spec, self.source.bytes.clone())?;
        self.handle.lock().report.cache_slots = shares.capacity.total();
        let (setup, header) = (self.setup(shares), trace_header(spec));
        let executor = Arc::new(Executor::new(ExecutorParts {
            staging_slots: setup.first().limits.staging_slots,
            scheduler: setup.scheduler(&header),
            fast,
            link,
            clock: Clock::wall(),
            records: options.records,
        }));
        executor.preload(&setup.residents(&header)).map_err(|error| error.to_string())?;
        let mut state = self.handle.lock();
        (state.executor, state.setup) = (Some(Arc::clone(&executor)), Some(setup));
        drop(state);
        Ok(Started { executor, units, taken: HashSet::new(), predictor: self.predictor()? })
    }

    fn predictor(&self) -> Result<Option<Predictor>, String> {
        let wants = Wants::of(&self.options.rules);
        if !wants.any() {
            return Ok(None);
        }
        let gates = Gates::read(&self.source.spec, &self.source.files);
        let gates = gates.map_err(|error| error.to_string())?;
        Ok(Some(Predictor::new(gates, wants)))
    }

    fn setup(&self, shares: Shares) -> SchedulerSetup {
        let options = &self.options;
        let typical = || typical_hybrid(Sizes::of(&self.source.spec).expert_bytes_max);
        let costs = options.costs.clone().unwrap_or_else(typical);
        SchedulerSetup::beside_home(options.rules, shares, costs, options.most_used.clone())
    }
}
