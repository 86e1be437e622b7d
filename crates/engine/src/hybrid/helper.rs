//! The blocks of a session through a device and the CPU at once: what `Engine` makes of
//! [`HybridOptions`]. Puts parts together and counts; the scheduler decides.

use super::clock::Clock;
use super::device::{CpuHome, DeviceJob, DeviceUnit};
use super::devices::{self, ByLayer, DeviceRoom, Devices};
use super::executor::{Executor, ExecutorParts, HybridFigures};
use super::units::Flow;
use crate::drive::phase_of;
use crate::foresight::{Foresight, Wants};
use crate::gates::Gates;
use crate::helper::BlockHelper;
use crate::loads::Loads;
use crate::streaming::trace_header;
use motley_ggml::gpu::GpuUnit;
use motley_ggml::{ComputeOutcome, CpuUnit, ExpertBlock};
use motley_model::{ModelSpec, Sizes};
use motley_plan::{Calibration, Demand, ExpertCosts};
use motley_sched::cache::{PolicyChoice, Routed};
use motley_sched::hybrid::HybridSetup;
use motley_sched::prefetch::{Prediction, PrefetchChoice};
use motley_sched::regime::{KnownCosts, usual_hybrid};
use motley_sched::shares::Shares;
use motley_sched::spans::Spans;
use motley_sched::strategy::StrategyChoice;
use motley_sched::{Costs, Routing};
use motley_trace::ExpertKey;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// How devices share the experts of a model with the CPU.
#[derive(Debug, Clone)]
pub struct HybridOptions {
    /// The devices; each has the experts of some layers.
    pub devices: Vec<DeviceRoom>,
    /// Most experts there at once.
    pub experts_most: u32,
    /// Who computes in prompts.
    pub prefill: StrategyChoice,
    /// Who computes in decode.
    pub decode: StrategyChoice,
    /// Which experts stay on the device.
    pub policy: PolicyChoice,
    /// What is brought before it is asked for, into idle link time only (M4). Experts the CPU
    /// computed are not brought afterwards, unless this is one of the refills.
    pub prefetch: PrefetchChoice,
    /// Experts known to be used much, the most used first: the devices begin with them.
    pub most_used: Vec<ExpertKey>,
    /// What things cost; `None` takes usual ones.
    pub costs: Option<Costs>,
    /// Whether what ran when is recorded.
    pub records: bool,
}

impl HybridOptions {
    /// The usual for `devices`.
    pub fn over(devices: Vec<DeviceRoom>) -> Self {
        Self {
            devices,
            experts_most: u32::MAX,
            prefill: StrategyChoice::Timelines,
            decode: StrategyChoice::Timelines,
            policy: PolicyChoice::default(),
            prefetch: PrefetchChoice::WholeLayer,
            most_used: Vec::new(),
            costs: None,
            records: false,
        }
    }

    /// The same with what `calibration` knows of the CPU, the device and the link in place of
    /// usual costs.
    #[must_use]
    pub fn calibrated(self, calibration: &Calibration, spec: &ModelSpec) -> Self {
        let known = ExpertCosts::of(calibration, &Demand::of(spec));
        let ExpertCosts { cpu, gpu: device, link } = known;
        let known = KnownCosts { cpu: Some(cpu), device, link };
        let costs = known.hybrid(Sizes::of(spec).expert_bytes_max);
        Self { costs: Some(costs), ..self }
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
    setup: Option<HybridSetup>,
}

/// What the device was given and did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HybridReport {
    /// Experts that may stay on it.
    pub cache_slots: u32,
    /// Blocks the device could not take, and why the last.
    pub refused: u64,
    /// Why.
    pub refused_reason: Option<String>,
    /// Sums.
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
    pub fn setup(&self) -> Option<HybridSetup> {
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

/// The device in one session. Starts with the first block: then everything else is in memory.
pub(crate) struct HybridHelper {
    spec: Arc<ModelSpec>,
    paths: Vec<PathBuf>,
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
    foresight: Option<Foresight>,
}

impl BlockHelper for HybridHelper {
    fn run(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<Option<ComputeOutcome>, String> {
        let job = match DeviceJob::new(block) {
            Ok(job) => job,
            Err(reason) => return Ok(self.handle.refuse(reason.to_string())),
        };
        if self.started.is_none() {
            self.started = Some(self.start()?);
        }
        let Some(Started { executor, units, taken, foresight }) = &mut self.started else {
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
        let phase = phase_of(block);
        if let Some(foresight) = foresight {
            foresight.look(phase, block, self.loads.experts(), cpu);
        }
        let (scores, predictions): (&[f32], &[Prediction]) = match foresight {
            Some(foresight) => (foresight.scores(), foresight.predictions()),
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
        let done = executor.run(&routing, job, &mut CpuHome { block, cpu });
        let done = done.map_err(|error| error.to_string())?;
        done.job.finish(block);
        Ok(Some(match done.flow {
            Flow::Done => ComputeOutcome::Done,
            Flow::Cancelled => ComputeOutcome::Aborted,
        }))
    }
}

impl HybridHelper {
    pub(crate) fn new(
        spec: Arc<ModelSpec>,
        paths: Vec<PathBuf>,
        options: HybridOptions,
        handle: HybridHandle,
    ) -> Self {
        Self { spec, paths, options, handle, started: None, loads: Loads::default() }
    }

    fn start(&self) -> Result<Started, String> {
        let options = &self.options;
        // A session that has ended gives its memory back first.
        self.handle.lock().executor = None;
        let (spec, most) = (&self.spec, options.experts_most);
        let Devices { shares, fast, link, units } =
            devices::start(&options.devices, most, spec, &self.paths)?;
        self.handle.lock().report.cache_slots = shares.capacity.total();
        let (setup, header) = (self.setup(shares), trace_header(&self.spec));
        let executor = Arc::new(Executor::new(ExecutorParts {
            staging_slots: setup.limits.staging_slots,
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
        Ok(Started { executor, units, taken: HashSet::new(), foresight: self.foresight()? })
    }

    fn foresight(&self) -> Result<Option<Foresight>, String> {
        let wants = Wants::of(self.options.policy, self.options.prefetch);
        if !wants.any() {
            return Ok(None);
        }
        let gates = Gates::read(&self.spec, &self.paths).map_err(|error| error.to_string())?;
        Ok(Some(Foresight::new(gates, wants)))
    }

    fn setup(&self, shares: Shares) -> HybridSetup {
        let options = &self.options;
        let usual = || usual_hybrid(Sizes::of(&self.spec).expert_bytes_max);
        HybridSetup {
            costs: options.costs.unwrap_or_else(usual),
            capacity: shares.capacity,
            limits: shares.limits,
            prefill: options.prefill,
            decode: options.decode,
            policy: options.policy,
            prefetch: options.prefetch,
            most_used: options.most_used.clone(),
        }
    }
}
