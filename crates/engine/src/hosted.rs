//! The executor for a model that another program's llama.cpp has loaded: the same blocks, cache,
//! prefetch and devices as a session of ours, without a context of our own. Several contexts of
//! the host may compute with one model; they take turns.

use crate::blocks::drive::Drive;
use crate::blocks::figures::SharedFigures;
use crate::blocks::machine::disk::ExpertsError;
use crate::blocks::machine::session::{MachineBlocks, MachineSource};
use crate::blocks::machine::{DeviceOptions, MachineHandle};
use crate::blocks::options::StreamingOptions;
use crate::blocks::step::CurrentStep;
use crate::clock::now;
use crate::record::{shared_record, streaming_record};
use motley_ggml::{BlockError, BlockExecutor, ComputeOutcome, CpuUnit, ExpertBlock};
use motley_model::{ModelSpec, OpenedFile, Sizes};
use motley_plan::ExpertKernels;
use motley_sched::{Phase, SchedulerSetup};
use motley_trace::run::RUN_VERSION;
use motley_trace::{PhaseRecord, RunRecord};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most tokens of a batch that decodes. A host does not say which phase its batches belong to;
/// prompts are longer, and few streams decode together on such machines.
const DECODE_TOKENS_MOST: usize = 8;

/// How a model's experts are held and computed.
#[derive(Debug, Clone)]
pub struct HostedOptions {
    /// Experts that have room in RAM.
    pub slots: u32,
    /// The ceiling they follow from, for the record.
    pub memory_bytes: Option<u64>,
    pub streaming: StreamingOptions,
    /// Devices of the host that share the experts.
    pub devices: Option<DeviceOptions>,
    pub kernels: ExpertKernels,
}

/// The experts of one model of the host's.
pub struct HostedModel {
    spec: Arc<ModelSpec>,
    drive: Drive,
    figures: Arc<SharedFigures>,
    step: Arc<CurrentStep>,
    handle: MachineHandle,
    setup: Option<SchedulerSetup>,
    memory_bytes: Option<u64>,
    shares: bool,
    /// First and last layer with experts.
    ends: (u32, u32),
    counted: [Counted; 2],
    begun: Option<Instant>,
    threads: u32,
}

/// What the steps of one phase came to.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    tokens: u64,
    time: Duration,
}

impl HostedModel {
    /// Opens the experts of `spec` in `files`; the disk is measured for a moment.
    pub fn start(
        spec: Arc<ModelSpec>,
        files: Vec<OpenedFile>,
        options: HostedOptions,
    ) -> Result<Self, ExpertsError> {
        let HostedOptions { slots, memory_bytes, streaming, devices, kernels } = options;
        let handle = MachineHandle::default();
        let source = MachineSource { spec: Arc::clone(&spec), files, bytes: None, records: false };
        let shares = devices.is_some();
        let blocks = MachineBlocks::streaming(source, slots, &streaming, devices, handle.clone())?;
        let setup = blocks.stream_setup();
        let figures = Arc::new(SharedFigures::new(Some(blocks.places())));
        let step = Arc::<CurrentStep>::default();
        let drive = Drive::new(Some(blocks), None, Arc::clone(&figures));
        let drive = drive.with_kernels(kernels).with_step(Arc::clone(&step));
        let layers = || (0..).zip(&spec.layers).filter(|(_, layer)| layer.is_some());
        let number = |(layer, _)| layer;
        let ends = (layers().map(number).next(), layers().map(number).last());
        Ok(Self {
            ends: (ends.0.unwrap_or(0), ends.1.unwrap_or(0)),
            spec,
            drive,
            figures,
            step,
            handle,
            setup,
            memory_bytes,
            shares,
            counted: Default::default(),
            begun: None,
            threads: 0,
        })
    }

    /// What it came to so far. Times run from the first block of a step to the end of its last
    /// one; what the host does outside is not seen.
    pub fn record(&self) -> RunRecord {
        let sums = self.figures.get();
        let streaming = sums.stream.zip(self.setup.as_ref());
        let phase = |sums: PhaseRecord, counted: Counted| PhaseRecord {
            tokens: counted.tokens,
            time_s: counted.time.as_secs_f64(),
            ..sums
        };
        RunRecord {
            motley_run: RUN_VERSION,
            model: self.spec.name.clone().unwrap_or_else(|| self.spec.architecture.clone()),
            expert_layers: self.spec.expert_layers().count() as u32,
            expert_bytes: Sizes::of(&self.spec).expert_bytes_max,
            threads: self.threads,
            memory_bytes: self.memory_bytes,
            layouts: Vec::new(),
            streaming: streaming.map(|(stream, setup)| streaming_record(setup, &stream)),
            shared: self.shares.then(|| shared_record(&self.handle)),
            workers: Vec::new(),
            prefill: phase(sums.prefill, self.counted[0]),
            decode: phase(sums.decode, self.counted[1]),
            speculation: None,
            sampling_s: 0.0,
            energy: None,
        }
    }

    fn count(&mut self, block: &ExpertBlock<'_>, begun: Instant) {
        if block.layer() == self.ends.0 {
            self.begun = Some(begun);
        }
        let Some(begun) = self.begun.filter(|_| block.layer() == self.ends.1) else { return };
        let counted = &mut self.counted[usize::from(self.step.phase() == Phase::Decode)];
        counted.tokens += block.tokens() as u64;
        counted.time += begun.elapsed();
        self.begun = None;
    }
}

impl BlockExecutor for HostedModel {
    fn execute(
        &mut self,
        block: &mut ExpertBlock<'_>,
        cpu: &mut CpuUnit,
    ) -> Result<ComputeOutcome, BlockError> {
        let decodes = block.tokens() <= DECODE_TOKENS_MOST;
        self.step.set(if decodes { Phase::Decode } else { Phase::Prefill });
        self.threads = cpu.threads() as u32;
        let begun = now();
        let outcome = self.drive.execute(block, cpu)?;
        self.count(block, begun);
        Ok(outcome)
    }
}
