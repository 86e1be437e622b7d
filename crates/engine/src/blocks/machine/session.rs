//! The blocks of one session through every unit of the machine: what `Engine` makes of
//! [`StreamingOptions`] and [`DeviceOptions`]. Puts parts together and counts; the scheduler
//! decides.

use super::device::{BlockCpu, DeviceUnit};
use super::device_room::{self, Devices};
use super::disk::{Experts, ExpertsError};
use super::executor::{Executor, ExecutorParts};
use super::handle::MachineHandle;
use super::options::DeviceOptions;
use super::units::{Disk, Flow};
use crate::blocks::clock::Clock;
use crate::blocks::figures::StreamFigures;
use crate::blocks::gates::Gates;
use crate::blocks::loads::Loads;
use crate::blocks::options::StreamingOptions;
use crate::blocks::predict::{Predictor, Wants};
use crate::blocks::pressure::PressureWatch;
use crate::blocks::resident::{ExpertPlaces, ResidentExperts};
use crate::blocks::skip::Skipper;
use motley_cost::{ComputeCost, Nanos, TransferCost};
use motley_ggml::gpu::{GpuBlock, GpuUnit, Refused};
use motley_ggml::{ComputeOutcome, CpuUnit, ExpertBlock};
use motley_model::{ModelSpec, OpenedFile, Sizes};
use motley_plan::ExpertKernels;
use motley_sched::cache::Routed;
use motley_sched::prefetch::Prediction;
use motley_sched::regime::typical_hybrid;
use motley_sched::shares::Shares;
use motley_sched::{Costs, Phase, RoutedPairs, Routing, Rules, SchedulerSetup};
use motley_store::MappedFiles;
use motley_trace::{TraceHeader, record::FORMAT_VERSION};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// The model, and where the bytes of its experts are.
#[derive(Clone)]
pub(crate) struct MachineSource {
    pub(crate) spec: Arc<ModelSpec>,
    pub(crate) files: Vec<OpenedFile>,
    /// The files mapped, where somebody did.
    pub(crate) bytes: Option<MappedFiles>,
    /// Whether what ran when is recorded.
    pub(crate) records: bool,
}

/// The executor of one session's blocks. Starts with the first block: then everything else is in
/// memory.
pub(crate) struct MachineBlocks {
    source: MachineSource,
    stream: Option<Stream>,
    devices: Option<DeviceOptions>,
    handle: MachineHandle,
    /// What is on each device, for others to read.
    on_devices: Vec<Arc<ResidentExperts>>,
    started: Option<Started>,
    loads: Loads,
    predictor: Option<Predictor>,
    skipper: Option<Skipper>,
}

/// Experts on disk.
struct Stream {
    /// Until the executor has them.
    experts: Option<Experts>,
    resident: Arc<ResidentExperts>,
    setup: SchedulerSetup,
    overlap: bool,
    pressure: PressureWatch,
    /// Fewest slots the cache ever had.
    slots_least: u32,
    clock: Clock,
}

struct Started {
    executor: Arc<Executor<DeviceUnit>>,
    /// The devices, to ask whether a block is taken.
    units: Vec<GpuUnit>,
    /// Layers and numbers of rows for which the answer was yes: it stays, and every token asks.
    taken: HashSet<(u32, usize)>,
}

/// What the blocks of a session came to so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BlocksDone {
    /// Time the CPU computed.
    pub(crate) compute: Duration,
    /// Time it had nothing to compute and waited.
    pub(crate) stall: Duration,
    /// What reading experts came to, where they are read from disk.
    pub(crate) stream: Option<StreamFigures>,
    /// Whether a file was seen to have changed.
    pub(crate) changed: bool,
}

impl MachineBlocks {
    /// Room for `slots` experts that are read from disk; the disk is measured for a moment.
    pub(crate) fn streaming(
        source: MachineSource,
        slots: u32,
        options: &StreamingOptions,
        devices: Option<DeviceOptions>,
        handle: MachineHandle,
    ) -> Result<Self, ExpertsError> {
        let experts = Experts::open(&source.spec, &source.files, slots, options)?;
        // The simulator builds the same from the same rules.
        let costs = disk_costs(&source.spec, experts.disk().mb_per_s);
        let setup = SchedulerSetup::beyond_ram(options.rules, slots, costs);
        let cache_slots = setup.first().capacity.total();
        let least = cache_slots.min(source.spec.used);
        let stream = Stream {
            resident: experts.resident(),
            experts: Some(experts),
            setup,
            overlap: options.overlap,
            pressure: PressureWatch::new(least, cache_slots, Nanos::ZERO),
            slots_least: cache_slots,
            clock: Clock::wall(),
        };
        let routers = Routers::of(&source, &options.rules)?;
        Ok(Self::over(source, Some(stream), devices, (routers, handle)))
    }

    /// Devices beside the CPU, which has every expert.
    pub(crate) fn beside_cpu(
        source: MachineSource,
        devices: DeviceOptions,
        handle: MachineHandle,
    ) -> Result<Self, ExpertsError> {
        let routers = Routers::of(&source, &devices.rules)?;
        Ok(Self::over(source, None, Some(devices), (routers, handle)))
    }

    fn over(
        source: MachineSource,
        stream: Option<Stream>,
        devices: Option<DeviceOptions>,
        (Routers { predictor, skipper }, handle): (Routers, MachineHandle),
    ) -> Self {
        let (layers, experts) = (source.spec.layers.len(), source.spec.experts as usize);
        let rooms = devices.as_ref().map_or(0, |options| options.devices.len());
        let empty = |_| Arc::new(ResidentExperts::new(layers, experts));
        let on_devices = (0..rooms).map(empty).collect();
        let (started, loads) = (None, Loads::default());
        Self { source, stream, devices, handle, on_devices, started, loads, predictor, skipper }
    }

    /// Where experts are, readable while it changes.
    pub(crate) fn places(&self) -> ExpertPlaces {
        let memory = self.stream.as_ref().map(|stream| Arc::clone(&stream.resident));
        ExpertPlaces { memory, devices: self.on_devices.clone() }
    }

    /// Who decides where experts are read from disk, without devices.
    pub(crate) fn stream_setup(&self) -> Option<SchedulerSetup> {
        self.stream.as_ref().map(|stream| stream.setup.clone())
    }

    /// Computes a block. `None` leaves it to the CPU, untouched: llama.cpp has all bytes, and a
    /// device cannot do what the block asks for.
    pub(crate) fn run(
        &mut self,
        phase: Phase,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
        kernels: &ExpertKernels,
    ) -> Result<Option<ComputeOutcome>, String> {
        let Some(for_devices) = self.block_for_devices(block)? else { return Ok(None) };
        self.resize();
        self.loads.count(block.rows().map(|(_, _, expert)| expert));
        if let Some(predictor) = &mut self.predictor {
            predictor.look(phase, block, self.loads.experts(), cpu);
        }
        self.leave_out(block, cpu)?;
        let (scores, predictions): (&[f32], &[Prediction]) = match &self.predictor {
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
        let Some(Started { executor, .. }) = &self.started else { return Ok(None) };
        let done = executor.run(&routing, for_devices, &mut BlockCpu { block, cpu, kernels });
        let done = done.map_err(|error| error.to_string())?;
        done.rows.iter().for_each(|rows| rows.scatter(block));
        Ok(Some(match done.flow {
            Flow::Done => {
                self.skipper.iter().for_each(|skipper| skipper.drop_rows(block));
                ComputeOutcome::Done
            }
            Flow::Cancelled => ComputeOutcome::Aborted,
        }))
    }

    /// Leaves out what weighs little and would have to be read, where that was asked for.
    fn leave_out(&mut self, block: &mut ExpertBlock<'_>, cpu: &mut CpuUnit) -> Result<(), String> {
        let (Some(skipper), Some(started)) = (&mut self.skipper, &self.started) else {
            return Ok(());
        };
        let choose = |pairs: &RoutedPairs<'_>, left_out: &mut Vec<bool>| {
            started.executor.leave_out(pairs, left_out)
        };
        let some = skipper.leave_out(block, cpu, choose).map_err(|error| error.to_string())?;
        if some {
            self.loads.count(block.rows().map(|(_, _, expert)| expert));
        }
        Ok(())
    }

    /// What was done since the beginning; nothing before the first block.
    pub(crate) fn done(&self) -> BlocksDone {
        let Some(started) = &self.started else { return BlocksDone::default() };
        let (figures, disk, [slots, slots_most]) = started.executor.report();
        let stream = self.stream.as_ref().map(|stream| StreamFigures {
            counts: figures.counts,
            disk: disk.counters,
            predicted: self.predictor.as_ref().map(Predictor::accuracy),
            left_out: self.skipper.as_ref().map(Skipper::sum).unwrap_or_default(),
            slots,
            slots_least: stream.slots_least,
            slots_most,
            arena_bytes: disk.arena_bytes,
        });
        BlocksDone {
            compute: Duration::from_nanos(figures.cpu_busy.0),
            stall: Duration::from_nanos(figures.stalled.0),
            stream,
            changed: disk.changed,
        }
    }

    /// The block as devices need it, none where there are none. `None` when they do not take it
    /// and the CPU can do without them. What is read from disk goes on without devices if they
    /// refuse the first block; a later one is an error, since experts may be there alone.
    fn block_for_devices(
        &mut self,
        block: &ExpertBlock<'_>,
    ) -> Result<Option<Option<GpuBlock>>, String> {
        let ours = match self.devices.is_some().then(|| GpuBlock::of(block)) {
            Some(Err(refused)) => return self.refused(refused),
            Some(Ok(ours)) => Some(ours),
            None => None,
        };
        if self.started.is_none() {
            self.started = Some(self.start(ours.as_ref())?);
        }
        let (Some(started), Some(ours)) = (&mut self.started, ours) else { return Ok(Some(None)) };
        if started.units.is_empty() {
            return Ok(Some(None));
        }
        let kind = (block.layer(), block.tokens() * block.slots());
        if !started.taken.contains(&kind) {
            let check = started.units.iter().try_for_each(|unit| unit.check(&ours));
            if let Err(refused) = check {
                return self.refused(refused);
            }
            started.taken.insert(kind);
        }
        Ok(Some(Some(ours)))
    }

    /// Devices do not take a block: said, not silent.
    fn refused(&mut self, refused: Refused) -> Result<Option<Option<GpuBlock>>, String> {
        self.handle.refuse(refused.to_string());
        match (&self.stream, &self.started) {
            (None, _) => Ok(None),
            (Some(_), Some(_)) => Err(format!("a device does not take this block: {refused}")),
            (Some(_), None) => {
                self.devices = None;
                self.started = Some(self.start(None)?);
                Ok(Some(None))
            }
        }
    }

    /// Starts the executor; devices only if all of them take the first block.
    fn start(&mut self, first: Option<&GpuBlock>) -> Result<Started, String> {
        let mut devices = self.start_devices()?;
        let check = |block| devices.units.iter().try_for_each(|unit| unit.check(block));
        if self.stream.is_some()
            && let Some(Err(refused)) = first.map(check)
        {
            self.handle.refuse(refused.to_string());
            (self.devices, devices) = (None, Devices::default());
        }
        let Devices { shares, lanes, units } = devices;
        let header = trace_header(&self.source.spec);
        let slots = shares.iter().map(|share| share.capacity.total()).sum();
        let setup = self.setup(shares)?;
        let executor = Arc::new(Executor::new(ExecutorParts {
            scheduler: setup.scheduler(&header),
            disk: self.disk()?,
            devices: lanes,
            shown: self.on_devices.clone(),
            clock: self.stream.as_ref().map_or_else(Clock::wall, |stream| stream.clock),
            overlap: self.stream.as_ref().is_none_or(|stream| stream.overlap),
            records: self.source.records,
        }));
        let residents = setup.residents(&header);
        let of_devices = residents.iter().skip(usize::from(self.stream.is_some()));
        for (device, keys) in of_devices.enumerate() {
            executor.preload(device, keys).map_err(|error| error.to_string())?;
        }
        self.handle.started(&executor, setup, slots);
        Ok(Started { executor, units, taken: HashSet::new() })
    }

    fn start_devices(&self) -> Result<Devices, String> {
        let Some(options) = &self.devices else { return Ok(Devices::default()) };
        let bytes = match &self.source.bytes {
            Some(bytes) => bytes.clone(),
            None => MappedFiles::map(&self.source.files).map_err(|error| error.to_string())?,
        };
        device_room::start(&options.devices, options.experts_most, &self.source.spec, bytes)
    }

    fn disk(&mut self) -> Result<Option<Box<dyn Disk>>, String> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let experts =
            stream.experts.take().ok_or("the experts on disk are with another executor")?;
        Ok(Some(Box::new(experts)))
    }

    fn setup(&self, shares: Vec<Shares>) -> Result<SchedulerSetup, String> {
        let devices = self.devices.as_ref();
        let typical = || typical_hybrid(Sizes::of(&self.source.spec).expert_bytes_max);
        let costs = devices.and_then(|options| options.costs.clone()).unwrap_or_else(typical);
        let most_used = devices.map(|options| options.most_used.clone()).unwrap_or_default();
        Ok(match (&self.stream, devices) {
            (Some(stream), Some(_)) => stream.setup.clone().with_devices(shares, costs, most_used),
            (Some(stream), None) => stream.setup.clone(),
            (None, Some(options)) => {
                SchedulerSetup::beside_home(options.rules, shares, costs, most_used)
            }
            (None, None) => return Err("a machine without devices and without a disk".into()),
        })
    }

    /// Gives memory back, or takes it again, as the machine's memory allows (M3).
    fn resize(&mut self) {
        let (Some(stream), Some(started)) = (&mut self.stream, &self.started) else { return };
        let Some(slots) = stream.pressure.look(stream.clock.now()) else { return };
        stream.slots_least = stream.slots_least.min(slots);
        started.executor.set_cache_slots(slots);
    }
}

impl Drop for MachineBlocks {
    fn drop(&mut self) {
        if let Some(started) = &self.started {
            self.handle.ended(&started.executor);
        }
    }
}

/// Those who look at blocks through the routers.
#[derive(Default)]
struct Routers {
    predictor: Option<Predictor>,
    skipper: Option<Skipper>,
}

impl Routers {
    /// Reads the routers if somebody needs them under `rules`.
    fn of(source: &MachineSource, rules: &Rules) -> Result<Self, ExpertsError> {
        let (wants, skips) = (Wants::of(rules), rules.skip_cold.is_some());
        if !wants.any() && !skips {
            return Ok(Self::default());
        }
        if skips {
            source.spec.weighs_by_rows()?;
        }
        let gates = Arc::new(Gates::read(&source.spec, &source.files)?);
        let skipper = skips.then(|| Skipper::new(Arc::clone(&gates)));
        Ok(Self { predictor: wants.any().then(|| Predictor::new(gates, wants)), skipper })
    }
}

/// The disk as measured. Computing is not measured here; where the CPU is the only unit no
/// decision depends on it.
fn disk_costs(spec: &ModelSpec, disk_mb_per_s: f64) -> Costs {
    let expert_bytes = Sizes::of(spec).expert_bytes_max;
    Costs::one_tier(
        ComputeCost { launch_us: 0.0, per_token_us: 0.0, floor_us: 0.0 },
        TransferCost::new(0.0, (disk_mb_per_s / 1e3).max(0.001)),
        None,
        expert_bytes,
    )
}

fn trace_header(spec: &ModelSpec) -> TraceHeader {
    let name = spec.name.clone().unwrap_or_else(|| spec.architecture.clone());
    TraceHeader {
        version: FORMAT_VERSION,
        model: name,
        layers: spec.shape.layers as u16,
        experts: spec.experts as u16,
        k: spec.used as u16,
    }
}
