//! The io_uring backend: one thread owns the ring, keeps it as full as allowed and lands what
//! completes. No registered buffers: they would count against the locked-memory limit, which
//! is 8 MiB on common systems.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;

use io_uring::register::Restriction;
use io_uring::{IoUring, opcode, types};
use rustix::event::EventfdFlags;

use crate::read::files::Files;
use crate::read::job::Chunk;
use crate::read::queue::ReadQueue;
use crate::read::target::{Staging, Target};
use crate::read::workers::{AbortOnUnwind, Workers};

/// `user_data` of the poll that wakes the thread; reads have their lane's number.
const WAKE: u64 = u64::MAX;

pub(crate) struct Uring {
    thread: Option<JoinHandle<()>>,
    bell: Arc<OwnedFd>,
}

/// Starts the thread with a ring of `depth` lanes.
pub(crate) fn start(queue: Arc<ReadQueue>, files: Arc<Files>, depth: u32) -> io::Result<Uring> {
    let bell = rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
    let bell = Arc::new(bell);
    let ring = reading_ring(depth + 1)?;
    let lanes = (0..depth).map(|_| Lane::new()).collect::<io::Result<Vec<_>>>()?;
    let (in_flight, armed) = (0, false);
    let driver = Driver { queue, files, ring, bell: Arc::clone(&bell), lanes, in_flight, armed };
    let thread =
        std::thread::Builder::new().name("store-uring".to_owned()).spawn(move || driver.run())?;
    Ok(Uring { thread: Some(thread), bell })
}

/// A ring that reads and polls, and nothing else for as long as it lives: through any other ring
/// files could be opened and connections made past a filter of system calls (`host::sandbox`).
fn reading_ring(entries: u32) -> io::Result<IoUring> {
    let ring = IoUring::builder().setup_r_disabled().build(entries)?;
    let mut probe = io_uring::Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    let used = [opcode::Read::CODE, opcode::PollAdd::CODE];
    if !used.into_iter().all(|op| probe.is_supported(op)) {
        return Err(io::ErrorKind::Unsupported.into());
    }
    ring.submitter().register_restrictions(&mut used.map(Restriction::sqe_op))?;
    ring.submitter().register_enable_rings()?;
    Ok(ring)
}

impl Workers for Uring {
    fn wake(&self) {
        // Full means that a wake is pending already.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Driver {
    queue: Arc<ReadQueue>,
    /// What the queue reads.
    files: Arc<Files>,
    ring: IoUring,
    bell: Arc<OwnedFd>,
    lanes: Vec<Lane>,
    in_flight: u32,
    armed: bool,
}

/// Room for one read in flight.
struct Lane {
    staging: Staging,
    chunk: Option<Chunk>,
}

impl Lane {
    fn new() -> io::Result<Self> {
        Ok(Self { staging: Staging::new()?, chunk: None })
    }
}

impl Driver {
    fn run(mut self) {
        let guard = AbortOnUnwind;
        while !(self.queue.is_closed() && self.in_flight == 0) {
            self.fill_lanes();
            self.arm_bell();
            self.enter();
            self.reap();
        }
        std::mem::forget(guard);
    }

    fn fill_lanes(&mut self) {
        while let Some(lane) = self.lanes.iter().position(|lane| lane.chunk.is_none()) {
            let Some(chunk) = self.queue.try_take() else { return };
            let target = Target::new(self.queue.disk(), &chunk, &self.lanes[lane].staging);
            let file = self.files.descriptor(target.file, target.direct);
            let descriptor = types::Fd(file.expect("the queue reads these files").as_raw_fd());
            let len = u32::try_from(target.len_bytes).expect("chunks are short");
            let read = opcode::Read::new(descriptor, target.memory.as_ptr(), len)
                .offset(target.offset)
                .build()
                .user_data(lane as u64);
            // SAFETY: the memory belongs to a slot whose lease the queue keeps until `land`, or
            // to the lane's staging buffer; the file lives as long as the queue. The thread does
            // not end with a read in flight.
            unsafe { self.push(&read) };
            self.lanes[lane].chunk = Some(chunk);
            self.in_flight += 1;
        }
    }

    fn arm_bell(&mut self) {
        if self.armed {
            return;
        }
        // 16 bits with or without a sign, by the system's headers.
        let readable = rustix::event::PollFlags::IN.bits() as u32;
        let poll = opcode::PollAdd::new(types::Fd(self.bell.as_fd().as_raw_fd()), readable);
        // SAFETY: a poll touches no memory of ours, and the driver holds the bell.
        unsafe { self.push(&poll.build().user_data(WAKE)) };
        self.armed = true;
    }

    /// # Safety
    /// What the entry points to stays valid until its completion was reaped.
    unsafe fn push(&mut self, entry: &io_uring::squeue::Entry) {
        // SAFETY: the caller vouches for the entry. The queue has an entry per lane and one
        // for the bell, and every `enter` empties it, so there is room.
        unsafe { self.ring.submission().push(entry) }.expect("an entry per lane and the bell");
    }

    /// Submits and sleeps until something completes.
    fn enter(&mut self) {
        while let Err(error) = self.ring.submit_and_wait(1) {
            match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
                Some(rustix::io::Errno::INTR) => {}
                Some(rustix::io::Errno::BUSY) => return,
                Some(rustix::io::Errno::AGAIN | rustix::io::Errno::NOMEM) => {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
                _ => panic!("io_uring_enter failed on a ring that worked: {error}"),
            }
        }
    }

    fn reap(&mut self) {
        while let Some(entry) = self.ring.completion().next() {
            if entry.user_data() == WAKE {
                self.armed = false;
                let _ = rustix::io::read(&self.bell, &mut [0u8; 8]);
                continue;
            }
            let lane = &mut self.lanes[entry.user_data() as usize];
            let chunk = lane.chunk.take().expect("a lane completes once per read");
            self.in_flight -= 1;
            let result = match usize::try_from(entry.result()) {
                Ok(bytes) => Ok(bytes),
                Err(_) => Err(io::Error::from_raw_os_error(-entry.result())),
            };
            let result = match self.queue.fault(&chunk) {
                Some(fault) => fault.apply(result),
                None => result,
            };
            let landed = Target::new(self.queue.disk(), &chunk, &lane.staging).land(&chunk, result);
            self.queue.land(chunk, landed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_does_nothing_but_read_and_poll() {
        let mut ring = match reading_ring(4) {
            Ok(ring) => ring,
            Err(error) => return println!("SKIPPED: this system refuses io_uring: {error}"),
        };
        let outcome = |ring: &mut IoUring, entry: io_uring::squeue::Entry| {
            // SAFETY: the entry points to static memory, or to none.
            unsafe { ring.submission().push(&entry) }.expect("room for four");
            ring.submit_and_wait(1).expect("a ring that works");
            ring.completion().next().expect("one completion").result()
        };
        let denied = -rustix::io::Errno::ACCESS.raw_os_error();
        let path = opcode::OpenAt::new(types::Fd(-100), c"/etc/passwd".as_ptr());
        assert_eq!(outcome(&mut ring, path.build()), denied);
        assert_eq!(outcome(&mut ring, opcode::Socket::new(2, 1, 0).build()), denied);
        assert_eq!(outcome(&mut ring, opcode::Nop::new().build()), denied);
        let read = opcode::Read::new(types::Fd(-1), std::ptr::null_mut(), 0);
        assert_eq!(outcome(&mut ring, read.build()), -rustix::io::Errno::BADF.raw_os_error());
        assert!(ring.submitter().register_restrictions(&mut []).is_err(), "once and for all");
    }
}
