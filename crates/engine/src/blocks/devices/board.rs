//! The scheduler and the orders it has given that nobody has taken up. Every thread reports here
//! and polls at once, so an event's consequences wait for nobody. Holds no thread; chooses nothing.

use super::buffers::Buffers;
use super::figures::{HybridError, HybridFigures};
use super::units::{CopyOrder, FastOrder, HomeOrder};
use motley_cost::Nanos;
use motley_sched::cache::Routed;
use motley_sched::spans::{Span, SpanKind, Spans};
use motley_sched::{Action, Purpose, Scheduler, Unit};
use motley_trace::ExpertKey;
use std::collections::VecDeque;

/// The home lane: one CPU.
const HOME: Unit = Unit::Home(0);
/// All devices together.
const FAST: Unit = Unit::Tier(0);

/// From when to when something ran.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) begun: Nanos,
    pub(super) ended: Nanos,
}

impl Stretch {
    fn took(self) -> Nanos {
        self.ended.since(self.begun)
    }
}

/// Everything the threads of one executor share.
pub(super) struct Board<J> {
    pub(super) scheduler: Scheduler,
    pub(super) buffers: Buffers,
    /// The block as the fast unit needs it; absent while the unit computes, and between blocks.
    pub(super) job: Option<J>,
    pub(super) fast: Vec<FastOrder>,
    pub(super) home: Vec<HomeOrder>,
    pub(super) copies: VecDeque<CopyOrder>,
    /// Copies asked for before the first layer: the scheduler takes them for granted.
    pub(super) early: VecDeque<CopyOrder>,
    pub(super) fast_runs: bool,
    pub(super) link_runs: bool,
    /// Nothing more of this block is handed out.
    pub(super) given_up: bool,
    pub(super) failed: Option<HybridError>,
    pub(super) closing: bool,
    pub(super) spans: Option<Spans>,
    pub(super) figures: HybridFigures,
    block_ended: Nanos,
}

impl<J> Board<J> {
    pub(super) fn new(scheduler: Scheduler, buffers: Buffers, spans: Option<Spans>) -> Self {
        Self {
            scheduler,
            buffers,
            job: None,
            fast: Vec::new(),
            home: Vec::new(),
            copies: VecDeque::new(),
            early: VecDeque::new(),
            fast_runs: false,
            link_runs: false,
            given_up: false,
            failed: None,
            closing: false,
            spans,
            figures: HybridFigures::default(),
            block_ended: Nanos::ZERO,
        }
    }

    /// Turns everything the scheduler wants done now into orders.
    pub(super) fn carry_out(&mut self, now: Nanos) {
        while !self.given_up
            && let Some(action) = self.scheduler.poll_action(now)
        {
            match action {
                Action::Load { key, share, place, purpose, .. } => {
                    let buffer = self.buffers.begin(place, key, purpose);
                    self.copies.push_back(CopyOrder { key, share, buffer, purpose });
                }
                Action::Compute { key, share, unit: Unit::Tier(_), place, tokens, .. } => {
                    let place = place.expect("the fast unit computes from a place");
                    let buffer = self.buffers.use_at(place, key);
                    self.fast.push(FastOrder { key, share, buffer, tokens });
                }
                Action::Compute { key, share, tokens, enters, .. } => {
                    self.home.push(HomeOrder { key, share, tokens, enters });
                }
                Action::Exchange { staging, slot, .. } => self.buffers.exchange(staging, slot),
                Action::Release { place, .. } => self.buffers.release(place),
            }
        }
    }

    /// A block begins: what has passed since the last one was dense.
    pub(super) fn begin_block(&mut self, routed: &Routed<'_>, now: Nanos) {
        self.given_up = false;
        let loads = (0..routed.experts.len()).map(|index| u64::from(routed.load(index)));
        self.figures.routed_pairs += loads.sum::<u64>();
        let dense = Stretch { begun: self.block_ended, ended: now };
        self.push_span(SpanKind::Dense { layer: routed.layer }, dense);
    }

    /// Why nothing can be computed any more, if so.
    pub(super) fn ended(&self) -> Option<HybridError> {
        self.failed.clone().filter(|failed| matches!(failed, HybridError::ThreadEnded(_)))
    }

    pub(super) fn end_block(&mut self, now: Nanos) {
        self.block_ended = now;
        self.figures.blocks += 1;
    }

    /// The fast unit has computed these.
    pub(super) fn on_fast(&mut self, orders: &[FastOrder], ran: Stretch) {
        self.figures.fast_launches += 1;
        self.figures.fast_busy += ran.took();
        let tokens = |order: &FastOrder| (order.key, order.tokens);
        self.push_computed(FAST, orders.iter().map(tokens), ran);
        for order in orders {
            self.figures.fast_pairs += u64::from(order.tokens);
            self.scheduler.on_computed(ran.ended, order.key, FAST);
        }
    }

    /// The CPU has computed these.
    pub(super) fn on_home(&mut self, orders: &[HomeOrder], ran: Stretch) {
        self.figures.home_busy += ran.took();
        let tokens = |order: &HomeOrder| (order.key, order.tokens);
        self.push_computed(HOME, orders.iter().map(tokens), ran);
        for order in orders {
            self.figures.home_pairs += u64::from(order.tokens);
            self.scheduler.on_computed(ran.ended, order.key, HOME);
        }
    }

    /// A copy has ended.
    pub(super) fn on_copied(&mut self, order: &CopyOrder, ok: bool, ran: Stretch) {
        let CopyOrder { key, purpose, .. } = *order;
        self.figures.link_busy += ran.took();
        match purpose {
            Purpose::Demand => self.figures.demanded_copies += 1,
            Purpose::Guess => self.figures.guessed_copies += 1,
        }
        self.push_span(SpanKind::Load { tier: 0, key, purpose }, ran);
        if let Err(lost) = self.scheduler.on_loaded(ran.ended, 0, key, ok) {
            self.failed.get_or_insert(HybridError::Lost(lost));
        }
    }

    /// Whether anything is under way that will report.
    pub(super) fn is_busy(&self) -> bool {
        self.fast_runs || self.link_runs || !self.fast.is_empty() || !self.copies.is_empty()
    }

    /// Gives the block up; no computation may be running. What was handed out and not begun is
    /// reported as ended, for the scheduler to forget it.
    pub(super) fn abandon(&mut self, now: Nanos) {
        for order in std::mem::take(&mut self.fast) {
            self.scheduler.on_computed(now, order.key, FAST);
        }
        for order in std::mem::take(&mut self.home) {
            self.scheduler.on_computed(now, order.key, HOME);
        }
        self.scheduler.abandon_layer();
        self.given_up = false;
        self.carry_out(now);
    }

    fn push_span(&mut self, kind: SpanKind, ran: Stretch) {
        if let Some(spans) = &mut self.spans {
            spans.push(Span { kind, begins: ran.begun, ends: ran.ended });
        }
    }

    /// Experts computed together are drawn one after another, as long as their tokens weigh.
    fn push_computed(
        &mut self,
        unit: Unit,
        experts: impl Iterator<Item = (ExpertKey, u32)> + Clone,
        ran: Stretch,
    ) {
        if self.spans.is_none() {
            return;
        }
        let all: u64 = experts.clone().map(|(_, tokens)| u64::from(tokens)).sum();
        let (mut begun, mut done) = (ran.begun, 0);
        for (key, tokens) in experts {
            done += u64::from(tokens);
            let part = u128::from(ran.took().0) * u128::from(done) / u128::from(all.max(1));
            let ended = ran.begun + Nanos(part as u64);
            self.push_span(SpanKind::Compute { key, unit, tokens }, Stretch { begun, ended });
            begun = ended;
        }
    }
}
