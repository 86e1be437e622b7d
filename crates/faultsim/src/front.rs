//! From a client's first byte to the engine's door: bodies that arrive in their own time, then
//! admission, then preparation. What the server does around `motley_sched::admission`, in
//! virtual time.

use crate::clients::State;
use crate::events::{Event, Events};
use motley_sched::admission::{Refused, TicketId};
use std::time::Duration;

/// Longest a body takes to arrive, in µs.
const SENDING_US_MAX: u64 = 60_000;

/// Longest a request takes to be prepared, in µs.
const PREPARING_US_MAX: u64 = 3_000;

impl Events {
    /// The first bytes of a request are there.
    pub(crate) fn arrives(&mut self, index: usize) {
        self.counts.requests += 1;
        let queued = self.queued();
        let client = &self.clients.clients[index].plan;
        let said = if client.says_length { client.body_bytes } else { 0 };
        match self.clients.admission.enter(said, queued) {
            Ok(ticket) => {
                self.clients.clients[index].state = State::Sending(ticket);
                let leaves = self.clients.clients[index].plan.leaves;
                leaves.into_iter().for_each(|after| self.after(after, Event::Leaves(index)));
                let us = self.rng.u64(..SENDING_US_MAX);
                self.after(Duration::from_micros(us), Event::Sent(index));
            }
            Err(refused) => self.turned_away(index, None, refused),
        }
    }

    /// The body is complete.
    pub(crate) fn sent(&mut self, index: usize) {
        let State::Sending(ticket) = self.clients.clients[index].state else { return };
        let bytes = self.clients.clients[index].plan.body_bytes;
        let queued = self.queued();
        let admission = &mut self.clients.admission;
        let taken = admission.grow(ticket, bytes).and_then(|()| admission.ready(ticket, queued));
        match taken {
            Ok(()) => {
                self.clients.clients[index].state = State::Queued(ticket);
                self.prepare_next();
            }
            Err(refused) => self.turned_away(index, Some(ticket), refused),
        }
    }

    /// The request is ready for the engine.
    pub(crate) fn prepared(&mut self, index: usize) {
        let State::Preparing(ticket) = self.clients.clients[index].state else { return };
        self.hand_in(index);
        self.leaves_admission(ticket);
    }

    /// What a ticket held is free, so others may go on.
    pub(crate) fn leaves_admission(&mut self, ticket: TicketId) {
        self.clients.admission.leave(ticket);
        self.prepare_next();
    }

    /// Everyone who waits asks whether it is their turn, in an order the seed chose.
    fn prepare_next(&mut self) {
        let of = |state| if let State::Queued(ticket) = state { Some(ticket) } else { None };
        let clients = self.clients.clients.iter().enumerate();
        let mut waiting: Vec<_> =
            clients.filter_map(|(index, client)| Some((index, of(client.state)?))).collect();
        self.rng.shuffle(&mut waiting);
        // One that goes on may let another go on that asked before it.
        let mut moved = true;
        while std::mem::take(&mut moved) {
            waiting.retain(|&(index, ticket)| {
                if !self.clients.admission.may_prepare(ticket) {
                    return true;
                }
                self.clients.clients[index].state = State::Preparing(ticket);
                let us = self.rng.u64(..PREPARING_US_MAX);
                self.after(Duration::from_micros(us), Event::Prepared(index));
                moved = true;
                false
            });
        }
    }

    /// Admission refuses: it must have its reason, and nothing stays held.
    fn turned_away(&mut self, index: usize, ticket: Option<TicketId>, refused: Refused) {
        self.counts.refused += 1;
        self.say(|| format!("client {index} is turned away: {refused}"));
        let limits = self.clients.limits;
        let just = match refused {
            Refused::QueueFull { waiting } => waiting >= limits.waiting,
            Refused::BytesFull { held, asked } => held + asked > limits.body_bytes,
        };
        if !just {
            self.broken(|| format!("client {index} was turned away without reason: {refused}"));
        }
        self.clients.clients[index].go();
        ticket.into_iter().for_each(|ticket| self.leaves_admission(ticket));
    }

    /// Requests in the engine's own queue.
    fn queued(&self) -> usize {
        self.clients.door.as_ref().map_or(0, |door| door.figures().planner.waiting)
    }
}
