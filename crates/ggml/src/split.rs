//! One expert over several groups of cores (G1): each group computes some neurons of every
//! expert, and the partial sums are added. For measuring against one pool over all cores.
//!
//! ```text
//!             gate, up: rows of its neurons     down: columns of its neurons
//!   group 0   [hidden, width/n]  ─ SwiGLU ─     [width/n, hidden]  ─► partial 0 ─┐
//!   group 1   [hidden, width/n]  ─ SwiGLU ─     [width/n, hidden]  ─► partial 1 ─┴─► sum
//! ```
//!
//! Weights are views of the same stack; columns are cut between quantisation blocks, so each
//! group reads the very bytes, and rounds activations in the very blocks, that one pool would.
//! **Order of the sum**: `((p0 + p1) + p2) + …` per element in f32, groups in the order given,
//! whichever ends first. A partial sum has the bits of its columns computed alone; the whole
//! differs from one pool's result only by where its f32 sum is cut.
//!
//! Not used in a run: llama.cpp's own pool polls between graphs, on the cores the groups
//! would need. It would take dense work that keeps to one group's cores.

use crate::affinity::bind_this_thread;
use crate::backend::{ComputeOutcome, outcome};
use crate::bench::{BenchError, ExpertStack};
use crate::cpu;
use crate::made::{bell, set};
use crate::tensors::{Buffer, Tensors};
use crate::threadpool::{Threadpool, ThreadpoolOptions};
use llama_cpp_sys_2 as sys;
use std::ptr::{NonNull, null};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::JoinHandle;

/// Polls before a worker sleeps: about as long as a block of decode takes.
const POLLS: u32 = 50_000;

/// A block over some experts of a stack whose neurons are divided among groups of one
/// thread each.
pub struct SplitBlock<'s> {
    stack: &'s ExpertStack,
    tokens: u32,
    ids_values: Vec<i32>,
    /// Joined before the groups they compute are freed.
    workers: Vec<Worker>,
    groups: Vec<Group>,
    sum: Vec<f32>,
}

impl ExpertStack {
    /// A block of `experts` experts with `tokens` rows each, divided among as many groups as
    /// there are `cores`: the first runs on the calling thread, each other on a thread bound
    /// to its core.
    pub fn split_block(
        &self,
        experts: u32,
        tokens: u32,
        cores: &[usize],
    ) -> Result<SplitBlock<'_>, BenchError> {
        let rows = experts as usize * tokens as usize;
        let neurons = self.neurons_per_group(cores.len())?;
        let group = |index| Group::new(self, index as i64 * neurons, neurons, rows as i64);
        let groups = (0..cores.len()).map(group).collect::<Result<Vec<_>, _>>()?;
        let others = groups.iter().zip(cores).skip(1);
        let workers = others.map(|(group, &core)| Worker::new(group, core)).collect();
        let sum = vec![0.0; rows * self.spec().hidden as usize];
        Ok(SplitBlock { stack: self, tokens, ids_values: vec![0; rows], workers, groups, sum })
    }

    /// Whole quantisation blocks of `down`'s rows for each group.
    fn neurons_per_group(&self, groups: usize) -> Result<i64, BenchError> {
        let spec = self.spec();
        let blocks = u64::from(spec.intermediate) / spec.ty.block_elements();
        if groups == 0 || !blocks.is_multiple_of(groups as u64) {
            let (hidden, intermediate, ty) = (spec.hidden, spec.intermediate, spec.ty);
            return Err(BenchError::Shape { hidden, intermediate, ty });
        }
        Ok((blocks / groups as u64 * spec.ty.block_elements()) as i64)
    }
}

impl SplitBlock<'_> {
    /// Points the rows at experts `first`, `first + 1`, … of the stack, around its end.
    pub fn choose(&mut self, first: u32) {
        for (row, id) in self.ids_values.iter_mut().enumerate() {
            let expert = first + row as u32 / self.tokens.max(1);
            *id = (expert % self.stack.spec().experts) as i32;
        }
        for group in &self.groups {
            let bytes = size_of_val(self.ids_values.as_slice());
            set(group.ids, self.ids_values.as_ptr().cast(), bytes);
        }
    }

    /// Computes all parts at once, then their sum.
    pub fn run(&mut self) -> ComputeOutcome {
        for worker in &self.workers {
            worker.begin();
        }
        let mut worst = self.groups[0].run();
        for worker in &self.workers {
            let ended = worker.wait();
            if worst == ComputeOutcome::Done {
                worst = ended;
            }
        }
        self.add();
        worst
    }

    /// Computes the parts one after the other on the calling thread, then their sum: the
    /// reference for what the groups compute at once.
    pub fn run_in_turn(&mut self) -> ComputeOutcome {
        let outcomes: Vec<_> = self.groups.iter().map(Group::run).collect();
        self.add();
        outcomes.into_iter().find(|o| *o != ComputeOutcome::Done).unwrap_or(ComputeOutcome::Done)
    }

    /// The sum, `[rows][hidden]`.
    pub fn output(&self) -> &[f32] {
        &self.sum
    }

    /// The partial sum of one group, `[rows][hidden]`.
    pub fn partial(&self, group: usize) -> &[f32] {
        self.groups[group].output()
    }

    fn add(&mut self) {
        self.sum.copy_from_slice(self.groups[0].output());
        for group in &self.groups[1..] {
            for (sum, partial) in self.sum.iter_mut().zip(group.output()) {
                *sum += partial;
            }
        }
    }
}

/// One group's graph over its part of the stack, and the backend that computes it.
struct Group {
    backend: NonNull<sys::ggml_backend>,
    graph: *mut sys::ggml_cgraph,
    ids: *mut sys::ggml_tensor,
    output: *mut sys::ggml_tensor,
    _pool: Arc<Threadpool>,
    _buffer: Buffer,
    _tensors: Tensors,
}

impl Group {
    /// Neurons `first .. first + count` of every expert, for `rows` rows.
    fn new(stack: &ExpertStack, first: i64, count: i64, rows: i64) -> Result<Self, BenchError> {
        let hidden = i64::from(stack.spec().hidden);
        let error = BenchError::Memory { bytes: (rows * (2 * hidden + 3 * count) * 4) as u64 };
        let tensors = Tensors::new(16).ok_or(error)?;
        let input = tensors.tensor(sys::GGML_TYPE_F32, [hidden, 1, rows]);
        let ids = tensors.tensor(sys::GGML_TYPE_I32, [1, rows, 1]);
        let context = tensors.raw();
        // SAFETY: all tensors belong to live contexts; shapes fit by construction, and views
        // lie inside the stack, whose columns are cut between blocks.
        let (output, graph) = unsafe {
            let [gate, up, down] = stack.weights();
            let entry = |weight: *mut sys::ggml_tensor| {
                let w = &*weight;
                let [_, row, expert, _] = w.nb;
                let offset = first as usize * row;
                sys::ggml_view_3d(context, weight, w.ne[0], count, w.ne[2], row, expert, offset)
            };
            let d = &*down;
            let offset = sys::ggml_row_size(d.type_, first);
            let [_, row, expert, _] = d.nb;
            let down =
                sys::ggml_view_3d(context, down, count, d.ne[1], d.ne[2], row, expert, offset);
            let gate = sys::ggml_mul_mat_id(context, entry(gate), input, ids);
            let up = sys::ggml_mul_mat_id(context, entry(up), input, ids);
            let between = sys::ggml_swiglu_split(context, gate, up);
            let output = sys::ggml_mul_mat_id(context, down, between, ids);
            let graph = sys::ggml_new_graph(context);
            sys::ggml_build_forward_expand(graph, output);
            (output, graph)
        };
        // SAFETY: returns a static of ggml's.
        let memory = unsafe { sys::ggml_backend_cpu_buffer_type() };
        let buffer = tensors.allocate(memory).ok_or(error)?;
        let values = bell((rows * hidden) as usize);
        set(input, values.as_ptr().cast(), size_of_val(values.as_slice()));
        let (backend, pool) = backend_of_one_thread().ok_or(error)?;
        Ok(Self { backend, graph, ids, output, _pool: pool, _buffer: buffer, _tensors: tensors })
    }

    fn run(&self) -> ComputeOutcome {
        // SAFETY: backend, pool and graph are live, and one thread runs a group at a time.
        outcome(unsafe { sys::ggml_backend_graph_compute(self.backend.as_ptr(), self.graph) })
    }

    fn output(&self) -> &[f32] {
        // SAFETY: the output is F32 in host memory, contiguous, and nobody computes it now.
        unsafe {
            let count = sys::ggml_nelements(self.output) as usize;
            std::slice::from_raw_parts((*self.output).data.cast(), count)
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: created in `new`, freed once.
        unsafe { sys::ggml_backend_free(self.backend.as_ptr()) }
    }
}

fn backend_of_one_thread() -> Option<(NonNull<sys::ggml_backend>, Arc<Threadpool>)> {
    let pool = Arc::new(Threadpool::new(&ThreadpoolOptions::with_threads(1))?);
    // SAFETY: a plain constructor of ggml's CPU backend; the pool lives as long as it.
    let backend = unsafe {
        let raw = sys::ggml_backend_init_by_type(sys::GGML_BACKEND_DEVICE_TYPE_CPU, null());
        let backend = NonNull::new(raw)?;
        (cpu::procs().set_threads)(backend.as_ptr(), 1);
        (cpu::procs().set_threadpool)(backend.as_ptr(), pool.raw());
        backend
    };
    Some((backend, pool))
}

/// A thread that computes one group whenever it is told.
struct Worker {
    turn: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

/// What `turn` says.
const IDLE: u32 = 0;
const RUN: u32 = 1;
const STOP: u32 = 2;
const DONE: u32 = 3;
const FAILED: u32 = 4;

/// What a worker computes: addresses of a group.
struct Job {
    backend: NonNull<sys::ggml_backend>,
    graph: *mut sys::ggml_cgraph,
}

// SAFETY: between `begin` and `wait` the worker alone computes the group; it is joined before
// the group is freed.
unsafe impl Send for Job {}

impl Job {
    /// Polls for a while, sleeps after; runs when told, until told to stop.
    fn serve(&self, turn: &AtomicU32, core: usize) {
        bind_this_thread(&[core]);
        let mut polls = 0;
        loop {
            match turn.load(Acquire) {
                STOP => return,
                RUN => {
                    polls = 0;
                    // SAFETY: as for `Send`.
                    let status = unsafe {
                        sys::ggml_backend_graph_compute(self.backend.as_ptr(), self.graph)
                    };
                    let done = outcome(status) == ComputeOutcome::Done;
                    turn.store(if done { DONE } else { FAILED }, Release);
                }
                _ if polls < POLLS => {
                    polls += 1;
                    std::hint::spin_loop();
                }
                _ => std::thread::park(),
            }
        }
    }
}

impl Worker {
    fn new(group: &Group, core: usize) -> Self {
        let turn = Arc::new(AtomicU32::new(IDLE));
        let job = Job { backend: group.backend, graph: group.graph };
        let told = Arc::clone(&turn);
        let thread = std::thread::spawn(move || job.serve(&told, core));
        Self { turn, thread: Some(thread) }
    }

    fn begin(&self) {
        self.turn.store(RUN, Release);
        self.wake();
    }

    fn wait(&self) -> ComputeOutcome {
        loop {
            match self.turn.load(Acquire) {
                DONE => return ComputeOutcome::Done,
                FAILED => return ComputeOutcome::Failed,
                _ => std::hint::spin_loop(),
            }
        }
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.turn.store(STOP, Release);
        self.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Runtime, Seam, StackSpec};
    use motley_model::gguf::GgmlType;

    fn stack(ty: GgmlType, intermediate: u32) -> ExpertStack {
        let runtime = Runtime::start(Seam::Registered).unwrap();
        let spec = StackSpec { hidden: 512, intermediate, experts: 5, ty, layout: Layout::Plain };
        let pool = Arc::new(Threadpool::new(&ThreadpoolOptions::with_threads(1)).unwrap());
        ExpertStack::new(&runtime, spec, pool).unwrap()
    }

    #[test]
    fn groups_at_once_have_the_bits_of_groups_in_turn_and_of_the_documented_sum() {
        for ty in [GgmlType::F32, GgmlType::Q4_0, GgmlType::Q8_0, GgmlType::Q4_K] {
            let stack = stack(ty, 1024);
            for cores in [&[0, 1][..], &[0, 1, 0, 1]] {
                let mut split = stack.split_block(3, 2, cores).unwrap();
                split.choose(3);
                assert_eq!(split.run_in_turn(), ComputeOutcome::Done);
                let in_turn = split.output().to_vec();
                for _ in 0..20 {
                    assert_eq!(split.run(), ComputeOutcome::Done);
                    assert!(split.output() == in_turn, "{ty} on {} groups", cores.len());
                }
                let mut sum = split.partial(0).to_vec();
                for group in 1..cores.len() {
                    sum.iter_mut().zip(split.partial(group)).for_each(|(s, p)| *s += p);
                }
                assert!(split.output() == sum);
            }
        }
    }

    #[test]
    fn the_sum_of_groups_is_the_whole_but_for_rounding() {
        for ty in [GgmlType::F32, GgmlType::Q4_0, GgmlType::Q4_K, GgmlType::MXFP4] {
            let stack = stack(ty, 1024);
            let mut whole = stack.block(3, 2).unwrap();
            whole.choose(1);
            assert_eq!(whole.run(), ComputeOutcome::Done);
            let whole = whole.output();
            let mut split = stack.split_block(3, 2, &[0, 1]).unwrap();
            split.choose(1);
            assert_eq!(split.run(), ComputeOutcome::Done);
            let largest = whole.iter().fold(0.0_f32, |most, v| most.max(v.abs()));
            let apart = whole.iter().zip(split.output()).map(|(a, b)| (a - b).abs());
            let apart = apart.fold(0.0, f32::max);
            // Both sum the same products; f32 keeps 24 bits of each of some thousand sums.
            assert!(largest > 0.0 && apart <= 1e-5 * largest, "{ty}: {apart} of {largest}");
        }
    }

    #[test]
    fn one_group_is_the_whole() {
        let stack = stack(GgmlType::Q4_0, 256);
        let mut whole = stack.block(2, 1).unwrap();
        let mut split = stack.split_block(2, 1, &[0]).unwrap();
        whole.choose(4);
        split.choose(4);
        assert_eq!((whole.run(), split.run()), (ComputeOutcome::Done, ComputeOutcome::Done));
        assert!(whole.output() == split.output());
    }

    #[test]
    fn a_block_of_the_type_is_never_cut() {
        let stack = stack(GgmlType::Q4_K, 256);
        let error = stack.split_block(1, 1, &[0, 1]).err();
        assert!(matches!(error, Some(BenchError::Shape { .. })), "{error:?}");
        assert!(stack.split_block(1, 1, &[]).is_err());
    }
}
