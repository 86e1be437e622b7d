//! The engine's drive loop over a machine that a seed chose: a disk, memory with a CPU, and up to
//! four devices. The board and the scheduler are the engine's; units and links end when the seed
//! says, and some fail.

use crate::blocks::ExpertBlocks;
use crate::events::{Event, Events};
use crate::machine_plan::MachinePlan;
use crate::memory::SharedMemory;
use motley_cost::Nanos;
use motley_engine::batching::ComputeError;
use motley_engine::blocks::machine::stepped::{Lane, Progress, Stepped, Work};
use motley_engine::blocks::machine::{CopyOrder, CpuOrder, DeviceOrder, Flow, UnitFailed};
use motley_sched::cache::Routed;
use motley_sched::prefetch::Prediction;
use motley_sched::{Phase, Routing};
use motley_store::FilledExpert;
use motley_trace::ExpertKey;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

/// Things that may happen in one block before it counts as one that never ends.
const STEPS_MAX: u32 = 1_000_000;

/// The executor, and what the memories of devices hold.
pub(crate) struct Machine {
    events: Rc<RefCell<Events>>,
    stepped: Stepped,
    plan: MachinePlan,
    devices: Vec<Vec<Option<Held>>>,
    layers: u16,
    staging: u32,
}

/// Bytes in a buffer of a device.
struct Held {
    key: ExpertKey,
    matrices: Vec<Vec<u8>>,
}

impl Machine {
    pub(crate) fn new(
        events: Rc<RefCell<Events>>,
        memory: SharedMemory,
        plan: &MachinePlan,
    ) -> Self {
        let setup = plan.setup();
        let scheduler = setup.scheduler(&plan.header);
        let buffers = |tier: &motley_sched::TierSetup| {
            (tier.capacity.total() + u32::from(tier.limits.staging_slots)) as usize
        };
        let empty = |tier| (0..buffers(tier)).map(|_| None).collect();
        let devices: Vec<Vec<Option<Held>>> = setup.tiers[1..].iter().map(empty).collect();
        Self {
            stepped: Stepped::new(scheduler, Some(Box::new(memory)), devices.len()),
            events,
            plan: plan.clone(),
            devices,
            layers: plan.header.layers,
            staging: u32::from(setup.first().limits.staging_slots),
        }
    }

    fn now(&self) -> Nanos {
        Nanos(self.events.borrow().now().as_nanos() as u64)
    }

    /// As the engine does, between blocks only.
    fn resize(&mut self) {
        let slots = self.events.borrow_mut().resize_to.take();
        if let Some(slots) = slots {
            self.stepped.set_cache_slots(slots.saturating_sub(self.staging));
        }
    }

    /// Lanes that have something to do begin; each ends when the seed says.
    fn begin(&mut self) {
        let lanes = self.stepped.begin(self.now());
        let mut events = self.events.borrow_mut();
        for lane in lanes {
            let us = events.rng.u64(1..600);
            events.after(Duration::from_micros(us), Event::LaneEnds(lane));
        }
        events.disk_turn();
    }

    /// Reports the lanes that have ended, and shows what they computed.
    fn take_ended(&mut self, show: &mut dyn FnMut(u16, &[&[u8]])) {
        let ended = std::mem::take(&mut self.events.borrow_mut().lanes_ended);
        for lane in ended {
            let outcome = match (lane, self.stepped.work(lane)) {
                (_, Some(Work::Cpu(orders))) => on_cpu(orders, show),
                (Lane::Device(device), Some(Work::Device(orders))) => {
                    on_device(&self.devices[device], orders, show)
                }
                (Lane::Link(device), Some(Work::Copy(order))) => {
                    copy(&mut self.devices[device], order)
                }
                _ => Ok(Flow::Done),
            };
            let outcome = outcome.and_then(|flow| self.fault(lane, flow));
            let now = self.now();
            self.stepped.end(now, lane, outcome);
        }
        let now = self.now();
        self.stepped.poll_disk(now);
        self.events.borrow_mut().disk_turn();
    }

    /// Copies and launches fail as often as planned. A copy that fails ends nothing: the expert is
    /// computed where it is.
    fn fault(&mut self, lane: Lane, flow: Flow) -> Result<Flow, UnitFailed> {
        let mut events = self.events.borrow_mut();
        let drawn = events.rng.u16(..1000);
        match lane {
            Lane::Link(_) if drawn < self.plan.copy_fails => {
                events.counts.failed_copies += 1;
                Err(UnitFailed("injected".into()))
            }
            Lane::Device(_) if drawn < self.plan.launch_fails => {
                events.counts.failed_launches += 1;
                Err(UnitFailed("injected".into()))
            }
            _ => Ok(flow),
        }
    }

    /// What computes ends first, then the block is given up.
    fn give_up(&mut self, reason: String) -> ComputeError {
        while self.computes() && self.events.borrow_mut().step() {
            self.take_ended(&mut |_, _| {});
        }
        let now = self.now();
        self.stepped.give_up(now);
        let model_changed = self.events.borrow().experts().changed;
        ComputeError { reason, model_changed, cache_lost: false }
    }

    fn computes(&self) -> bool {
        let devices = (0..self.devices.len()).map(Lane::Device);
        let mut lanes = devices.chain([Lane::Cpu]);
        lanes.any(|lane| self.stepped.work(lane).is_some())
    }

    fn broken(&mut self, what: &str) -> ComputeError {
        self.events.borrow_mut().broken(|| what.to_owned());
        ComputeError { reason: what.to_owned(), model_changed: false, cache_lost: false }
    }

    /// Sometimes some experts of the next layer, right or wrong.
    fn predictions(&mut self, layer: u16) -> Vec<Prediction> {
        let mut events = self.events.borrow_mut();
        if events.rng.u16(..1000) >= self.plan.guesses_per_mille {
            return Vec::new();
        }
        let (experts, count) = (self.plan.header.experts, usize::from(self.plan.header.k));
        let chosen = events.rng.choose_multiple(0..experts, count.min(usize::from(experts)));
        let loads = chosen.into_iter().map(|expert| (expert, 1)).collect();
        vec![Prediction { layer: (layer + 1) % self.layers, loads }]
    }
}

impl ExpertBlocks for Machine {
    fn run(
        &mut self,
        layer: u16,
        experts: &BTreeSet<u16>,
        show: &mut dyn FnMut(u16, &[&[u8]]),
    ) -> Result<(), ComputeError> {
        // What ended between blocks: copies and reads on guesses.
        self.take_ended(&mut |_, _| {});
        self.resize();
        let experts: Vec<u16> = experts.iter().copied().collect();
        let predictions = self.predictions(layer);
        let routed = Routed { layer, tokens: 1, experts: &experts, ..Routed::default() };
        let routing = Routing { routed, phase: Phase::Decode, predictions: &predictions };
        let now = self.now();
        self.stepped.begin_block(now, &routing);
        for _ in 0..STEPS_MAX {
            self.begin();
            match self.stepped.progress() {
                Progress::Done => return Ok(()),
                Progress::GivesUp(error) => {
                    let reason = error.map_or_else(String::new, |error| error.to_string());
                    return Err(self.give_up(reason));
                }
                Progress::Stuck => return Err(self.broken("the scheduler waits for nothing")),
                Progress::Busy => {}
            }
            if !self.events.borrow_mut().step() {
                return Err(self.broken("waits for what never ends"));
            }
            self.take_ended(show);
        }
        Err(self.broken("a block that never ends"))
    }
}

fn slices(filled: &FilledExpert) -> Vec<&[u8]> {
    filled.iter().map(|(_, _, slot)| slot.bytes()).collect()
}

fn on_cpu(orders: &[CpuOrder], show: &mut dyn FnMut(u16, &[&[u8]])) -> Result<Flow, UnitFailed> {
    for order in orders {
        let bytes = order.bytes.as_ref().ok_or_else(|| UnitFailed("without bytes".into()))?;
        show(order.key.expert, &slices(bytes));
    }
    Ok(Flow::Done)
}

/// A device computes what its buffers hold now, whatever was meant to be there.
fn on_device(
    held: &[Option<Held>],
    orders: &[DeviceOrder],
    show: &mut dyn FnMut(u16, &[&[u8]]),
) -> Result<Flow, UnitFailed> {
    for order in orders {
        let held = held[order.buffer as usize].as_ref().filter(|held| held.key == order.key);
        let matrices = held.map_or(&[][..], |held| &held.matrices);
        show(order.key.expert, &matrices.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
    Ok(Flow::Done)
}

fn copy(held: &mut [Option<Held>], order: &CopyOrder) -> Result<Flow, UnitFailed> {
    let from = order.from.as_ref().ok_or_else(|| UnitFailed("nothing to copy".into()))?;
    let matrices = slices(from).into_iter().map(<[u8]>::to_vec).collect();
    held[order.buffer as usize] = Some(Held { key: order.key, matrices });
    Ok(Flow::Done)
}
