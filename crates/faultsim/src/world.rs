//! One seed: built, run to its end and judged.

use crate::clients::Clients;
use crate::counts::Counts;
use crate::disk::VirtualDisk;
use crate::events::Events;
use crate::machine::Machine;
use crate::memory::{ExpertMemory, SharedMemory};
use crate::model::FakeModel;
use crate::oracle::Truth;
use crate::plan::Plan;
use motley_engine::batching::{Door, Health, Supervised, Turn, open};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Turns in a row that may neither compute nor read anything.
const EMPTY_TURNS_MAX: u32 = 8;

/// Turns of one run; one that needs more is taken as stuck.
const TURNS_MAX: u32 = 200_000;

/// What a seed came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub seed: u64,
    /// The first rule that was broken.
    pub verdict: Result<(), String>,
    pub counts: Counts,
    pub longest_wait: Duration,
    /// What happened when, if asked for.
    pub trace: Vec<String>,
}

/// Runs one seed.
pub fn run(seed: u64, trace: bool) -> Outcome {
    let world = World::new(seed, trace);
    world.run()
}

struct World {
    plan: Plan,
    events: Rc<RefCell<Events>>,
    /// Until everything it holds is given back.
    worker: Option<Supervised<FakeModel>>,
    door: Door,
    cells: Rc<Cell<u32>>,
}

impl World {
    fn new(seed: u64, trace: bool) -> Self {
        let plan = Plan::of(seed);
        let (disk, layers) = VirtualDisk::new(seed, &plan.experts, plan.faults);
        let truth = Truth::new(&plan.experts, &layers);
        let experts = ExpertMemory::new(&plan.experts, disk, layers).expect("memory for a seed");
        let sharing = plan.options.sharing(plan.keeps_every_position);
        let longest = plan.options.longest(sharing) as usize;
        let expected = plan.clients.iter().map(|client| truth.answer(client, longest)).collect();
        let clients = Clients::new(&plan, expected);
        let experts = SharedMemory::new(experts);
        let events = Events::new(&plan, clients, experts.clone(), trace);
        let events = Rc::new(RefCell::new(events));
        let machine = Machine::new(Rc::clone(&events), experts, &plan.machine);
        let model = FakeModel::new(&plan, sharing, truth, Rc::clone(&events), Box::new(machine));
        let cells = model.alive();
        let clock = Arc::clone(&events.borrow().clock);
        let (door, worker) = open(model, &plan.options, sharing, clock);
        events.borrow_mut().clients.door = Some(door.clone());
        Self { plan, events, worker: Some(worker), door, cells }
    }

    fn run(mut self) -> Outcome {
        self.until_quiet();
        if self.events.borrow().violation.is_none() {
            self.settle();
        }
        let mut events = self.events.borrow_mut();
        let disk = events.experts().disk.violation();
        let memory = events.experts().violation.take();
        disk.into_iter().chain(memory).for_each(|broken| events.broken(|| broken));
        let mut counts = events.counts.clone();
        counts.add(&events.experts().disk.counts());
        let read = events.experts().reader.counters();
        (counts.expert_reads, counts.retries) = (read.requests, read.retries);
        if counts.faults() > 0 {
            counts.answered_right_under_faults = counts.answered_right;
        }
        Outcome {
            seed: self.plan.seed,
            verdict: events.violation.take().map_or(Ok(()), Err),
            counts,
            longest_wait: events.clients.longest_wait,
            trace: events.trace.take().unwrap_or_default(),
        }
    }

    /// Worker and world in turn until nothing happens any more.
    fn until_quiet(&mut self) {
        let mut empty = 0;
        for _ in 0..TURNS_MAX {
            let work = |counts: &Counts| counts.steps + counts.read_segments;
            let before = work(&self.events.borrow().counts);
            let Some(worker) = &mut self.worker else { return };
            let turn = worker.turn();
            let mut events = self.events.borrow_mut();
            let worked = work(&events.counts) > before || turn != Turn::Worked;
            empty = if worked { 0 } else { empty + 1 };
            if empty > EMPTY_TURNS_MAX {
                events
                    .broken(|| "the worker turns without computing or reading anything".to_owned());
            }
            if events.violation.is_some() {
                return;
            }
            match turn {
                Turn::Worked => {
                    let pause = Duration::from_micros(events.rng.u64(..100));
                    events.pass(pause);
                }
                Turn::Idle => {
                    drop(events);
                    self.check_idle();
                    if !self.events.borrow_mut().step() {
                        return;
                    }
                }
                Turn::Ended if !events.step() => return,
                Turn::Ended => {}
            }
        }
        self.events.borrow_mut().broken(|| format!("not done after {TURNS_MAX} turns"));
    }

    /// With nothing to do, cache and ledger agree and nobody is counted as waiting.
    fn check_idle(&self) {
        let planner = self.door.figures().planner;
        let cells = self.cells.get();
        if (planner.cells_used, planner.active, planner.waiting) != (cells, 0, 0) {
            let words =
                format!("idle with {cells} cells in the cache, and the ledger: {planner:?}");
            self.events.borrow_mut().broken(|| words);
        }
    }

    /// In the end everybody has heard theirs, and nothing is held.
    fn settle(&mut self) {
        let mut events = self.events.borrow_mut();
        let open = events.clients.open();
        if open > 0 {
            events.broken(|| format!("{open} clients never heard the end"));
        }
        let dead = matches!(self.door.health(), Health::Dead { .. });
        if dead != (events.counts.panics > 0) {
            let health = self.door.health();
            events.broken(|| format!("the worker is said to be {health:?}"));
        }
        let waiting = self.door.figures().planner.waiting;
        if waiting > 0 {
            events.broken(|| format!("{waiting} are counted as waiting, and nobody is"));
        }
        let admission = &events.clients.admission;
        let held = (admission.waiting(), admission.held_bytes());
        if held != (0, 0) {
            events.broken(|| format!("admission holds {held:?} for nobody"));
        }
        drop(events);
        // A copy on a guess may be under way for ever: nobody asks for its end any more.
        self.worker = None;
        let mut events = self.events.borrow_mut();
        events.experts().drain();
        let closed = events.experts().close();
        if let Err(leak) = closed {
            events.broken(|| leak);
        }
    }
}
