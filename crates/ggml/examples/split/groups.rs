//! One expert over several groups of cores (G1): each group computes some neurons of every
//! expert, and the partial sums are added.
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

use crate::share::Share;
use crate::stack::Stack;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// Polls before a worker sleeps: about as long as a block of decode takes.
const POLLS: u32 = 50_000;

/// A block whose experts' neurons are divided among groups of one thread each.
pub(crate) struct Groups {
    groups: Vec<Arc<Group>>,
    /// Of all groups but the first.
    workers: Vec<Worker>,
    /// `[rows][hidden]`.
    sum: Vec<f32>,
}

impl Groups {
    /// `experts` experts with `tokens` rows each, in as many groups as there are `cores`: the
    /// first runs on the calling thread, each other on a thread bound to its core. `None` when
    /// a quantisation block would be cut, or there is no memory.
    pub(crate) fn new(
        stack: &Arc<Stack>,
        (experts, tokens): (usize, usize),
        cores: &[usize],
    ) -> Option<Self> {
        let neurons = neurons_per_group(stack, cores.len())?;
        let group = |index: usize| {
            let first = index as i64 * neurons;
            let share = Share::new(stack, first..first + neurons, (experts, tokens), 1)?;
            Some(Arc::new(Group { share: Mutex::new(share), turn: AtomicU32::new(IDLE) }))
        };
        let groups = (0..cores.len()).map(group).collect::<Option<Vec<_>>>()?;
        let others = groups.iter().zip(cores).skip(1);
        let workers = others.map(|(group, &core)| Worker::new(group, core)).collect();
        let sum = vec![0.0; experts * tokens * stack.shape.hidden as usize];
        Some(Self { groups, workers, sum })
    }

    /// Points the rows at experts `first`, `first + 1`, … of the stack, around its end.
    pub(crate) fn choose(&mut self, first: u32) {
        self.groups.iter().for_each(|group| group.share().choose(first));
    }

    /// Computes all parts at once, then their sum; whether ggml computed them.
    pub(crate) fn run(&mut self) -> bool {
        self.workers.iter().for_each(Worker::begin);
        let mut computed = self.groups[0].share().run();
        for group in &self.groups[1..] {
            computed &= group.wait();
        }
        self.add();
        computed
    }

    fn add(&mut self) {
        self.sum.copy_from_slice(self.groups[0].share().output());
        for group in &self.groups[1..] {
            for (sum, partial) in self.sum.iter_mut().zip(group.share().output()) {
                *sum += partial;
            }
        }
    }
}

/// Whole quantisation blocks of `down`'s rows for each group.
fn neurons_per_group(stack: &Stack, groups: usize) -> Option<i64> {
    let block = stack.shape.ty.block_elements() as i64;
    let (blocks, groups) = (stack.shape.width / block, groups as i64);
    (groups > 0 && blocks % groups == 0).then(|| blocks / groups * block)
}

/// One group's part of the work, and whose turn it is.
struct Group {
    share: Mutex<Share>,
    turn: AtomicU32,
}

/// What `turn` says.
const IDLE: u32 = 0;
const RUN: u32 = 1;
const STOP: u32 = 2;
const DONE: u32 = 3;
const FAILED: u32 = 4;

impl Group {
    /// Never waited for: the caller and the worker take turns.
    fn share(&self) -> MutexGuard<'_, Share> {
        self.share.lock().expect("no panic holds this lock")
    }

    /// Polls for a while, sleeps after; runs on request, until it has to stop.
    fn serve(&self, core: usize) {
        bind_this_thread(core);
        let mut polls = 0;
        loop {
            match self.turn.load(Acquire) {
                STOP => return,
                RUN => {
                    polls = 0;
                    let computed = self.share().run();
                    self.turn.store(if computed { DONE } else { FAILED }, Release);
                }
                _ if polls < POLLS => {
                    polls += 1;
                    std::hint::spin_loop();
                }
                _ => std::thread::park(),
            }
        }
    }

    fn wait(&self) -> bool {
        loop {
            match self.turn.load(Acquire) {
                DONE => return true,
                FAILED => return false,
                _ => std::hint::spin_loop(),
            }
        }
    }
}

/// A thread that computes one group on request.
struct Worker {
    group: Arc<Group>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn new(group: &Arc<Group>, core: usize) -> Self {
        let served = Arc::clone(group);
        let thread = std::thread::spawn(move || served.serve(core));
        Self { group: Arc::clone(group), thread: Some(thread) }
    }

    fn begin(&self) {
        self.say(RUN);
    }

    fn say(&self, turn: u32) {
        self.group.turn.store(turn, Release);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.say(STOP);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Lets the calling thread run on one core only; where the system refuses, nothing changes.
#[cfg(target_os = "linux")]
fn bind_this_thread(core: usize) {
    // SAFETY: an all-zero set is empty, the index is inside, and the call reads the set's size.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core % libc::CPU_SETSIZE as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Threads run where the system likes.
#[cfg(not(target_os = "linux"))]
fn bind_this_thread(_: usize) {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Shape;
    use motley_ggml::{Runtime, Seam};
    use motley_model::gguf::GgmlType;

    const ROWS: (usize, usize) = (3, 2);

    fn stack(ty: GgmlType, width: i64) -> Arc<Stack> {
        Runtime::start(Seam::Absent).unwrap();
        Arc::new(Stack::new(Shape { hidden: 512, width, experts: 5, ty }).unwrap())
    }

    fn whole(stack: &Arc<Stack>, first: u32) -> Share {
        let mut whole = Share::new(stack, 0..stack.shape.width, ROWS, 2).unwrap();
        whole.choose(first);
        assert!(whole.run());
        whole
    }

    impl Groups {
        /// The sum, `[rows][hidden]`.
        fn output(&self) -> &[f32] {
            &self.sum
        }

        /// Computes the parts one after the other on the calling thread, then their sum: the
        /// reference for what the groups compute at once.
        fn run_in_turn(&mut self) -> bool {
            let computed = self.groups.iter().all(|group| group.share().run());
            self.add();
            computed
        }
    }

    #[test]
    fn groups_at_once_have_the_bits_of_groups_in_turn_and_of_the_documented_sum() {
        for ty in [GgmlType::F32, GgmlType::Q4_0, GgmlType::Q8_0, GgmlType::Q4_K] {
            let stack = stack(ty, 1024);
            for cores in [&[0, 1][..], &[0, 1, 0, 1]] {
                let mut split = Groups::new(&stack, ROWS, cores).unwrap();
                split.choose(3);
                assert!(split.run_in_turn());
                let in_turn = split.output().to_vec();
                for _ in 0..20 {
                    assert!(split.run());
                    assert!(split.output() == in_turn, "{ty} on {} groups", cores.len());
                }
                let mut sum = split.groups[0].share().output().to_vec();
                for group in &split.groups[1..] {
                    sum.iter_mut().zip(group.share().output()).for_each(|(s, p)| *s += p);
                }
                assert!(split.output() == sum);
            }
        }
    }

    #[test]
    fn the_sum_of_groups_is_the_whole_but_for_rounding() {
        for ty in [GgmlType::F32, GgmlType::Q4_0, GgmlType::Q4_K, GgmlType::MXFP4] {
            let stack = stack(ty, 1024);
            let whole = whole(&stack, 1);
            let mut split = Groups::new(&stack, ROWS, &[0, 1]).unwrap();
            split.choose(1);
            assert!(split.run());
            let largest = whole.output().iter().fold(0.0_f32, |most, v| most.max(v.abs()));
            let apart = whole.output().iter().zip(split.output()).map(|(a, b)| (a - b).abs());
            let apart = apart.fold(0.0, f32::max);
            // Both sum the same products; f32 keeps 24 bits of each of some thousand sums.
            assert!(largest > 0.0 && apart <= 1e-5 * largest, "{ty}: {apart} of {largest}");
        }
    }

    #[test]
    fn one_group_is_the_whole() {
        let stack = stack(GgmlType::Q4_0, 256);
        let mut split = Groups::new(&stack, ROWS, &[0]).unwrap();
        split.choose(4);
        assert!(split.run());
        assert!(whole(&stack, 4).output() == split.output());
    }

    #[test]
    fn a_block_of_the_type_is_never_cut() {
        let stack = stack(GgmlType::Q4_K, 256);
        assert!(Groups::new(&stack, ROWS, &[0, 1]).is_none());
        assert!(Groups::new(&stack, ROWS, &[]).is_none());
    }
}
