//! The virtual driver: routing in, the scheduler's actions carried out in simulated time.
//! It starts what it is asked to and reports back when it would have ended; it chooses nothing.
//! The engine has a sibling of this file that does the same in real time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use motley_cost::Nanos;
use motley_sched::cache::RoutedBuffer;
use motley_sched::spans::{Span, SpanKind, Spans};
use motley_sched::{Action, LoadLost, MAX_TIERS, Phase, RoutedPairs, Routing, Scheduler, Unit};
use motley_trace::{ExpertKey, TraceError, Visit, VisitSource};

use crate::hosts::{Away, Hosts};
use crate::outcome::{Outcome, PassOutcome};
use crate::predictions::Predictor;
use crate::world::{ComputeWork, World};

/// Why a drive ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriveError {
    /// The routing could not be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Pairs are to be left out by weights that nobody recorded.
    #[error(
        "--skip-cold: layer {layer} of pass {pass} has no weights of its experts; import a trace that \
         has them, or simulate made routing"
    )]
    NoWeights { pass: u64, layer: u16 },
    /// An expert was lost for good.
    #[error(transparent)]
    Lost(#[from] LoadLost),
    /// The scheduler waits for nothing and is not done: a strategy's bug.
    #[error("deadlock in layer {layer} of pass {pass} at {now}: a bug, please report")]
    Deadlock { pass: u64, layer: u16, now: Nanos },
}

/// Something that will have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Loaded { tier: u16, key: ExpertKey, ok: bool },
    Computed { key: ExpertKey, unit: Unit },
}

/// Drives `scheduler` through everything `source` yields.
pub fn drive(
    source: &mut dyn VisitSource,
    scheduler: &mut Scheduler,
    world: &mut World,
    spans: Option<&mut Spans>,
) -> Result<Outcome, DriveError> {
    let mut buffer = RoutedBuffer::new(source.header());
    let mut predictor = Predictor::new(world.predictions, source.header().experts);
    let mut driver = Driver {
        scheduler,
        world,
        spans,
        now: Nanos::ZERO,
        links_free: [Nanos::ZERO; MAX_TIERS],
        events: BinaryHeap::new(),
        sequence: 0,
        left_out: Vec::new(),
        outcome: Outcome::default(),
    };
    let mut pass = Vec::new();
    let mut next = Visit::default();
    let mut more = source.read_visit(&mut next)?;
    while more {
        pass.clear();
        let number = next.pass;
        while more && next.pass == number {
            pass.push(std::mem::take(&mut next));
            more = source.read_visit(&mut next)?;
        }
        driver.run_pass(&mut pass, &mut buffer, &mut predictor)?;
    }
    Ok(driver.finish())
}

struct Driver<'a> {
    scheduler: &'a mut Scheduler,
    world: &'a mut World,
    spans: Option<&'a mut Spans>,
    now: Nanos,
    /// When each tier's link is free.
    links_free: [Nanos; MAX_TIERS],
    /// By time, then by order of start: ties end in the order they began.
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    sequence: u64,
    /// Scratch: pairs of one layer.
    left_out: Vec<bool>,
    outcome: Outcome,
}

impl Driver<'_> {
    fn run_pass(
        &mut self,
        pass: &mut [Visit],
        buffer: &mut RoutedBuffer,
        predictor: &mut Predictor,
    ) -> Result<(), DriveError> {
        let (begun, tokens) = (self.now, pass.first().map_or(0, |visit| visit.tokens() as u32));
        let away = self.send_out(pass);
        predictor.predict_pass(pass);
        self.world.enter(pass.first().map_or(Phase::Decode, |visit| visit.phase));
        for (at, visit) in pass.iter_mut().enumerate() {
            self.run_dense(visit)?;
            let routed_at = self.now;
            self.leave_out(visit)?;
            let routing = Routing {
                routed: buffer.fill(visit),
                phase: visit.phase,
                predictions: predictor.predictions(at),
            };
            self.scheduler.on_routed(self.now, &routing);
            self.carry_out();
            while !self.scheduler.layer_is_done() {
                self.step(visit)?;
            }
            if let Some(away) = away.get(at).copied().flatten() {
                self.wait_for(routed_at, away, visit)?;
            }
        }
        self.now += self.world.dense().after_pass(tokens);
        if let Some(first) = pass.first() {
            let (pass, phase, time) = (first.pass, first.phase, self.now - begun);
            self.outcome.on_pass(PassOutcome { pass, phase, tokens, time });
        }
        Ok(())
    }

    /// Takes from a layer the pairs that are left out.
    fn leave_out(&mut self, visit: &mut Visit) -> Result<(), DriveError> {
        if !self.scheduler.may_leave_out() {
            return Ok(());
        }
        let Visit { pass, layer, .. } = *visit;
        if visit.weights.len() != visit.experts.len() {
            return Err(DriveError::NoWeights { pass, layer });
        }
        let slots = visit.experts.len() / visit.tokens().max(1);
        let pairs = RoutedPairs { layer, slots, experts: &visit.experts, weights: &visit.weights };
        let sum = self.scheduler.leave_out(self.now, &pairs, &mut self.left_out);
        self.outcome.weighed_pairs += visit.experts.len() as u64;
        self.outcome.left_out.add(sum);
        if sum.pairs > 0 {
            let mut left_out = self.left_out.iter();
            visit.experts.retain(|_| left_out.next() != Some(&true));
            let mut left_out = self.left_out.iter();
            visit.weights.retain(|_| left_out.next() != Some(&true));
        }
        Ok(())
    }

    /// Takes from every layer what other hosts compute.
    fn send_out(&mut self, pass: &mut [Visit]) -> Vec<Option<Away>> {
        let Some(hosts) = &mut self.world.hosts else { return Vec::new() };
        pass.iter_mut().map(|visit| hosts.take(visit)).collect()
    }

    /// Until the last host has answered, counted from `asked_at`; links may work meanwhile.
    fn wait_for(&mut self, asked_at: Nanos, away: Away, visit: &Visit) -> Result<(), DriveError> {
        let until = asked_at + away.took;
        if let Some(hosts) = &mut self.world.hosts {
            hosts.on_waited(away.last, until.since(self.now));
        }
        self.work_until(until, visit)
    }

    /// Attention and all that is not routed: links may work meanwhile.
    fn run_dense(&mut self, visit: &Visit) -> Result<(), DriveError> {
        let took = self.world.dense().before_layer(visit.tokens() as u32);
        let until = self.now + took;
        self.span(SpanKind::Dense { layer: visit.layer }, self.now, until);
        self.outcome.dense_busy += took;
        self.work_until(until, visit)
    }

    /// What was started goes on until then.
    fn work_until(&mut self, until: Nanos, visit: &Visit) -> Result<(), DriveError> {
        while self.events.peek().is_some_and(|Reverse((at, _, _))| *at <= until) {
            self.step(visit)?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    /// Goes to the next event, reports it and carries out what follows.
    fn step(&mut self, visit: &Visit) -> Result<(), DriveError> {
        let Some(Reverse((at, _, event))) = self.events.pop() else {
            let (pass, layer, now) = (visit.pass, visit.layer, self.now);
            return Err(DriveError::Deadlock { pass, layer, now });
        };
        self.now = self.now.max(at);
        match event {
            Event::Loaded { tier, key, ok } => self.scheduler.on_loaded(self.now, tier, key, ok)?,
            Event::Computed { key, unit } => self.scheduler.on_computed(self.now, key, unit),
        }
        self.carry_out();
        Ok(())
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.scheduler.poll_action(self.now) {
            match action {
                Action::Load { tier, key, share, purpose, .. } => {
                    let load = self.world.load(tier, share);
                    let link_free = &mut self.links_free[usize::from(tier)];
                    let begins = self.now.max(*link_free);
                    let ends = begins + load.took;
                    *link_free = ends;
                    self.outcome.on_load(tier, purpose, load.took);
                    self.span(SpanKind::Load { tier, key, purpose }, begins, ends);
                    self.schedule(ends, Event::Loaded { tier, key, ok: load.ok });
                }
                Action::Compute { key, share, unit, tokens, enters, .. } => {
                    let took = self.world.compute(ComputeWork { unit, tokens, share, enters });
                    self.outcome.on_compute(unit, took);
                    self.span(SpanKind::Compute { key, unit, tokens }, self.now, self.now + took);
                    self.schedule(self.now + took, Event::Computed { key, unit });
                }
                // Buffers change roles at no cost.
                Action::Exchange { .. } | Action::Release { .. } => {}
            }
        }
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn span(&mut self, kind: SpanKind, begins: Nanos, ends: Nanos) {
        if let Some(spans) = &mut self.spans {
            spans.push(Span { kind, begins, ends });
        }
    }

    fn finish(mut self) -> Outcome {
        self.outcome.wall = self.now;
        self.outcome.counts = self.scheduler.counts();
        self.outcome.hosts = self.world.hosts.as_ref().map_or(Vec::new(), Hosts::outcomes);
        self.outcome
    }
}
