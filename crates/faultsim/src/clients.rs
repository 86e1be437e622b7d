//! Clients: who asks for what, and what they must be told. How they look at their events is in
//! `listening`, how they are let in in `front`.

use crate::oracle::Expected;
use crate::plan::{ClientPlan, Plan};
use motley_engine::batching::{Ask, Door, Event as Said};
use motley_sched::admission::{Admission, AdmissionLimits, TicketId};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;

/// Everyone who asks.
pub(crate) struct Clients {
    pub(crate) clients: Vec<Client>,
    pub(crate) admission: Admission,
    pub(crate) limits: AdmissionLimits,
    /// `None` before the worker stands and after all have asked.
    pub(crate) door: Option<Door>,
    /// Longest time from handing in to reading the end.
    pub(crate) longest_wait: Duration,
}

/// One of them.
pub(crate) struct Client {
    pub(crate) plan: ClientPlan,
    pub(crate) expected: Expected,
    pub(crate) events: Option<Receiver<Said>>,
    pub(crate) since: Duration,
    pub(crate) text: String,
    pub(crate) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Coming,
    Sending(TicketId),
    Queued(TicketId),
    Preparing(TicketId),
    Waiting,
    Gone,
}

impl Clients {
    pub(crate) fn new(plan: &Plan, expected: Vec<Expected>) -> Self {
        let client = |(plan, expected): (&ClientPlan, Expected)| Client {
            plan: plan.clone(),
            expected,
            events: None,
            since: Duration::ZERO,
            text: String::new(),
            state: State::Coming,
        };
        let clients = plan.clients.iter().zip(expected).map(client).collect();
        let limits = plan.admission;
        let admission = Admission::new(limits);
        Self { clients, admission, limits, door: None, longest_wait: Duration::ZERO }
    }

    /// Those who have not come, or wait.
    pub(crate) fn open(&self) -> usize {
        self.clients.iter().filter(|client| client.state != State::Gone).count()
    }
}

impl Client {
    pub(crate) fn ask(&self) -> Ask {
        Ask {
            client: self.plan.client,
            prompt: self.plan.prompt.as_slice().into(),
            max_tokens: self.plan.max_tokens,
            stop: self.expected.stop.iter().cloned().collect(),
            candidates: self.plan.candidates,
            ignore_end: self.plan.ignore_end,
            ..Ask::default()
        }
    }

    pub(crate) fn go(&mut self) {
        self.events = None;
        self.state = State::Gone;
    }
}
