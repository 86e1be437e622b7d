//! The portable backend: as many threads as reads may be in flight, each in `pread`.

use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::job::Chunk;
use super::queue::ReadQueue;
use super::target::{Landed, Staging, Target};
use super::workers::{AbortOnUnwind, Workers};

pub(super) struct Pool {
    threads: Vec<JoinHandle<()>>,
}

/// Starts `threads` threads, which the queue itself wakes.
pub(super) fn start(queue: Arc<ReadQueue>, threads: u32) -> io::Result<Pool> {
    let mut pool = Pool { threads: Vec::new() };
    for index in 0..threads {
        let started = start_one(Arc::clone(&queue), index);
        match started {
            Ok(thread) => pool.threads.push(thread),
            Err(error) => {
                queue.close();
                pool.join();
                return Err(error);
            }
        }
    }
    Ok(pool)
}

fn start_one(queue: Arc<ReadQueue>, index: u32) -> io::Result<JoinHandle<()>> {
    let staging = Staging::new()?;
    let work = move || {
        let guard = AbortOnUnwind;
        while let Some(chunk) = queue.take() {
            let landed = read(&queue, &chunk, &staging);
            queue.land(chunk, landed);
        }
        std::mem::forget(guard);
    };
    std::thread::Builder::new().name(format!("store-read-{index}")).spawn(work)
}

fn read(queue: &ReadQueue, chunk: &Chunk, staging: &Staging) -> Landed {
    let target = Target::new(queue.files(), chunk, staging);
    // SAFETY: `memory` is `len_bytes` of the leased slot this chunk may overwrite, or of this
    // thread's staging buffer; both are initialised and touched by nobody else meanwhile.
    let memory =
        unsafe { std::slice::from_raw_parts_mut(target.memory.as_ptr(), target.len_bytes) };
    let result = loop {
        match target.descriptor().read_at(memory, target.offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result,
        }
    };
    let result = match queue.fault(chunk) {
        Some(fault) => fault.apply(result),
        None => result,
    };
    target.land(chunk, result)
}

impl Workers for Pool {
    fn wake(&self) {}

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
