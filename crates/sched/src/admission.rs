//! Which requests may be read and prepared now: bounds on those that wait, on the bytes of
//! their bodies together and on how many are prepared at once. Decides only: no clock, no
//! thread; a door asks before it reads and before it prepares.
//!
//! ```text
//!  enter ──► reading ──ready──► waiting ──may_prepare──► preparing ──► leave
//!    │          │ grow             │ first come, first served; large bodies
//!    ▼          ▼                  ▼ leave half of the preparers to small ones
//!          Refused: the queue is full, or too many bytes are held
//! ```
//!
//! * Reading costs nothing but bytes: whoever sends a body slowly holds no place in the queue.
//! * Bodies up to [`SMALL_BODY_BYTES`] are not counted: the door's bound on connections bounds
//!   them already, so large bodies cannot shut small ones out.

use std::collections::{BTreeMap, VecDeque};

/// Bodies up to this size are small: not counted, and never behind large ones only.
pub const SMALL_BODY_BYTES: u64 = 64 << 10;

/// What may be held at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// Requests whose body is complete and that the engine has not begun, those in its own
    /// queue included.
    pub waiting: usize,
    /// Bytes of all large bodies together.
    pub body_bytes: u64,
    /// Requests prepared at once; at least one.
    pub preparers: usize,
}

/// Why a request may not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// As many wait already as may.
    #[error("{waiting} requests are waiting already")]
    QueueFull { waiting: usize },
    /// Other large bodies take up the room for them.
    #[error("{held} bytes of other requests are held already, and {asked} more are too many")]
    BytesFull { held: u64, asked: u64 },
}

/// Names a request between [`Admission::enter`] and [`Admission::leave`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TicketId(u64);

/// Requests from their first byte to the engine's queue.
#[derive(Debug, Clone)]
pub struct Admission {
    limits: AdmissionLimits,
    tickets: BTreeMap<TicketId, Ticket>,
    /// Tickets that wait for a preparer, oldest first.
    queue: VecDeque<TicketId>,
    next: u64,
    held_bytes: u64,
    preparing: usize,
    preparing_large: usize,
}

#[derive(Debug, Clone, Copy)]
struct Ticket {
    bytes: u64,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Reading,
    Waiting,
    Preparing,
}

impl Ticket {
    fn is_large(&self) -> bool {
        self.bytes > SMALL_BODY_BYTES
    }
}

impl Admission {
    /// Nothing is held yet.
    pub fn new(limits: AdmissionLimits) -> Self {
        Self {
            limits: AdmissionLimits { preparers: limits.preparers.max(1), ..limits },
            tickets: BTreeMap::new(),
            queue: VecDeque::new(),
            next: 0,
            held_bytes: 0,
            preparing: 0,
            preparing_large: 0,
        }
    }

    /// A request arrives whose body says to have `bytes` bytes (0: unknown, it grows).
    /// `queued` requests wait in the engine.
    pub fn enter(&mut self, bytes: u64, queued: usize) -> Result<TicketId, Refused> {
        self.check_queue(queued)?;
        let id = TicketId(self.next);
        self.next += 1;
        self.tickets.insert(id, Ticket { bytes: 0, stage: Stage::Reading });
        self.grow(id, bytes).inspect_err(|_| self.leave(id))?;
        Ok(id)
    }

    /// The body has `bytes` bytes by now. When refused the request keeps what it had, and is
    /// to leave.
    pub fn grow(&mut self, id: TicketId, bytes: u64) -> Result<(), Refused> {
        let Some(ticket) = self.tickets.get_mut(&id) else { return Ok(()) };
        let grown = Ticket { bytes: bytes.max(ticket.bytes), ..*ticket };
        let others = self.held_bytes - counted(ticket);
        let asked = counted(&grown);
        if asked > 0 && others.saturating_add(asked) > self.limits.body_bytes {
            return Err(Refused::BytesFull { held: others, asked });
        }
        self.held_bytes = others + asked;
        *ticket = grown;
        Ok(())
    }

    /// The body is complete: the request waits for its turn. `queued` requests wait in the
    /// engine.
    pub fn ready(&mut self, id: TicketId, queued: usize) -> Result<(), Refused> {
        self.check_queue(queued)?;
        if let Some(ticket) = self.tickets.get_mut(&id)
            && ticket.stage == Stage::Reading
        {
            ticket.stage = Stage::Waiting;
            self.queue.push_back(id);
        }
        Ok(())
    }

    /// Whether the request is to be prepared now; from then on it is being prepared. To be
    /// asked again whenever another leaves.
    pub fn may_prepare(&mut self, id: TicketId) -> bool {
        if self.next_in_turn() != Some(id) {
            return false;
        }
        self.queue.retain(|&waiting| waiting != id);
        if let Some(ticket) = self.tickets.get_mut(&id) {
            ticket.stage = Stage::Preparing;
            self.preparing += 1;
            self.preparing_large += usize::from(ticket.is_large());
        }
        true
    }

    /// The request is in the engine's queue, or given up: all it held is free.
    pub fn leave(&mut self, id: TicketId) {
        let Some(ticket) = self.tickets.remove(&id) else { return };
        self.held_bytes -= counted(&ticket);
        match ticket.stage {
            Stage::Reading => {}
            Stage::Waiting => self.queue.retain(|&waiting| waiting != id),
            Stage::Preparing => {
                self.preparing -= 1;
                self.preparing_large -= usize::from(ticket.is_large());
            }
        }
    }

    /// Bytes of large bodies held now.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Requests that wait for a preparer or have one.
    pub fn waiting(&self) -> usize {
        self.queue.len() + self.preparing
    }

    /// The oldest that may be prepared: a large one only while half of the preparers are left
    /// to small ones.
    fn next_in_turn(&self) -> Option<TicketId> {
        if self.preparing >= self.limits.preparers {
            return None;
        }
        let most_large = (self.limits.preparers / 2).max(1);
        let large_may = self.preparing_large < most_large;
        let may = |id: &TicketId| large_may || !self.tickets[id].is_large();
        self.queue.iter().copied().find(may)
    }

    fn check_queue(&self, queued: usize) -> Result<(), Refused> {
        let waiting = self.waiting().saturating_add(queued);
        if waiting >= self.limits.waiting {
            return Err(Refused::QueueFull { waiting });
        }
        Ok(())
    }
}

fn counted(ticket: &Ticket) -> u64 {
    if ticket.is_large() { ticket.bytes } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: u64 = 4 << 20;

    fn admission(waiting: usize, preparers: usize) -> Admission {
        Admission::new(AdmissionLimits { waiting, body_bytes: 3 * LARGE, preparers })
    }

    fn ready(admission: &mut Admission, bytes: u64) -> TicketId {
        let id = admission.enter(bytes, 0).unwrap();
        admission.ready(id, 0).unwrap();
        id
    }

    #[test]
    fn large_bodies_fill_their_room_and_small_ones_pass() {
        let mut admission = admission(100, 2);
        let held: Vec<_> = (0..3).map(|_| admission.enter(LARGE, 0).unwrap()).collect();
        let full = Refused::BytesFull { held: 3 * LARGE, asked: LARGE };
        assert_eq!(admission.enter(LARGE, 0), Err(full));
        assert!(admission.enter(SMALL_BODY_BYTES, 0).is_ok());
        admission.leave(held[0]);
        assert!(admission.enter(LARGE, 0).is_ok());
        assert_eq!(admission.held_bytes(), 3 * LARGE);
    }

    #[test]
    fn a_body_of_unknown_length_is_counted_as_it_grows() {
        let mut admission = admission(100, 2);
        let id = admission.enter(0, 0).unwrap();
        admission.grow(id, SMALL_BODY_BYTES).unwrap();
        assert_eq!(admission.held_bytes(), 0);
        admission.grow(id, LARGE).unwrap();
        assert_eq!(admission.held_bytes(), LARGE);
        assert!(admission.grow(id, 3 * LARGE + 1).is_err());
        assert!(admission.grow(id, u64::MAX).is_err());
        assert_eq!(admission.held_bytes(), LARGE, "a refused one keeps what it had");
        admission.leave(id);
        assert_eq!(admission.held_bytes(), 0);
    }

    #[test]
    fn slow_senders_hold_no_place_in_the_queue() {
        let mut admission = admission(2, 1);
        let slow: Vec<_> = (0..50).map(|_| admission.enter(10, 0).unwrap()).collect();
        let first = ready(&mut admission, 10);
        assert!(admission.may_prepare(first));
        assert!(admission.ready(slow[0], 0).is_ok());
        let full = Refused::QueueFull { waiting: 2 };
        assert_eq!(admission.ready(slow[1], 0), Err(full));
        assert_eq!(admission.enter(10, 0), Err(full), "before its body is read");
        admission.leave(first);
        assert_eq!(admission.ready(slow[1], 1), Err(full), "the engine's queue counts as well");
        assert!(admission.ready(slow[1], 0).is_ok());
    }

    #[test]
    fn the_oldest_is_prepared_first() {
        let mut admission = admission(100, 1);
        let [first, second, third] = [0; 3].map(|_| ready(&mut admission, 10));
        assert!(!admission.may_prepare(second));
        assert!(admission.may_prepare(first));
        assert!(!admission.may_prepare(second), "one at a time");
        admission.leave(first);
        admission.leave(second);
        assert!(admission.may_prepare(third), "one that leaves the queue holds nobody up");
    }

    #[test]
    fn a_body_that_grows_counts_once_and_bodies_may_fill_the_room() {
        let mut admission = admission(100, 2);
        let growing = admission.enter(LARGE, 0).unwrap();
        admission.grow(growing, 2 * LARGE).unwrap();
        assert_eq!(admission.held_bytes(), 2 * LARGE);
        admission.enter(LARGE, 0).unwrap();
        let refused = Refused::BytesFull { held: 3 * LARGE, asked: LARGE };
        assert_eq!(admission.enter(LARGE, 0), Err(refused));
    }

    #[test]
    fn large_bodies_leave_half_of_the_preparers_to_small_ones() {
        let mut admission = admission(100, 2);
        let [large, next] = [0; 2].map(|_| ready(&mut admission, LARGE));
        let small = ready(&mut admission, 10);
        assert!(admission.may_prepare(large));
        assert!(!admission.may_prepare(next));
        assert!(admission.may_prepare(small));
        admission.leave(small);
        assert!(!admission.may_prepare(next), "still one large is being prepared");
        admission.leave(large);
        assert!(admission.may_prepare(next));
    }

    #[test]
    fn of_four_preparers_two_are_for_large_bodies() {
        let mut admission = admission(100, 4);
        let large = [0; 3].map(|_| ready(&mut admission, LARGE));
        assert_eq!(large.map(|id| admission.may_prepare(id)), [true, true, false]);
    }

    #[test]
    fn with_one_preparer_large_bodies_get_their_turn() {
        let mut admission = admission(100, 0);
        let large = ready(&mut admission, LARGE);
        assert!(admission.may_prepare(large));
    }

    proptest::proptest! {
        /// Whatever happens in whatever order: no bound is exceeded, and when all have left
        /// nothing is held.
        #[test]
        fn bounds_hold_and_nothing_leaks(events in proptest::collection::vec((0_u8..4, 0_u64..12, 0_usize..9), 0..300)) {
            let limits = AdmissionLimits { waiting: 5, body_bytes: 3 * LARGE, preparers: 2 };
            let mut admission = Admission::new(limits);
            let mut ids = Vec::new();
            for (what, size, which) in events {
                let id = ids.get(which % ids.len().max(1)).copied();
                match (what, id) {
                    (0, _) => ids.extend(admission.enter(size * (LARGE / 4), which / 4)),
                    (1, Some(id)) => drop(admission.ready(id, which / 4)),
                    (2, Some(id)) => drop(admission.may_prepare(id)),
                    (_, Some(id)) => {
                        admission.leave(id);
                        ids.retain(|&other| other != id);
                    }
                    (_, None) => {}
                }
                assert!(admission.held_bytes() <= limits.body_bytes);
                assert!(admission.waiting() <= limits.waiting);
                assert!(admission.preparing <= limits.preparers && admission.preparing_large <= 1);
            }
            for id in ids {
                admission.leave(id);
            }
            assert_eq!((admission.held_bytes(), admission.waiting(), admission.tickets.len()), (0, 0, 0));
        }
    }
}
