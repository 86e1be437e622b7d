//! One thread's part of a block: pieces one after the other, each computed by this thread alone.

use super::jobs::{Job, Jobs};
use super::scratch::Scratch;
use super::template::Template;
use crate::api;
use crate::compute::clone::CloneError;
use crate::compute::graph::Graph;
use crate::compute::outcome::ComputeOutcome;
use crate::compute::stream::CpuStream;
use crate::compute::threadpool::{CurrentPool, Threadpool, ThreadpoolOptions};
use crate::seam::block::ExpertBlock;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What threads did while blocks were computed expert by expert, as the mean over threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockWork {
    /// How many there were.
    pub blocks: u64,
    /// In ggml's kernels.
    pub kernels: Duration,
    /// Gathering and scattering rows, and rearranging weights for them.
    pub moving: Duration,
    /// Waiting for other threads.
    pub waiting: Duration,
}

impl BlockWork {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            blocks: self.blocks + other.blocks,
            kernels: self.kernels + other.kernels,
            moving: self.moving + other.moving,
            waiting: self.waiting + other.waiting,
        }
    }
}

/// A backend of one thread with the operations of the current block.
pub(super) struct Worker {
    stream: CpuStream,
    /// For weights as they lie.
    plain: Operations,
    /// For those this thread rearranges, with where it does.
    rearranged: Operations,
    scratch: Scratch,
    pub(super) work: BlockWork,
    _pool: Threadpool,
}

/// The current block's operations for any piece, and their graph.
struct Operations {
    template: Template,
    graph: Graph,
}

impl Operations {
    fn new() -> Self {
        Self { template: Template::new(), graph: Graph::new() }
    }

    fn prepare(
        &mut self,
        block: &ExpertBlock<'_>,
        ones: &[api::ggml_tensor],
    ) -> Result<(), CloneError> {
        self.template.prepare(block, ones)?;
        self.graph.refill_with(self.template.nodes());
        Ok(())
    }
}

impl Worker {
    /// `None` when ggml gives no backend.
    pub(super) fn new() -> Option<Self> {
        let pool = Threadpool::new(&ThreadpoolOptions::with_threads(1))?;
        let current = Arc::<CurrentPool>::default();
        current.set(&pool);
        let mut stream = CpuStream::new(current)?;
        stream.set_threads(1);
        Some(Self {
            stream,
            plain: Operations::new(),
            rearranged: Operations::new(),
            scratch: Scratch::default(),
            work: BlockWork::default(),
            _pool: pool,
        })
    }

    /// Makes the operations of `block` ready; with `rearranges`, for rearranged weights as well.
    pub(super) fn prepare(
        &mut self,
        block: &ExpertBlock<'_>,
        ones: &[api::ggml_tensor],
        rearranges: bool,
    ) -> Result<(), CloneError> {
        self.work = BlockWork::default();
        self.plain.prepare(block, ones)?;
        if rearranges {
            self.rearranged.prepare(block, &self.scratch.prepare(ones))?;
        }
        Ok(())
    }

    /// Computes one piece.
    ///
    /// # Safety
    /// The job's weights are live, and nobody else writes its rows.
    pub(super) unsafe fn run(
        &mut self,
        block: &ExpertBlock<'_>,
        jobs: &Jobs,
        job: &Job,
    ) -> ComputeOutcome {
        let begun = Instant::now();
        // SAFETY: by the caller.
        let rearranged = job.rearranges.then(|| unsafe { self.scratch.rearrange(job) });
        let (job, with) = match &rearranged {
            Some(rearranged) => (rearranged, &mut self.rearranged),
            None => (job, &mut self.plain),
        };
        with.template.load(block, jobs, job);
        let gathered = Instant::now();
        // SAFETY: the template's tensors live as long as the worker, the rest by the caller.
        let outcome = unsafe { self.stream.compute(with.graph.raw()) };
        let computed = Instant::now();
        // SAFETY: just computed; by the caller.
        unsafe { with.template.store(block, jobs, job) };
        self.work.kernels += computed - gathered;
        self.work.moving += (gathered - begun) + computed.elapsed();
        outcome
    }
}
