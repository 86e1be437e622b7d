//! Holds the decisions of [`motley_engine::admission`] for all connections: a ticket per
//! request, from its first byte to the engine's queue. Decides nothing itself.

use crate::error::ApiError;
use axum::http::StatusCode;
use motley_engine::admission::{Admission, AdmissionLimits, Refused, TicketId};
use motley_model::format_bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// What every request passes before it is read and before it is prepared.
pub(crate) struct Gate {
    admission: Mutex<Admission>,
    /// Someone left, or took a turn: it may be another's now.
    changed: Notify,
}

impl Gate {
    pub(crate) fn new(limits: AdmissionLimits) -> Arc<Self> {
        let admission = Mutex::new(Admission::new(limits));
        Arc::new(Self { admission, changed: Notify::new() })
    }

    /// Lets a request in whose body says to have `bytes` bytes; `queued` wait in the engine.
    pub(crate) fn enter(self: &Arc<Self>, bytes: u64, queued: usize) -> Result<Ticket, ApiError> {
        let id = self.admission().enter(bytes, queued)?;
        Ok(Ticket { gate: Arc::clone(self), id })
    }

    /// Bytes of large bodies held now.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.admission().held_bytes()
    }

    /// Requests that wait to be prepared or are being prepared.
    pub(crate) fn waiting(&self) -> usize {
        self.admission().waiting()
    }

    /// Usable after a panic: [`Admission`] panics nowhere between two changes.
    fn admission(&self) -> MutexGuard<'_, Admission> {
        self.admission.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request's place; given back when dropped.
pub(crate) struct Ticket {
    gate: Arc<Gate>,
    id: TicketId,
}

impl Ticket {
    /// The body has `bytes` bytes by now.
    pub(crate) fn grow(&self, bytes: usize) -> Result<(), ApiError> {
        Ok(self.gate.admission().grow(self.id, bytes as u64)?)
    }

    /// Waits until the request is to be prepared; `queued` wait in the engine.
    pub(crate) async fn turn(&self, queued: usize) -> Result<(), ApiError> {
        self.gate.admission().ready(self.id, queued)?;
        loop {
            // Before the question, so that nothing changes unseen between the two.
            let changed = self.gate.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.gate.admission().may_prepare(self.id) {
                self.gate.changed.notify_waiters();
                return Ok(());
            }
            changed.await;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.gate.admission().leave(self.id);
        self.gate.changed.notify_waiters();
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::QueueFull { .. } => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "queue_full",
                format!("{refused}; try again shortly"),
            ),
            Refused::BytesFull { held, asked } => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "bodies_full",
                format!(
                    "bodies of {} are held already and this one has {}; try again shortly",
                    format_bytes(held),
                    format_bytes(asked)
                ),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_ticket_that_is_dropped_gives_the_next_its_turn() {
        let gate = Gate::new(AdmissionLimits { waiting: 9, body_bytes: 1 << 20, preparers: 1 });
        let first = gate.enter(10, 0).unwrap();
        first.turn(0).await.unwrap();
        let second = gate.enter(1 << 20, 0).unwrap();
        let waits = tokio::time::timeout(Duration::from_millis(20), second.turn(0)).await;
        assert!(waits.is_err(), "one at a time");
        drop(second);
        assert_eq!(gate.held_bytes(), 0, "a client that leaves while it waits holds nothing");
        let third = gate.enter(10, 0).unwrap();
        let waiting = tokio::spawn(async move { third.turn(0).await.map(|()| third) });
        tokio::task::yield_now().await;
        drop(first);
        let third = waiting.await.unwrap().unwrap();
        assert_eq!(gate.waiting(), 1);
        drop(third);
        assert_eq!(gate.waiting(), 0);
    }
}
