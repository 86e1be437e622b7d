//! The read queue and its pool under every order of threads: no request is lost or answered twice,
//! nobody waits for ever, and no read writes into a slot that was given back.
//! `cargo xtask check loom`; as ordinary tests a sample of orders.
//!
//! Mutants that are found here: `finish` without its `notify`, and one that notifies a single waiter.

use std::io;
use std::path::Path;
use std::sync::Arc;

use motley_model::{FileRange, Matrix, TensorPart};

use super::disk::{Alignment, Disk, FileFacts};
use super::pool::{self, Pool};
use super::priority::Priority;
use super::queue::ReadQueue;
use super::request::{Completion, Piece, Request, Tag};
use super::workers::Workers;
use crate::arena::{Arena, ArenaSpec, SlotLease};
use crate::memory::HugePages;
use motley_testkit::explore::{Holders, explore, spawn};

const SLOTS: u32 = 3;
const PIECE_BYTES: u64 = 8;

/// A file whose bytes are their piece's number.
struct Scripted {
    arena: Arena,
    holders: Arc<Holders>,
    script: Script,
}

#[derive(Clone, Copy)]
struct Script {
    /// Pieces from this number on cannot be read.
    fails_from: u64,
    direct: Option<Alignment>,
}

const WORKS: Script = Script { fails_from: u64::MAX, direct: None };

impl Scripted {
    /// The slot of the arena that `memory` is in; a staging buffer is in none.
    fn slot(&self, memory: &[u8]) -> Option<usize> {
        let base = self.arena.base().as_ptr() as usize;
        let slot = (memory.as_ptr() as usize).checked_sub(base)? / self.arena.stride_bytes();
        (slot < SLOTS as usize).then_some(slot)
    }

    fn read(&self, offset: u64, memory: &mut [u8]) -> io::Result<usize> {
        for (byte, at) in memory.iter_mut().zip(offset..) {
            *byte = (at / PIECE_BYTES) as u8;
        }
        match offset / PIECE_BYTES < self.script.fails_from {
            true => Ok(memory.len()),
            false => Err(io::ErrorKind::Other.into()),
        }
    }
}

impl Disk for Scripted {
    fn facts(&self, index: usize) -> Option<FileFacts<'_>> {
        let (path, direct) = (Path::new("scripted"), self.script.direct);
        (index == 0).then_some(FileFacts { path, len_bytes: 1 << 20, direct })
    }

    fn read_at(&self, _: usize, _: bool, offset: u64, memory: &mut [u8]) -> io::Result<usize> {
        match self.slot(memory) {
            Some(slot) => self.holders.hold(slot, || self.read(offset, memory)),
            None => self.read(offset, memory),
        }
    }

    fn unchanged(&self, _: usize) -> bool {
        true
    }

    fn forget(&self, _: usize, _: u64, _: usize) {}
}

/// A queue with its pool, as `Reader` has them.
struct World {
    arena: Arena,
    holders: Arc<Holders>,
    queue: Arc<ReadQueue>,
    pool: Pool,
}

impl World {
    fn new(threads: u32, script: Script) -> Self {
        let spec = ArenaSpec {
            slot_bytes: PIECE_BYTES as usize,
            max_slots: SLOTS,
            usable_slots: SLOTS,
            huge_pages: HugePages::Refuse,
        };
        let arena = Arena::new(spec).expect("a small arena");
        let holders = Arc::new(Holders::new(SLOTS as usize));
        let disk = Scripted { arena: arena.clone(), holders: Arc::clone(&holders), script };
        let queue = Arc::new(ReadQueue::new(Arc::new(disk), None));
        let pool = pool::start(Arc::clone(&queue), threads).expect("threads");
        Self { arena, holders, queue, pool }
    }

    /// A request of these pieces, each into a slot of its own.
    fn request(&self, tag: u64, pieces: &[u64]) -> Request {
        let piece = |&number: &u64| Piece {
            matrix: Matrix::Gate,
            part: TensorPart::Weight,
            range: FileRange { file: 0, offset: number * PIECE_BYTES, len_bytes: PIECE_BYTES },
            slot: self.arena.lease().expect("a slot for each"),
            at_bytes: 0,
        };
        let pieces = pieces.iter().map(piece).collect();
        Request { tag: Tag(tag), priority: Priority::Demand, pieces }
    }

    /// Looks at what came, as its holder; the slots return.
    fn accept(&self, completion: Completion, expected: &[u8]) {
        let filled = completion.outcome.expect("a disk that works");
        for ((_, _, slot), number) in filled.iter().zip(expected) {
            let index = slot.index() as usize;
            self.holders.hold(index, || assert_eq!(slot.bytes(), [*number; 8]));
        }
        assert_eq!(filled.len(), expected.len());
    }

    /// As `Reader::drop`; what is still leased then is nobody's.
    fn close(mut self) {
        self.queue.close();
        self.pool.wake();
        self.pool.join();
        let Self { arena, queue, .. } = self;
        let queue = Arc::into_inner(queue).expect("the threads have ended");
        drop(queue);
        assert_eq!(arena.leased_slots(), 0);
    }
}

#[test]
fn every_request_is_answered_once_with_its_own_bytes() {
    explore("queue: two threads, two requests", 2, || {
        let world = World::new(2, WORKS);
        world.queue.submit([world.request(0, &[4])]);
        world.queue.submit([world.request(1, &[5])]);
        let mut answered = [0, 0];
        while let Some(completion) = world.queue.wait(None) {
            let tag = completion.tag.0 as usize;
            answered[tag] += 1;
            world.accept(completion, &[4 + tag as u8]);
        }
        assert_eq!(answered, [1, 1]);
        world.close();
    });
}

#[test]
fn two_who_wait_get_one_answer_each_or_learn_that_there_is_none() {
    explore("queue: two who wait", 2, || {
        let world = World::new(1, WORKS);
        world.queue.submit([world.request(0, &[4]), world.request(1, &[5])]);
        let queue = Arc::clone(&world.queue);
        let taking = move || std::iter::from_fn(|| queue.wait(None)).collect::<Vec<_>>();
        let other = spawn(taking);
        let mut taken: Vec<_> = std::iter::from_fn(|| world.queue.wait(None)).collect();
        taken.extend(other.join().expect("one who ends"));
        taken.sort_by_key(|completion| completion.tag);
        assert_eq!(taken.iter().map(|one| one.tag.0).collect::<Vec<_>>(), [0, 1]);
        taken.into_iter().zip([4, 5]).for_each(|(one, number)| world.accept(one, &[number]));
        world.close();
    });
}

/// The first piece arrives, the second fails twice. Whichever ends first, both slots come back
/// when nothing is read into either, and nothing is afterwards.
#[test]
fn a_failed_request_gives_its_slots_back_when_nobody_writes_there() {
    explore("queue: a request that fails", 2, || {
        let world = World::new(2, Script { fails_from: 5, ..WORKS });
        world.queue.submit([world.request(0, &[4, 5])]);
        let failed = world.queue.wait(None).expect("an answer").outcome.expect_err("a bad disk");
        drop(failed.request);
        let mut again: Vec<SlotLease> = (0..2).filter_map(|_| world.arena.lease()).collect();
        assert_eq!(again.len(), 2, "both slots are free");
        for lease in &mut again {
            let index = lease.index() as usize;
            world.holders.hold(index, || lease.bytes_mut().fill(9));
        }
        assert!(world.queue.wait(None).is_none(), "one answer");
        assert_eq!(world.queue.counters().retries, 1);
        again.iter_mut().for_each(|lease| assert_eq!(lease.bytes_mut(), [9; 8]));
        drop(again);
        world.close();
    });
}

/// What is waiting or under way when the reader goes ends, and its slots return.
#[test]
fn closing_waits_for_reads_and_leaves_no_thread_asleep() {
    explore("queue: closed while it reads", 2, || {
        let world = World::new(2, WORKS);
        world.queue.submit([world.request(0, &[4, 5]), world.request(1, &[6])]);
        world.close();
    });
}

/// A read that must be aligned does not fit around a slot of eight bytes: it is staged and copied.
#[test]
fn staged_bytes_arrive_in_their_slots() {
    explore("queue: staged", 2, || {
        let direct = Some(Alignment { memory: 1, offset: 16 });
        let world = World::new(2, Script { direct, ..WORKS });
        world.queue.submit([world.request(0, &[5]), world.request(1, &[7])]);
        for _ in 0..2 {
            let completion = world.queue.wait(None).expect("an answer");
            let number = [5, 7][completion.tag.0 as usize];
            world.accept(completion, &[number]);
        }
        assert_eq!(world.queue.counters().copied_reads, 2);
        world.close();
    });
}
