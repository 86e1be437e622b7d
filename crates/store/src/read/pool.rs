//! The portable backend: as many threads as reads may be in flight, each in `pread`.

use std::io;
use std::sync::Arc;

use super::queue::ReadQueue;
use super::target::Staging;
use super::workers::{AbortOnUnwind, Workers};
use crate::sync::{Builder, JoinHandle};

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
            queue.carry_out(chunk, &staging);
        }
        std::mem::forget(guard);
    };
    Builder::new().name(format!("store-read-{index}")).spawn(work)
}

impl Workers for Pool {
    fn wake(&self) {}

    fn join(&mut self) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
