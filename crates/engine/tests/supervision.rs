//! What becomes of requests when a step fails, the cache cannot be cut or the worker dies: an
//! error each, never silence, and `health` says so.

use motley_engine::batching::{
    Ask, Compute, ComputeError, ComputeFigures, Door, Event, FAILING_FOR, Health, Reason, Segment,
    SegmentKey, SegmentLimits, Supervised, Turn, open,
};
use motley_engine::clock::Clock;
use motley_engine::{
    BatchOptions, Batching, Engine, EngineOptions, Loading, Runtime, Seam, SubmitError, ThreadSet,
    ThreadSets,
};
use motley_sched::Phase;
use motley_sched::batch::{Sharing, StateId};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;

/// What goes wrong next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Nothing,
    Decode { model_changed: bool },
    Lost,
    Panic,
    Cut,
    EveryCut,
}

/// A model that always says token 1.
struct Monotone {
    trouble: Arc<Mutex<Trouble>>,
    logits: Vec<f32>,
}

impl Compute for Monotone {
    fn decode(&mut self, _: &[motley_ggml::BatchToken], _: Phase) -> Result<(), ComputeError> {
        match *self.trouble.lock().unwrap() {
            Trouble::Decode { model_changed } => Err(ComputeError {
                reason: "no bytes".to_owned(),
                model_changed,
                cache_lost: false,
            }),
            // Until it is cleared.
            Trouble::Lost => Err(ComputeError {
                reason: "thrown".to_owned(),
                model_changed: false,
                cache_lost: true,
            }),
            Trouble::Panic => panic!("a bug"),
            _ => Ok(()),
        }
    }

    fn logits(&self, _: usize) -> Option<&[f32]> {
        Some(&self.logits)
    }

    fn vector(&self, _: i32) -> Option<&[f32]> {
        None
    }

    fn truncate(&mut self, _: i32, position: i32) -> bool {
        match *self.trouble.lock().unwrap() {
            Trouble::Cut => position == 0,
            Trouble::EveryCut => false,
            _ => true,
        }
    }

    fn copy_prefix(&mut self, _: i32, _: i32, _: i32) {}

    fn on_disk(&mut self) -> Option<(SegmentLimits, Vec<Segment>)> {
        None
    }

    fn store(&mut self, _: i32, _: &Segment) -> Option<u64> {
        None
    }

    fn load(&mut self, _: i32, _: &Segment) -> bool {
        false
    }

    fn erase(&mut self, _: SegmentKey) {}

    fn save(&mut self, _: i32, _: StateId) -> bool {
        true
    }

    fn restore(&mut self, _: i32, _: StateId) -> bool {
        true
    }

    fn discard(&mut self, _: StateId) {}

    fn clear(&mut self) {
        *self.trouble.lock().unwrap() = Trouble::Nothing;
    }

    fn vocab_size(&self) -> usize {
        self.logits.len()
    }

    fn is_end(&self, _: i32) -> bool {
        false
    }

    fn token_bytes(&self, _: i32, _: bool) -> Cow<'_, [u8]> {
        Cow::Borrowed(b"x")
    }

    fn figures(&self) -> ComputeFigures {
        ComputeFigures::default()
    }
}

/// A clock that stands still until it is moved.
#[derive(Default)]
struct Still(AtomicU64);

impl Clock for Still {
    fn now(&self) -> Duration {
        Duration::from_secs(self.0.load(Relaxed))
    }
}

struct World {
    door: Door,
    worker: Supervised<Monotone>,
    trouble: Arc<Mutex<Trouble>>,
    clock: Arc<Still>,
}

impl World {
    fn new() -> Self {
        let trouble = Arc::new(Mutex::new(Trouble::Nothing));
        let clock = Arc::new(Still::default());
        let model = Monotone { trouble: Arc::clone(&trouble), logits: vec![0.0, 1.0] };
        let options = BatchOptions { context_tokens: 256, sequences: 2, ..BatchOptions::default() };
        let (door, worker) = open(model, &options, Sharing::Parts, Arc::clone(&clock) as _);
        Self { door, worker, trouble, clock }
    }

    fn trouble(&self, trouble: Trouble) {
        *self.trouble.lock().unwrap() = trouble;
    }

    fn ask(&self, first: i32) -> Receiver<Event> {
        self.door.submit(ask(vec![first; 20], 4)).expect("it is taken")
    }

    fn drain(&mut self) {
        (0..100).find(|_| self.worker.turn() != Turn::Worked).expect("it comes to an end");
    }
}

fn ask(prompt: Vec<i32>, max_tokens: usize) -> Ask {
    Ask { prompt: prompt.into(), max_tokens, ignore_end: true, ..Ask::default() }
}

/// The last event of a request that has ended.
fn end(events: &mut Receiver<Event>) -> Event {
    std::iter::from_fn(|| events.try_recv().ok()).last().expect("an event")
}

fn failed(events: &mut Receiver<Event>, with: &str) {
    match end(events) {
        Event::Failed(reason) => assert!(reason.contains(with), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_panic_ends_every_request_with_an_error_and_refuses_later_ones() {
    let mut world = World::new();
    let mut running: Vec<_> = (0..2).map(|id| world.ask(id)).collect();
    assert_eq!(world.worker.turn(), Turn::Worked);
    let mut queued: Vec<_> = (2..5).map(|id| world.ask(id)).collect();
    world.trouble(Trouble::Panic);
    assert_eq!(world.worker.turn(), Turn::Ended);
    running.iter_mut().chain(&mut queued).for_each(|events| failed(events, "a bug"));
    assert!(matches!(world.door.health(), Health::Dead { reason } if reason.contains("a bug")));
    assert_eq!(world.door.submit(ask(vec![1], 1)).err(), Some(SubmitError::Dead));
    assert_eq!(world.door.figures().planner.waiting, 0);
    assert_eq!(world.worker.turn(), Turn::Ended);
}

#[test]
fn a_failed_step_shows_until_one_succeeds_or_time_has_passed() {
    let mut world = World::new();
    world.trouble(Trouble::Decode { model_changed: false });
    let mut events = world.ask(1);
    world.drain();
    failed(&mut events, "no bytes");
    assert!(matches!(world.door.health(), Health::Failing { .. }));
    world.clock.0.store(FAILING_FOR.as_secs(), Relaxed);
    assert_eq!(world.door.health(), Health::Answering);
    let mut events = world.ask(1);
    world.drain();
    failed(&mut events, "no bytes");
    world.trouble(Trouble::Nothing);
    let mut events = world.ask(1);
    world.drain();
    assert!(matches!(end(&mut events), Event::Done(_)));
    assert_eq!(world.door.health(), Health::Answering);
}

#[test]
fn a_request_whose_time_is_over_is_late_or_has_what_it_said() {
    let mut world = World::new();
    let within = |first: i32, seconds: u64| {
        let deadline = Some(Duration::from_secs(seconds));
        let ask = Ask { deadline, max_tokens: 50, ..ask(vec![first; 20], 4) };
        world.door.submit(ask).expect("it is taken")
    };
    // Two sequences: the third waits.
    let (mut says_some, mut has_time, mut waits) = (within(1, 5), within(2, 500), within(3, 5));
    for _ in 0..4 {
        assert_eq!(world.worker.turn(), Turn::Worked);
    }
    world.clock.0.store(5, Relaxed);
    world.drain();
    let Event::Done(done) = end(&mut says_some) else { panic!("it said something") };
    assert!((1..50).contains(&done.answer_tokens) && done.reason == Reason::Length, "{done:?}");
    assert_eq!(end(&mut waits), Event::Late);
    let Event::Done(done) = end(&mut has_time) else { panic!("it had time") };
    assert_eq!(done.answer_tokens, 50);
    let figures = world.door.figures();
    assert_eq!((figures.late, figures.answered, figures.planner.waiting), (2, 1, 0));
}

#[test]
fn a_changed_model_shows_for_good() {
    let mut world = World::new();
    world.trouble(Trouble::Decode { model_changed: true });
    drop(world.ask(1));
    let _kept = world.ask(2);
    world.drain();
    world.trouble(Trouble::Nothing);
    world.clock.0.store(1000, Relaxed);
    assert!(matches!(world.door.health(), Health::Failing { .. }));
}

/// Both requests begin with what the one before left, so their sequence is cut.
#[test]
fn a_sequence_that_cannot_be_cut_fails_its_request_only() {
    let mut world = World::new();
    let mut first = world.ask(1);
    world.drain();
    assert!(matches!(end(&mut first), Event::Done(_)));
    world.trouble(Trouble::Cut);
    let mut other = world.ask(7);
    let mut again = world.ask(1);
    world.drain();
    failed(&mut again, "could not be cut");
    assert!(matches!(end(&mut other), Event::Done(_)));
    assert_eq!(world.door.figures().failed_cuts, 1);
    let mut last = world.ask(1);
    world.drain();
    assert!(matches!(end(&mut last), Event::Done(_)), "what was dropped is computed anew");
}

#[test]
fn a_cache_that_cannot_be_emptied_fails_all_in_it_and_begins_anew() {
    let mut world = World::new();
    let mut first = world.ask(1);
    world.drain();
    assert!(matches!(end(&mut first), Event::Done(_)));
    world.trouble(Trouble::EveryCut);
    let (mut again, mut beside) = (world.ask(1), world.ask(7));
    assert_eq!(world.worker.turn(), Turn::Worked);
    failed(&mut again, "could not be cut");
    failed(&mut beside, "could not be cut");
    assert!(matches!(world.door.health(), Health::Failing { .. }));
    world.trouble(Trouble::Nothing);
    let mut last = world.ask(1);
    world.drain();
    assert!(matches!(end(&mut last), Event::Done(done) if done.reused_tokens == 0));
    let figures = world.door.figures();
    assert_eq!((figures.failed_cuts, figures.failed, figures.answered), (1, 2, 2));
}

#[test]
fn a_lost_cache_fails_all_in_it_once_and_the_next_are_answered() {
    let mut world = World::new();
    let mut kept = world.ask(1);
    world.drain();
    assert!(matches!(end(&mut kept), Event::Done(_)));
    let (mut one, mut other) = (world.ask(2), world.ask(3));
    assert_eq!(world.worker.turn(), Turn::Worked);
    world.trouble(Trouble::Lost);
    assert_eq!(world.worker.turn(), Turn::Worked);
    failed(&mut one, "thrown");
    failed(&mut other, "thrown");
    let mut next = world.ask(1);
    world.drain();
    assert!(matches!(end(&mut next), Event::Done(done) if done.reused_tokens == 0));
}

#[test]
fn a_model_file_that_changes_under_a_server_shows_in_its_health() {
    let Some(path) = motley_testkit::fixtures::synthetic(motley_testkit::synth::Arch::Qwen3moe)
    else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = folder.path().join("changes.gguf");
    std::fs::copy(&path, &copy).expect("room for a small model");
    let options = EngineOptions {
        loading: Loading::OnDemand,
        repack: false,
        threads: ThreadSets::both(ThreadSet::anywhere(1)),
        ..EngineOptions::default()
    };
    let runtime = Runtime::start(Seam::Registered).expect("the only runtime here");
    let engine = Engine::load(runtime, &copy, &options, &mut |_| true).expect("it loads");
    let shape = BatchOptions { context_tokens: 256, sequences: 1, ..BatchOptions::default() };
    let batching = Batching::start(Arc::new(engine), &shape, None, None).expect("it starts");
    assert_eq!(batching.health(), Health::Answering);
    let file = std::fs::OpenOptions::new().write(true).open(&copy).expect("it is there");
    file.set_len(4096).expect("it can be cut");
    let mut events = batching.submit(ask((5..40).collect(), 4)).expect("it is taken");
    let last = std::iter::from_fn(|| events.blocking_recv()).last();
    assert!(matches!(&last, Some(Event::Failed(reason)) if reason.contains("changed")), "{last:?}");
    assert!(matches!(batching.health(), Health::Failing { reason } if reason.contains("changed")));
}
