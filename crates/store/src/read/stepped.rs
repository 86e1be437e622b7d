//! A reader without threads: reads begin and end when its holder says so, in any order. The
//! queue, the jobs and the landing are those of the other backends; a simulation decides when.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::disk::Disk;
use super::job::Chunk;
use super::queue::ReadQueue;
use super::request::{Completion, Request};
use super::target::Staging;
use crate::counters::Counters;

/// Reads experts one step at a time.
pub struct SteppedReader {
    queue: ReadQueue,
    staging: Staging,
    in_flight: BTreeMap<u64, Chunk>,
    most: usize,
    begun: u64,
}

impl SteppedReader {
    /// A reader of `disk` with at most `most` reads in flight.
    pub fn new(disk: Arc<dyn Disk>, most: usize) -> io::Result<Self> {
        let (queue, staging) = (ReadQueue::new(disk, None), Staging::new()?);
        Ok(Self { queue, staging, in_flight: BTreeMap::new(), most, begun: 0 })
    }

    /// Queues requests, all at once.
    pub fn submit(&self, requests: impl IntoIterator<Item = Request>) {
        self.queue.submit(requests);
    }

    /// A completion, if one is ready.
    pub fn poll(&self) -> Option<Completion> {
        self.queue.poll()
    }

    /// Requests submitted whose completion was not taken yet.
    pub fn under_way(&self) -> usize {
        self.queue.under_way()
    }

    /// Begins the next read, if there is one and fewer than `most` are in flight; its name.
    pub fn begin(&mut self) -> Option<u64> {
        if self.in_flight.len() >= self.most {
            return None;
        }
        let chunk = self.queue.try_take()?;
        self.begun += 1;
        self.in_flight.insert(self.begun, chunk);
        Some(self.begun)
    }

    /// Ends read `name`: the disk is asked now and the bytes land. `false` when there is none.
    pub fn end(&mut self, name: u64) -> bool {
        let Some(chunk) = self.in_flight.remove(&name) else { return false };
        self.queue.carry_out(chunk, &self.staging);
        true
    }

    /// Sums since the beginning.
    pub fn counters(&self) -> Counters {
        self.queue.counters()
    }
}
