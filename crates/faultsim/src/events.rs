//! What happens when: one queue, one clock, one seed. Handles no event but the disk's turn; the
//! others belong to `clients` and `blocks`.

use crate::clients::Clients;
use crate::counts::Counts;
use crate::hash::mix;
use crate::memory::{ExpertMemory, SharedMemory};
use crate::plan::Plan;
use motley_engine::blocks::machine::stepped::Lane;
use motley_engine::clock::Clock;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// Times memory changes in one run.
const RESIZES_MAX: u64 = 100;

/// Virtual time.
#[derive(Debug, Default)]
pub(crate) struct VirtualClock(AtomicU64);

impl Clock for VirtualClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Relaxed))
    }
}

/// Something that happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A client begins to send its request.
    Arrives(usize),
    /// It has sent all of it.
    Sent(usize),
    /// It is ready for the engine.
    Prepared(usize),
    /// It looks at its events.
    Looks(usize),
    /// It goes away.
    Leaves(usize),
    /// A read ends.
    ReadEnds(u64),
    /// A unit or a link ends what it is busy with.
    LaneEnds(Lane),
    /// Memory shrinks or grows.
    Resize,
    /// Somebody writes into the model's file.
    FileChanges,
}

/// The world around the worker.
pub(crate) struct Events {
    pub(crate) clock: Arc<VirtualClock>,
    /// By time; those of one moment in an order the seed chose.
    queue: BinaryHeap<Reverse<(Duration, u64, Event)>>,
    pub(crate) rng: fastrand::Rng,
    pub(crate) clients: Clients,
    experts: SharedMemory,
    /// Units and links that ended and were not reported.
    pub(crate) lanes_ended: Vec<Lane>,
    /// Slots to be used from the next block on.
    pub(crate) resize_to: Option<u32>,
    pub(crate) counts: Counts,
    resize_every: Option<Duration>,
    late_per_mille: u16,
    /// What broke a rule, the first.
    pub(crate) violation: Option<String>,
    /// What happened, when somebody wants to read it.
    pub(crate) trace: Option<Vec<String>>,
}

impl Events {
    pub(crate) fn new(plan: &Plan, clients: Clients, experts: SharedMemory, trace: bool) -> Self {
        let mut events = Self {
            clock: Arc::default(),
            queue: BinaryHeap::new(),
            rng: fastrand::Rng::with_seed(mix(plan.seed ^ 0xe7e7)),
            clients,
            experts,
            lanes_ended: Vec::new(),
            resize_to: None,
            counts: Counts::default(),
            resize_every: plan.faults.pressure_every,
            late_per_mille: plan.faults.late,
            violation: None,
            trace: trace.then(Vec::new),
        };
        for (index, client) in plan.clients.iter().enumerate() {
            events.at(client.arrives, Event::Arrives(index));
        }
        let resize = plan.faults.pressure_every.map(|every| (every, Event::Resize));
        let changes = plan.faults.changed_at.map(|at| (at, Event::FileChanges));
        resize.into_iter().chain(changes).for_each(|(at, event)| events.at(at, event));
        events
    }

    /// Expert bytes.
    pub(crate) fn experts(&self) -> MutexGuard<'_, ExpertMemory> {
        self.experts.lock()
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    pub(crate) fn after(&mut self, wait: Duration, event: Event) {
        self.at(self.now() + wait, event);
    }

    fn at(&mut self, time: Duration, event: Event) {
        let order = self.rng.u64(..);
        self.queue.push(Reverse((time, order, event)));
    }

    /// Lets the next event happen; `false` when none is left.
    pub(crate) fn step(&mut self) -> bool {
        let Some(Reverse((time, _, event))) = self.queue.pop() else { return false };
        if time > self.now() {
            self.clock.0.store(time.as_nanos() as u64, Relaxed);
        }
        self.say(|| format!("{event:?}"));
        match event {
            Event::Arrives(index) => self.arrives(index),
            Event::Sent(index) => self.sent(index),
            Event::Prepared(index) => self.prepared(index),
            Event::Looks(index) => self.looks(index),
            Event::Leaves(index) => self.leaves(index),
            Event::ReadEnds(name) => {
                self.experts().reader.end(name);
                self.disk_turn();
            }
            Event::LaneEnds(lane) => self.lanes_ended.push(lane),
            Event::Resize => self.resize(),
            Event::FileChanges => self.experts().disk.change(),
        }
        true
    }

    /// Lets `time` pass with all that happens in it.
    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.now() + time;
        while self.queue.peek().is_some_and(|Reverse((at, _, _))| *at <= until) {
            self.step();
        }
        if self.now() < until {
            self.clock.0.store(until.as_nanos() as u64, Relaxed);
        }
    }

    /// The disk takes up what it may; each read ends when the seed says.
    pub(crate) fn disk_turn(&mut self) {
        loop {
            let Some(name) = self.experts().reader.begin() else { break };
            let late = self.rng.u16(..1000) < self.late_per_mille;
            self.counts.late_reads += u64::from(late);
            let us = if late { self.rng.u64(50_000..2_000_000) } else { self.rng.u64(20..400) };
            self.after(Duration::from_micros(us), Event::ReadEnds(name));
        }
    }

    pub(crate) fn broken(&mut self, what: impl FnOnce() -> String) {
        if self.violation.is_none() {
            let what = what();
            self.say(|| format!("BROKEN: {what}"));
            self.violation = Some(what);
        }
    }

    pub(crate) fn say(&mut self, what: impl FnOnce() -> String) {
        let now = self.now();
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>12.6} {}", now.as_secs_f64(), what()));
        }
    }

    fn resize(&mut self) {
        self.counts.resizes += 1;
        let (least, most) = self.experts().slot_range();
        self.resize_to = Some(self.rng.u32(least..=most));
        // As long as somebody is there to be disturbed, and not forever for those who sleep.
        if let Some(every) = self.resize_every
            && self.clients.open() > 0
            && self.counts.resizes < RESIZES_MAX
        {
            self.after(every, Event::Resize);
        }
    }
}
