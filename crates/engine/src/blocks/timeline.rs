//! What ran when in a session whose experts are streamed, as spans on the CPU's and the disk's
//! lanes. Records; decides nothing. The hybrid executor records its own.

use crate::blocks::clock::Clock;
use motley_cost::Nanos;
use motley_sched::spans::{Span, SpanKind, Spans};
use motley_sched::{Purpose, Unit};
use motley_trace::ExpertKey;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A recording, shared between an engine and its drive loop.
#[derive(Debug)]
pub(crate) struct Timeline {
    clock: Clock,
    recorded: Mutex<Recorded>,
}

#[derive(Debug, Default)]
struct Recorded {
    spans: Spans,
    /// Reads under way and when each was asked for.
    asked: Vec<(ExpertKey, Purpose, Nanos)>,
    disk_free: Nanos,
    block_ended: Nanos,
}

impl Timeline {
    pub(crate) fn new() -> Self {
        Self { clock: Clock::wall(), recorded: Mutex::default() }
    }

    pub(crate) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// A block begins: what has passed since the last one was dense.
    pub(crate) fn begin_block(&self, layer: u16) {
        let (now, mut recorded) = (self.now(), self.lock());
        let begins = recorded.block_ended;
        recorded.push(SpanKind::Dense { layer }, begins, now);
    }

    pub(crate) fn end_block(&self) {
        self.lock().block_ended = self.now();
    }

    /// A read is asked for.
    pub(crate) fn asked(&self, key: ExpertKey, purpose: Purpose) {
        self.lock().asked.push((key, purpose, self.now()));
    }

    /// Its bytes are there, or it failed. Reads that wait for others begin when those end.
    pub(crate) fn landed(&self, key: ExpertKey) {
        let (now, mut recorded) = (self.now(), self.lock());
        let Some(at) = recorded.asked.iter().position(|(asked, ..)| *asked == key) else { return };
        let (_, purpose, asked) = recorded.asked.swap_remove(at);
        let begins = asked.max(recorded.disk_free);
        recorded.disk_free = now;
        recorded.push(SpanKind::Load { tier: 0, key, purpose }, begins, now);
    }

    /// The CPU has computed these together, since `begun`: drawn one after another.
    pub(crate) fn computed(&self, experts: &[(ExpertKey, u32)], begun: Nanos) {
        let (now, mut recorded) = (self.now(), self.lock());
        let all: u64 = experts.iter().map(|(_, tokens)| u64::from(*tokens)).sum();
        let (mut at, mut done) = (begun, 0);
        for &(key, tokens) in experts {
            done += u64::from(tokens);
            let part = now.since(begun).as_s() * done as f64 / all.max(1) as f64;
            let until = begun + Nanos::from_us(part * 1e6);
            recorded.push(SpanKind::Compute { key, unit: Unit::Tier(0), tokens }, at, until);
            at = until;
        }
    }

    pub(crate) fn take(&self) -> Spans {
        std::mem::take(&mut self.lock().spans)
    }

    fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Recorded {
    fn push(&mut self, kind: SpanKind, begins: Nanos, ends: Nanos) {
        self.spans.push(Span { kind, begins, ends });
    }
}
