//! All pieces of a block on the threads of a pool. Apart, ggml's pool runs one operation of ours,
//! in which every thread takes pieces and computes each as a graph of its own: no barrier but
//! the one at the end. Together, all pieces are one graph, and every operation is shared.

use super::Cut;
use super::jobs::{Jobs, UnknownExpert};
use super::lines::Lines;
use super::spread::{Spread, spread};
use super::template::Template;
use super::worker::{BlockWork, Worker};
use crate::api;
use crate::compute::graph::{Graph, MAX_NODES};
use crate::compute::outcome::ComputeOutcome;
use crate::compute::stream::{Abort, CpuStream};
use crate::compute::subset::SubsetError;
use crate::compute::tensors::Tensors;
use crate::layout::memory;
use crate::layout::stack::one_of;
use crate::seam::block::ExpertBlock;
use motley_model::TensorPart;
use motley_store::FilledExpert;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// ggml's `GGML_N_TASKS_MAX`: as many as the graph has threads.
const EVERY_THREAD: c_int = -1;

/// Workers and scratch of one CPU unit; grows to the most threads and the largest block seen.
#[derive(Default)]
pub(crate) struct Blocks {
    jobs: Jobs,
    /// One expert of each matrix, without data.
    ones: Vec<api::ggml_tensor>,
    workers: Vec<Worker>,
    /// One for each piece of a block that is computed together.
    templates: Vec<Template>,
    together: Option<Graph>,
    everywhere: Option<Everywhere>,
    work: BlockWork,
}

// SAFETY: the tensors hold addresses that are set anew in every call and not used after it.
unsafe impl Send for Blocks {}

impl Blocks {
    /// Computes all rows of `block` with the weights it came with.
    pub(crate) fn run(
        &mut self,
        cpu: &mut CpuStream,
        block: &mut ExpertBlock<'_>,
        cut: Cut,
    ) -> Result<ComputeOutcome, SubsetError> {
        let experts = block.experts();
        self.jobs.collect(block, experts, |_| true, cut).map_err(unknown)?;
        self.point_at_own(block);
        self.compute(cpu, block)
    }

    /// Computes these rows, (token, slot) each, with the weights the block came with.
    pub(crate) fn run_rows(
        &mut self,
        cpu: &mut CpuStream,
        block: &mut ExpertBlock<'_>,
        rows: &[(usize, usize)],
        cut: Cut,
    ) -> Result<ComputeOutcome, SubsetError> {
        let experts = block.experts();
        self.jobs.collect_rows(block, experts, rows, cut).map_err(unknown)?;
        self.point_at_own(block);
        self.compute(cpu, block)
    }

    /// Computes the rows of `block` that belong to `experts`, from their slots.
    pub(crate) fn run_experts(
        &mut self,
        cpu: &mut CpuStream,
        block: &mut ExpertBlock<'_>,
        experts: &[(u32, &FilledExpert)],
        cut: Cut,
    ) -> Result<ComputeOutcome, SubsetError> {
        let mut given: Vec<Option<&FilledExpert>> = vec![None; block.experts()];
        for &(expert, filled) in experts {
            if let Some(place) = given.get_mut(expert as usize) {
                *place = Some(filled);
            }
        }
        // One the layer does not have is wanted, and then refused.
        let wanted = |expert: u32| given.get(expert as usize).is_none_or(Option::is_some);
        self.jobs.collect(block, given.len(), wanted, cut).map_err(unknown)?;
        self.ones.clear();
        for (index, matrix) in block.matrices().enumerate() {
            let kind = matrix.matrix().ok_or(SubsetError::UnknownMatrix)?;
            let mut one = one_of(&matrix.tensor_copy());
            (one.buffer, one.extra) = (null_mut(), null_mut());
            self.ones.push(one);
            for job in self.jobs.jobs_mut() {
                let filled = given[job.expert as usize];
                let slot = filled.and_then(|filled| filled.get(kind, TensorPart::Weight));
                let slot = slot.filter(|slot| slot.bytes().len() == matrix.expert_bytes());
                let error = SubsetError::Bytes { expert: job.expert, matrix: kind };
                job.weights[index] = slot.ok_or(error)?.bytes().as_ptr().cast_mut().cast();
            }
        }
        self.compute(cpu, block)
    }

    /// What threads did since the last call.
    pub(crate) fn take_work(&mut self) -> BlockWork {
        std::mem::take(&mut self.work)
    }

    /// The weights llama.cpp's graph has, wherever they lie.
    fn point_at_own(&mut self, block: &ExpertBlock<'_>) {
        self.ones.clear();
        for (index, matrix) in block.matrices().enumerate() {
            // SAFETY: the weights of a live block are live.
            let apart = unsafe { memory::apart(matrix.raw()) };
            let tensor = apart.map_or_else(|| matrix.tensor_copy(), |stack| stack.expert(0));
            for job in self.jobs.jobs_mut() {
                let expert = job.expert as usize;
                job.weights[index] = match apart {
                    Some(stack) => stack.expert(expert).data,
                    None => tensor.data.wrapping_byte_add(expert * tensor.nb[2]),
                };
            }
            self.ones.push(one_of(&tensor));
        }
    }

    fn compute(
        &mut self,
        cpu: &mut CpuStream,
        block: &mut ExpertBlock<'_>,
    ) -> Result<ComputeOutcome, SubsetError> {
        if self.jobs.jobs().is_empty() {
            return Ok(ComputeOutcome::Done);
        }
        let begun = Instant::now();
        let threads = cpu.threads();
        let busy = match spread(self.jobs.jobs().iter().map(|job| job.rows), threads) {
            // A thread rearranges for itself.
            _ if self.jobs.rearranges() => self.apart(cpu, block, threads),
            Spread::Apart => self.apart(cpu, block, threads),
            Spread::Together => self.together(cpu, block, threads),
        };
        let (outcome, busy) = busy?;
        let mean = |sum: Duration| sum / threads as u32;
        let (kernels, moving) = (mean(busy.kernels), mean(busy.moving));
        let waiting = begun.elapsed().saturating_sub(kernels + moving);
        self.work = self.work.plus(BlockWork { blocks: 1, kernels, moving, waiting });
        Ok(outcome)
    }

    fn apart(
        &mut self,
        cpu: &mut CpuStream,
        block: &mut ExpertBlock<'_>,
        threads: usize,
    ) -> Result<(ComputeOutcome, BlockWork), SubsetError> {
        while self.workers.len() < threads {
            self.workers.push(Worker::new().ok_or(SubsetError::NoThreads)?);
        }
        for worker in &mut self.workers[..threads] {
            worker.prepare(block, &self.ones, self.jobs.rearranges())?;
        }
        let everywhere = match &mut self.everywhere {
            Some(everywhere) => everywhere,
            none => none.insert(Everywhere::new().ok_or(SubsetError::NoThreads)?),
        };
        let nodes = cpu.nodes();
        let lines = Lines::new(self.jobs.jobs_mut(), block.experts(), nodes.as_deref());
        let shared = Shared {
            jobs: &self.jobs,
            lines: &lines,
            block,
            workers: self.workers.as_mut_ptr(),
            threads,
            abort: cpu.abort(),
            aborted: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        };
        let computed = everywhere.call(cpu, &shared);
        let outcome = match (shared.failed.into_inner(), shared.aborted.into_inner()) {
            (true, _) => ComputeOutcome::Failed,
            (_, true) => ComputeOutcome::Aborted,
            _ => computed,
        };
        let sum = |sum: BlockWork, worker: &Worker| sum.plus(worker.work);
        Ok((outcome, self.workers[..threads].iter().fold(BlockWork::default(), sum)))
    }

    fn together(
        &mut self,
        cpu: &mut CpuStream,
        block: &mut ExpertBlock<'_>,
        threads: usize,
    ) -> Result<(ComputeOutcome, BlockWork), SubsetError> {
        let begun = Instant::now();
        let pieces = self.jobs.jobs().len();
        self.templates.resize_with(self.templates.len().max(pieces), Template::new);
        for (template, job) in self.templates.iter_mut().zip(self.jobs.jobs()) {
            template.prepare(block, &self.ones)?;
            template.load(block, &self.jobs, job);
        }
        let room = pieces * MAX_NODES;
        let graph = match &mut self.together {
            Some(graph) if graph.room() >= room => graph,
            other => other.insert(Graph::with_room(room)),
        };
        graph.refill_with(self.templates[..pieces].iter_mut().flat_map(Template::nodes));
        let gathered = Instant::now();
        // SAFETY: the templates and everything they point at live until the end of this call.
        let outcome = unsafe { cpu.compute(graph.raw()) };
        let computed = Instant::now();
        for (template, job) in self.templates.iter().zip(self.jobs.jobs()) {
            // SAFETY: just computed; this thread is alone.
            unsafe { template.store(block, &self.jobs, job) };
        }
        let kernels = (computed - gathered) * threads as u32;
        let moving = (gathered - begun) + computed.elapsed();
        Ok((outcome, BlockWork { kernels, moving, ..BlockWork::default() }))
    }
}

fn unknown(UnknownExpert(expert): UnknownExpert) -> SubsetError {
    SubsetError::UnknownExpert { expert }
}

/// What the threads of a block share.
struct Shared<'b> {
    jobs: &'b Jobs,
    lines: &'b Lines<'b>,
    block: &'b ExpertBlock<'b>,
    workers: *mut Worker,
    threads: usize,
    abort: Abort,
    aborted: AtomicBool,
    failed: AtomicBool,
}

impl Shared<'_> {
    /// Takes pieces until there are none.
    ///
    /// # Safety
    /// `thread` is this thread's own number.
    unsafe fn run(&self, thread: usize) {
        if thread >= self.threads {
            return;
        }
        // SAFETY: one worker for each thread; every piece is taken once, so that its rows are
        // written by one thread.
        unsafe {
            let worker = &mut *self.workers.add(thread);
            for job in self.lines.taken_by(thread).map(|taken| &self.jobs.jobs()[taken]) {
                if self.abort.is_wanted() {
                    return self.aborted.store(true, Relaxed);
                }
                if worker.run(self.block, self.jobs, job) != ComputeOutcome::Done {
                    return self.failed.store(true, Relaxed);
                }
            }
        }
    }
}

/// A graph of one operation that calls us on every thread.
struct Everywhere {
    graph: Graph,
    /// What the operation finds its work through.
    user: Box<AtomicPtr<c_void>>,
    _result: Box<[f32; 16]>,
    _tensors: Tensors,
}

impl Everywhere {
    fn new() -> Option<Self> {
        let (tensors, mut graph) = (Tensors::new(1)?, Graph::new());
        let user = Box::new(AtomicPtr::new(null_mut()));
        let mut result = Box::new([0.0; 16]);
        // SAFETY: the context has room for one tensor; user pointer and result live as long as it.
        let node = unsafe {
            let user = std::ptr::from_ref(&*user).cast_mut().cast();
            let node = api::ggml_custom_4d(
                tensors.raw(),
                api::GGML_TYPE_F32,
                1,
                1,
                1,
                1,
                null_mut(),
                0,
                Some(on_thread),
                EVERY_THREAD,
                user,
            );
            (*node).data = result.as_mut_ptr().cast();
            // ggml passes over nodes without it.
            (*node).flags |= api::GGML_TENSOR_FLAG_COMPUTE as i32;
            node
        };
        graph.refill_with(std::iter::once(node));
        Some(Self { graph, user, _result: result, _tensors: tensors })
    }

    fn call(&mut self, cpu: &mut CpuStream, shared: &Shared<'_>) -> ComputeOutcome {
        self.user.store(std::ptr::from_ref(shared).cast_mut().cast(), Relaxed);
        // SAFETY: the graph is ours; `shared` lives until all threads are done, which is when
        // the computation returns.
        let outcome = unsafe { cpu.compute(self.graph.raw()) };
        self.user.store(null_mut(), Relaxed);
        outcome
    }
}

unsafe extern "C" fn on_thread(
    _: *mut api::ggml_tensor,
    thread: c_int,
    _: c_int,
    user: *mut c_void,
) {
    // SAFETY: `user` is the box of an [`Everywhere`], which points at what is shared while the
    // graph is computed; ggml numbers its threads.
    unsafe {
        let shared = &*(*user.cast::<AtomicPtr<c_void>>()).load(Relaxed).cast::<Shared<'_>>();
        let run = AssertUnwindSafe(|| shared.run(thread as usize));
        if catch_unwind(run).is_err() {
            shared.failed.store(true, Relaxed);
        }
    }
}
