//! The blocks of a session through a device and the CPU at once: what `Engine` makes of
//! [`HybridOptions`]. Puts parts together and counts; the scheduler decides.

use super::clock::Clock;
use super::device::{CpuHome, DeviceJob, DeviceLink, DeviceUnit, Held};
use super::executor::{Executor, ExecutorParts, HybridFigures};
use super::units::Flow;
use crate::drive::phase_of;
use crate::foresight::{Foresight, Wants};
use crate::gates::Gates;
use crate::helper::BlockHelper;
use crate::loads::Loads;
use crate::streaming::trace_header;
use motley_ggml::gpu::{GpuDevice, GpuOptions, GpuUnit};
use motley_ggml::{ComputeOutcome, CpuUnit, ExpertBlock};
use motley_model::{ModelSpec, Sizes};
use motley_plan::{Calibration, Demand, ExpertCosts};
use motley_sched::cache::{PolicyChoice, Routed};
use motley_sched::hybrid::HybridSetup;
use motley_sched::prefetch::{Prediction, PrefetchChoice};
use motley_sched::regime::{KnownCosts, usual_hybrid};
use motley_sched::shares::{DeviceSlots, LayerSlots, Shares};
use motley_sched::spans::Spans;
use motley_sched::strategy::StrategyChoice;
use motley_sched::{Costs, Routing};
use motley_store::MappedExperts;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// How a device shares the experts of a model with the CPU.
#[derive(Debug, Clone)]
pub struct HybridOptions {
    /// The device.
    pub device: GpuDevice,
    /// Its memory for experts; `None` takes what is left when the first block comes, after
    /// llama.cpp's dense layers and KV cache.
    pub budget_bytes: Option<u64>,
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
    /// What things cost; `None` takes usual ones.
    pub costs: Option<Costs>,
    /// Whether what ran when is recorded.
    pub records: bool,
}

impl HybridOptions {
    /// The usual for `device`.
    pub fn new(device: GpuDevice) -> Self {
        Self {
            device,
            budget_bytes: None,
            experts_most: u32::MAX,
            prefill: StrategyChoice::Timelines,
            decode: StrategyChoice::Timelines,
            policy: PolicyChoice::default(),
            prefetch: PrefetchChoice::WholeLayer,
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

/// A window on the sessions' device from outside.
#[derive(Clone, Default)]
pub struct HybridHandle(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    executor: Option<Arc<Executor<DeviceUnit>>>,
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
    executor: Arc<Executor<DeviceUnit>>,
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
            Err(reason) => return Ok(self.refuse(reason.to_string())),
        };
        if self.started.is_none() {
            self.started = Some(self.start()?);
        }
        let Some(Started { executor, foresight }) = &mut self.started else { return Ok(None) };
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

    /// The CPU takes the block; said, not silent.
    fn refuse(&self, reason: String) -> Option<ComputeOutcome> {
        let mut state = self.handle.lock();
        state.report.refused += 1;
        state.report.refused_reason = Some(reason);
        None
    }

    fn start(&self) -> Result<Started, String> {
        let options = &self.options;
        // A session that has ended gives its memory back first.
        self.handle.lock().executor = None;
        let budget = options.budget_bytes.unwrap_or_else(|| options.device.budget_bytes(0));
        let unit = GpuUnit::new(&options.device, &self.spec, &GpuOptions::within(budget));
        let unit = unit.map_err(|error| error.to_string())?;
        let shares = Shares::of(&slots_of(&self.spec, &unit, options.experts_most));
        let lane = unit.compute_lane().map_err(|error| error.to_string())?;
        let copy_lane = unit.copy_lane().map_err(|error| error.to_string())?;
        let bytes = MappedExperts::open(&self.spec, &self.paths);
        let bytes = bytes.map_err(|error| error.to_string())?;
        let held = Held::new(shares.capacity.total() + u32::from(shares.limits.staging_slots));
        self.handle.lock().report.cache_slots = shares.capacity.total();
        let setup = self.setup(shares);
        let executor = Arc::new(Executor::new(ExecutorParts {
            staging_slots: setup.limits.staging_slots,
            scheduler: setup.scheduler(&trace_header(&self.spec)),
            fast: DeviceUnit { unit: unit.clone(), lane, held: held.clone() },
            link: DeviceLink { unit, lane: copy_lane, held, bytes },
            clock: Clock::wall(),
            records: options.records,
        }));
        let mut state = self.handle.lock();
        (state.executor, state.setup) = (Some(Arc::clone(&executor)), Some(setup));
        drop(state);
        Ok(Started { executor, foresight: self.foresight()? })
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
        }
    }
}

/// The slots of `unit`, layer by layer.
fn slots_of(spec: &ModelSpec, unit: &GpuUnit, experts_most: u32) -> DeviceSlots {
    let of =
        |layer| LayerSlots { slots: unit.slots_of(layer), slot_bytes: unit.expert_bytes(layer) };
    DeviceSlots {
        all: unit.slots(),
        most: experts_most,
        experts: spec.experts,
        all_experts: spec.expert_layers().count() as u32 * spec.experts,
        layers: (0..spec.shape.layers).map(of).collect(),
    }
}
