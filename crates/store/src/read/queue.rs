//! The read queue: all requests under way, between the caller and the threads of a backend.
//! Validates, hands out chunks, retries once, completes. Its only I/O is one `fstat` per file
//! of a completed request; their order is in `priority`.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::disk::Disk;
use super::error::ReadError;
use super::faulty::{Fault, FaultPlan, Faults};
use super::job::{Chunk, Job, JobId};
use super::priority::PriorityQueue;
use super::request::{Completion, Piece, Request};
use super::target::{Landed, Staging, Target};
use crate::counters::{BusyClock, Counters};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Reads after the first that a chunk may have.
const RETRIES_MAX: u32 = 1;

/// Requests under way, shared by the caller and the threads of a backend.
pub(crate) struct ReadQueue {
    disk: Arc<dyn Disk>,
    faults: Option<Faults>,
    state: Mutex<State>,
    /// Signalled for threads that wait for chunks.
    work: Condvar,
    /// Signalled for callers that wait for completions.
    done: Condvar,
}

#[derive(Default)]
struct State {
    jobs: HashMap<JobId, Job>,
    next_id: JobId,
    /// Jobs with chunks left to hand out.
    waiting: PriorityQueue<JobId>,
    /// Chunks to be read a second time, before everything else.
    again: VecDeque<Chunk>,
    /// Jobs removed from `jobs` whose completion is being prepared.
    finishing: usize,
    completed: VecDeque<Completion>,
    busy: BusyClock,
    counters: Counters,
    closed: bool,
}

impl ReadQueue {
    pub(crate) fn new(disk: Arc<dyn Disk>, faults: Option<FaultPlan>) -> Self {
        Self {
            disk,
            faults: faults.map(Faults::new),
            state: Mutex::default(),
            work: Condvar::new(),
            done: Condvar::new(),
        }
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    pub(crate) fn submit(&self, requests: impl IntoIterator<Item = Request>) {
        let jobs: Vec<Job> = requests.into_iter().map(|request| self.job(request)).collect();
        let mut state = self.state();
        for mut job in jobs {
            if job.is_complete() {
                state.complete(job);
                continue;
            }
            let id = state.next_id;
            state.next_id += 1;
            state.waiting.push(id, job.priority);
            state.jobs.insert(id, job);
        }
        self.work.notify_all();
        self.done.notify_all();
    }

    pub(crate) fn poll(&self) -> Option<Completion> {
        self.state().completed.pop_front()
    }

    pub(crate) fn wait(&self, timeout: Option<Duration>) -> Option<Completion> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut state = self.state();
        loop {
            if let Some(completion) = state.completed.pop_front() {
                return Some(completion);
            }
            if state.jobs.is_empty() && state.finishing == 0 {
                return None;
            }
            state = match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                None => self.done.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return None,
                Some(left) => {
                    self.done.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    pub(crate) fn wait_until_ready(&self) -> bool {
        let mut state = self.state();
        while state.completed.is_empty() {
            if state.jobs.is_empty() && state.finishing == 0 {
                return false;
            }
            state = self.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    pub(crate) fn under_way(&self) -> usize {
        let state = self.state();
        state.jobs.len() + state.finishing + state.completed.len()
    }

    pub(crate) fn counters(&self) -> Counters {
        let state = self.state();
        Counters { busy: state.busy.total(), ..state.counters }
    }

    /// No more chunks are handed out.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.work.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// The next chunk to read, if there is one now.
    pub(crate) fn try_take(&self) -> Option<Chunk> {
        self.state().take()
    }

    /// The next chunk to read; `None` when the queue is closed.
    pub(crate) fn take(&self) -> Option<Chunk> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            if let Some(chunk) = state.take() {
                return Some(chunk);
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The fault to inject into this read, in tests.
    pub(crate) fn fault(&self, chunk: &Chunk) -> Option<Fault> {
        self.faults.as_ref()?.next(chunk.file, chunk.offset)
    }

    /// Reads a chunk on this thread and lands it.
    pub(crate) fn carry_out(&self, chunk: Chunk, staging: &Staging) {
        let target = Target::new(self.disk(), &chunk, staging);
        let result = target.read();
        let result = match self.fault(&chunk) {
            Some(fault) => fault.apply(result),
            None => result,
        };
        let landed = target.land(&chunk, result);
        self.land(chunk, landed);
    }

    /// A read came back. Its memory is not touched by the system any more.
    pub(crate) fn land(&self, mut chunk: Chunk, landed: Landed) {
        let mut state = self.state();
        state.busy.end();
        state.count(&landed);
        if landed.error.is_some() && chunk.attempt < RETRIES_MAX && !state.closed {
            chunk.attempt += 1;
            state.counters.retries += 1;
            state.again.push_back(chunk);
            self.work.notify_one();
            return;
        }
        let id = chunk.job;
        let Some(job) = state.jobs.get_mut(&id) else { return };
        job.land(landed.into_result(&chunk, self.disk()));
        if !job.all_handed_out() {
            return;
        }
        let complete = job.is_complete();
        state.waiting.remove(id);
        if complete && let Some(job) = state.jobs.remove(&id) {
            state.finishing += 1;
            drop(state);
            self.finish(job);
        }
    }

    /// Checks that the files did not change, outside the lock as a file server may be slow, and
    /// queues the completion.
    fn finish(&self, mut job: Job) {
        let changed = job.files().find(|&file| !self.disk.unchanged(file));
        if let Some(facts) = changed.and_then(|file| self.disk.facts(file)) {
            job.fail_because(ReadError::Changed { path: facts.path.to_owned() });
        }
        let mut state = self.state();
        state.finishing -= 1;
        state.complete(job);
        self.done.notify_all();
    }

    fn job(&self, request: Request) -> Job {
        let refused = request.pieces.iter().find_map(|piece| self.refusal(piece));
        let mut job = Job::new(request);
        if let Some(error) = refused {
            job.fail(error);
        }
        job
    }

    fn refusal(&self, piece: &Piece) -> Option<ReadError> {
        let Piece { range, slot, at_bytes, .. } = piece;
        let Some(file) = self.disk.facts(range.file) else {
            return Some(ReadError::NoSuchFile { file: range.file });
        };
        let (offset, len_bytes) = (range.offset, range.len_bytes);
        if offset.checked_add(len_bytes).is_none_or(|end| end > file.len_bytes) {
            return Some(ReadError::BeyondEnd { path: file.path.to_owned(), offset, len_bytes });
        }
        let slot_bytes = slot.arena().slot_bytes();
        let end = (*at_bytes as u64).checked_add(len_bytes);
        end.is_none_or(|end| end > slot_bytes as u64).then_some(ReadError::DoesNotFit {
            at_bytes: *at_bytes,
            len_bytes,
            slot_bytes,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self) -> Option<Chunk> {
        if self.closed {
            return None;
        }
        let chunk = self.again.pop_front().or_else(|| self.next_chunk())?;
        self.busy.begin();
        Some(chunk)
    }

    fn next_chunk(&mut self) -> Option<Chunk> {
        let id = self.waiting.first()?;
        let job = self.jobs.get_mut(&id)?;
        let chunk = job.next_chunk(id);
        if job.all_handed_out() {
            self.waiting.remove(id);
        }
        chunk
    }

    fn count(&mut self, landed: &Landed) {
        self.counters.reads += 1;
        self.counters.device_bytes += landed.device_bytes as u64;
        self.counters.copied_reads += u64::from(landed.copied);
    }

    fn complete(&mut self, job: Job) {
        let bytes = job.len_bytes();
        let completion = job.into_completion();
        self.counters.requests += 1;
        match completion.outcome {
            Ok(_) => self.counters.bytes += bytes,
            Err(_) => self.counters.errors += 1,
        }
        self.completed.push_back(completion);
    }
}
