//! The scheduler and the orders it has given that nobody has taken up. Every thread reports here
//! and polls at once, so an event's consequences wait for nobody. Holds no thread; chooses nothing.

use super::buffers::Buffers;
use super::figures::{MachineError, MachineFigures};
use super::reads::Reads;
use super::units::{CopyOrder, CpuOrder, DeviceOrder, Disk, Flow, UnitFailed};
use crate::blocks::resident::ResidentExperts;
use motley_cost::Nanos;
use motley_sched::cache::Routed;
use motley_sched::spans::{Span, SpanKind, Spans};
use motley_sched::{Action, Purpose, Scheduler, Unit};
use motley_trace::ExpertKey;
use std::collections::VecDeque;
use std::sync::Arc;

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

/// What one device and its link are to do, and what is in its memory.
pub(super) struct DeviceQueue {
    pub(super) buffers: Buffers,
    pub(super) orders: Vec<DeviceOrder>,
    pub(super) copies: VecDeque<CopyOrder>,
    /// Copies asked for before the first layer: the scheduler takes them for granted.
    pub(super) early: VecDeque<CopyOrder>,
    pub(super) runs: bool,
    pub(super) link_runs: bool,
}

impl DeviceQueue {
    fn new(buffers: Buffers) -> Self {
        Self {
            buffers,
            orders: Vec::new(),
            copies: VecDeque::new(),
            early: VecDeque::new(),
            runs: false,
            link_runs: false,
        }
    }

    fn is_busy(&self) -> bool {
        self.runs || self.link_runs || !self.orders.is_empty() || !self.copies.is_empty()
    }
}

/// Everything the threads of one executor share.
pub(super) struct Board<B, R> {
    pub(super) scheduler: Scheduler,
    /// Tier 0 is filled from it and has the CPU; without it the CPU has every expert.
    pub(super) disk: Option<Box<dyn Disk>>,
    /// The tiers after the disk's.
    pub(super) devices: Vec<DeviceQueue>,
    pub(super) cpu: Vec<CpuOrder>,
    /// The block as devices need it; none between blocks.
    pub(super) block: Option<Arc<B>>,
    /// What devices have computed of it.
    pub(super) rows: Vec<R>,
    /// Nothing more of this block is handed out.
    pub(super) given_up: bool,
    pub(super) failed: Option<MachineError>,
    pub(super) closing: bool,
    pub(super) spans: Option<Spans>,
    pub(super) figures: MachineFigures,
    reads: Reads,
    /// Slots asked for, while more are in use.
    cache_slots: Option<u32>,
    block_ended: Nanos,
}

impl<B, R> Board<B, R> {
    pub(super) fn new(
        scheduler: Scheduler,
        disk: Option<Box<dyn Disk>>,
        (devices, shown): (usize, Vec<Arc<ResidentExperts>>),
        spans: Option<Spans>,
    ) -> Self {
        let first = u16::from(disk.is_some());
        let buffers = |device: usize| {
            let tier = first + device as u16;
            let staging = scheduler.limits(tier).staging_slots;
            let buffers = Buffers::new(scheduler.cache(tier).capacity().total(), staging);
            buffers.shown_in(shown.get(device).cloned())
        };
        let devices = (0..devices).map(|device| DeviceQueue::new(buffers(device)));
        Self {
            devices: devices.collect(),
            scheduler,
            disk,
            cpu: Vec::new(),
            block: None,
            rows: Vec::new(),
            given_up: false,
            failed: None,
            closing: false,
            spans,
            figures: MachineFigures::default(),
            reads: Reads::default(),
            cache_slots: None,
            block_ended: Nanos::ZERO,
        }
    }

    /// The unit that is the CPU: beside what is read from disk, or beside every expert.
    fn cpu_unit(&self) -> Unit {
        if self.disk.is_some() { Unit::Tier(0) } else { Unit::Home(0) }
    }

    /// The tier of a device.
    pub(super) fn tier_of(&self, device: usize) -> u16 {
        device as u16 + u16::from(self.disk.is_some())
    }

    /// The device of a tier; none is memory that is filled from disk.
    fn device_of(&self, tier: u16) -> Option<usize> {
        usize::from(tier).checked_sub(usize::from(self.disk.is_some()))
    }

    /// Turns everything the scheduler wants done now into orders.
    pub(super) fn carry_out(&mut self, now: Nanos) {
        while !self.given_up
            && let Some(action) = self.scheduler.poll_action(now)
        {
            match action {
                Action::Load { tier, key, share, place, purpose } => match self.device_of(tier) {
                    None => self.start_read(now, key, purpose),
                    Some(device) => {
                        let from = self.disk.as_ref().and_then(|disk| disk.bytes(key));
                        let device = &mut self.devices[device];
                        let buffer = device.buffers.begin(place, key, purpose);
                        device.copies.push_back(CopyOrder { key, share, buffer, purpose, from });
                    }
                },
                Action::Compute { key, share, unit, tokens, enters, .. }
                    if unit == self.cpu_unit() =>
                {
                    let bytes = self.disk.as_ref().and_then(|disk| disk.bytes(key));
                    self.cpu.push(CpuOrder { key, share, tokens, enters, bytes });
                }
                Action::Compute { key, share, unit, place, tokens, enters } => {
                    let Unit::Tier(tier) = unit else { continue };
                    let Some(device) = self.device_of(tier) else { continue };
                    let place = place.expect("a device computes from a place");
                    let buffer = self.devices[device].buffers.use_at(place, key);
                    let order = DeviceOrder { key, share, buffer, tokens, enters };
                    self.devices[device].orders.push(order);
                }
                Action::Exchange { tier, staging, slot, .. } => {
                    if let Some(device) = self.device_of(tier) {
                        self.devices[device].buffers.exchange(staging, slot);
                    }
                }
                Action::Release { tier, key, place } => match self.device_of(tier) {
                    Some(device) => self.devices[device].buffers.release(place),
                    None => {
                        if let Some(disk) = &mut self.disk {
                            disk.release(key);
                        }
                    }
                },
            }
        }
    }

    /// A block begins: what has passed since the last one was dense.
    pub(super) fn begin_block(&mut self, routed: &Routed<'_>, now: Nanos) {
        self.given_up = false;
        self.rows.clear();
        self.resize();
        let loads = (0..routed.experts.len()).map(|index| u64::from(routed.load(index)));
        self.figures.routed_pairs += loads.sum::<u64>();
        let dense = Stretch { begun: self.block_ended, ended: now };
        self.push_span(SpanKind::Dense { layer: routed.layer }, dense);
    }

    /// Why nothing can be computed any more, if so.
    pub(super) fn ended(&self) -> Option<MachineError> {
        self.failed.clone().filter(|failed| matches!(failed, MachineError::ThreadEnded(_)))
    }

    pub(super) fn end_block(&mut self, now: Nanos) {
        self.block_ended = now;
        self.block = None;
        self.figures.blocks += 1;
    }

    fn start_read(&mut self, now: Nanos, key: ExpertKey, purpose: Purpose) {
        let Some(disk) = &mut self.disk else { return };
        self.reads.asked(key, purpose, now);
        if let Err(UnitFailed(error)) = disk.load(key, purpose) {
            self.on_read(now, key, Some(error));
        }
    }

    /// Reports every read that has ended.
    pub(super) fn poll_disk(&mut self, now: Nanos) {
        while let Some(landed) = self.disk.as_mut().and_then(|disk| disk.poll()) {
            self.on_read(now, landed.key, landed.error);
        }
    }

    fn on_read(&mut self, now: Nanos, key: ExpertKey, error: Option<String>) {
        if let Some((purpose, begun)) = self.reads.landed(key, now) {
            self.push_span(SpanKind::Load { tier: 0, key, purpose }, Stretch { begun, ended: now });
        }
        if let Err(lost) = self.scheduler.on_loaded(now, 0, key, error.is_none()) {
            let why = error.unwrap_or_else(|| lost.to_string());
            self.failed.get_or_insert(MachineError::Read(why));
        }
    }

    /// A device has computed these.
    pub(super) fn on_device(&mut self, device: usize, orders: &[DeviceOrder], ran: Stretch) {
        let unit = Unit::Tier(self.tier_of(device));
        self.figures.launches += 1;
        self.figures.devices_busy += ran.took();
        let tokens = |order: &DeviceOrder| (order.key, order.tokens);
        self.push_computed(unit, orders.iter().map(tokens), ran);
        for order in orders {
            self.figures.device_pairs += u64::from(order.tokens);
            self.scheduler.on_computed(ran.ended, order.key, unit);
        }
    }

    /// The CPU has computed these: (expert, tokens).
    pub(super) fn on_cpu(&mut self, computed: &[(ExpertKey, u32)], ran: Stretch) {
        let unit = self.cpu_unit();
        self.figures.cpu_busy += ran.took();
        self.push_computed(unit, computed.iter().copied(), ran);
        for &(key, tokens) in computed {
            self.figures.cpu_pairs += u64::from(tokens);
            self.scheduler.on_computed(ran.ended, key, unit);
        }
    }

    /// How a computation came out.
    pub(super) fn on_outcome(&mut self, unit: &'static str, outcome: Result<Flow, UnitFailed>) {
        match outcome {
            Ok(flow) => self.given_up |= flow == Flow::Cancelled,
            Err(reason) => {
                self.failed.get_or_insert(MachineError::Unit { unit, reason });
            }
        }
    }

    /// A copy to a device has ended.
    pub(super) fn on_copied(
        &mut self,
        device: usize,
        (key, purpose): (ExpertKey, Purpose),
        ok: bool,
        ran: Stretch,
    ) {
        let tier = self.tier_of(device);
        self.figures.links_busy += ran.took();
        match purpose {
            Purpose::Demand => self.figures.demanded_copies += 1,
            Purpose::Guess => self.figures.guessed_copies += 1,
        }
        self.push_span(SpanKind::Load { tier, key, purpose }, ran);
        if ok {
            self.devices[device].buffers.arrived(key);
        }
        if let Err(lost) = self.scheduler.on_loaded(ran.ended, tier, key, ok) {
            self.failed.get_or_insert(MachineError::Lost(lost));
        }
    }

    /// Uses `slots` of the memory that is filled from disk for experts that stay (M3). What is held
    /// leaves when a later block begins.
    pub(super) fn set_cache_slots(&mut self, slots: u32) {
        self.cache_slots = Some(slots);
        self.resize();
    }

    fn resize(&mut self) {
        let Some(slots) = self.cache_slots else { return };
        let gone = self.scheduler.set_cache_slots(0, slots);
        let usable = self.scheduler.cache(0).usable();
        if usable <= slots {
            self.cache_slots = None;
        }
        let staging = u32::from(self.scheduler.limits(0).staging_slots);
        if let Some(disk) = &mut self.disk {
            gone.into_iter().for_each(|(key, _)| disk.release(key));
            disk.set_usable(usable + staging);
        }
    }

    /// Sums since the beginning.
    pub(super) fn sums(&self) -> MachineFigures {
        let unused = self.devices.iter().map(|device| device.buffers.unused());
        let (demanded_unused, guessed_unused) = unused
            .fold((0, 0), |(demanded, guessed), unused| {
                (demanded + unused.demanded, guessed + unused.guessed)
            });
        let counts = self.scheduler.counts();
        MachineFigures { counts, demanded_unused, guessed_unused, ..self.figures }
    }

    /// Whether anything is under way that will report.
    pub(super) fn is_busy(&self) -> bool {
        self.reads_are_under_way() || self.devices.iter().any(DeviceQueue::is_busy)
    }

    pub(super) fn reads_are_under_way(&self) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.is_under_way())
    }

    /// Gives the block up; no computation may be running. What was handed out and not begun is
    /// reported as ended, for the scheduler to forget it.
    pub(super) fn abandon(&mut self, now: Nanos) {
        for device in 0..self.devices.len() {
            let unit = Unit::Tier(self.tier_of(device));
            for order in std::mem::take(&mut self.devices[device].orders) {
                self.scheduler.on_computed(now, order.key, unit);
            }
        }
        let unit = self.cpu_unit();
        for order in std::mem::take(&mut self.cpu) {
            self.scheduler.on_computed(now, order.key, unit);
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
