//! Models that share memory, under every order of requests: none is unloaded in use, none is put
//! where there is no room, and everybody gets the model they asked for.

use std::time::Duration;

use motley_sched::models::{Claim, ClaimState, KeepAlive, ModelSet, ModelState, Step};
use proptest::prelude::*;

const IDLE: KeepAlive = KeepAlive::For(Duration::from_secs(600));

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Three models of 6, 5 and 3 bytes on 10.
fn three() -> ModelSet {
    ModelSet::new(vec![10], vec![vec![6], vec![5], vec![3]], IDLE)
}

/// Carries out all there is to do; what it was.
fn settle(set: &mut ModelSet, now: Duration) -> Vec<Step> {
    let mut steps = Vec::new();
    while let Some(step) = set.next_step(now) {
        steps.push(step);
        carry_out(set, step, now);
    }
    steps
}

fn carry_out(set: &mut ModelSet, step: Step, now: Duration) {
    match step {
        Step::Load(model) => set.loaded(model, now),
        Step::Unload(model) => set.unloaded(model),
    }
}

#[test]
fn what_fits_stays_and_the_one_used_longest_ago_makes_room() {
    let mut set = three();
    let first = set.claim(0);
    assert_eq!(set.state_of(first), ClaimState::Waiting);
    assert_eq!(settle(&mut set, seconds(0)), [Step::Load(0)]);
    assert_eq!(set.state_of(first), ClaimState::Ready);
    set.release(first, None, seconds(1));
    let third = set.claim(2);
    assert_eq!(settle(&mut set, seconds(2)), [Step::Load(2)], "beside it");
    set.release(third, None, seconds(3));
    let second = set.claim(1);
    assert_eq!(settle(&mut set, seconds(4)), [Step::Unload(0), Step::Load(1)]);
    assert_eq!(set.memories(), [(10, 8)]);
    assert_eq!(set.state_of(second), ClaimState::Ready);
}

#[test]
fn a_model_in_use_makes_room_when_its_requests_are_answered_and_takes_no_new_ones() {
    let mut set = three();
    let first = set.claim(0);
    settle(&mut set, seconds(0));
    let second = set.claim(1);
    assert_eq!(settle(&mut set, seconds(1)), []);
    assert_eq!((set.state(0), set.requests(0)), (ModelState::Leaving, (1, 0)));
    let late = set.claim(0);
    assert_eq!(set.state_of(late), ClaimState::Waiting, "behind the other model");
    set.release(first, None, seconds(2));
    assert_eq!(settle(&mut set, seconds(2)), [Step::Unload(0), Step::Load(1)]);
    assert_eq!(set.state_of(second), ClaimState::Ready, "used before it goes in its turn");
    set.release(second, None, seconds(3));
    assert_eq!(settle(&mut set, seconds(3)), [Step::Unload(1), Step::Load(0)]);
    assert_eq!(set.state_of(late), ClaimState::Ready);
}

#[test]
fn idle_models_go_in_time_and_each_request_may_say_when() {
    let mut set = three();
    let claims = [0, 2].map(|model| set.claim(model));
    settle(&mut set, seconds(0));
    assert_eq!(set.wakes_at(), None, "both are in use");
    set.release(claims[0], None, seconds(100));
    set.release(claims[1], Some(KeepAlive::For(seconds(5))), seconds(100));
    assert_eq!(set.wakes_at(), Some(seconds(105)));
    assert_eq!(settle(&mut set, seconds(104)), []);
    assert_eq!(settle(&mut set, seconds(105)), [Step::Unload(2)]);
    assert_eq!(set.wakes_at(), Some(seconds(700)));
    let again = set.claim(0);
    assert_eq!(settle(&mut set, seconds(9000)), [], "in use");
    set.release(again, Some(KeepAlive::Always), seconds(9000));
    assert_eq!(set.wakes_at(), None);
    let now = set.claim(0);
    set.release(now, Some(KeepAlive::For(Duration::ZERO)), seconds(9001));
    assert_eq!(settle(&mut set, seconds(9001)), [Step::Unload(0)]);
}

#[test]
fn a_load_that_fails_is_told_to_those_who_wait_and_tried_again_for_the_next() {
    let mut set = three();
    let (first, second) = (set.claim(0), set.claim(0));
    assert_eq!(set.next_step(seconds(0)), Some(Step::Load(0)));
    let third = set.claim(0);
    set.failed(0);
    for claim in [first, second, third] {
        assert_eq!(set.state_of(claim), ClaimState::Failed);
        set.release(claim, None, seconds(1));
    }
    assert_eq!(set.memories(), [(10, 0)]);
    let again = set.claim(0);
    assert_eq!(settle(&mut set, seconds(2)), [Step::Load(0)]);
    assert_eq!(set.state_of(again), ClaimState::Ready);
}

#[test]
fn who_leaves_while_waiting_is_forgotten() {
    let mut set = three();
    let first = set.claim(0);
    settle(&mut set, seconds(0));
    let second = set.claim(1);
    settle(&mut set, seconds(1));
    set.release(second, None, seconds(2));
    assert_eq!(settle(&mut set, seconds(2)), [], "nobody waits for it");
    set.release(first, None, seconds(3));
    assert_eq!(settle(&mut set, seconds(3)), [Step::Unload(0)], "it had been told to go");
    assert_eq!(set.memories(), [(10, 0)]);
}

#[test]
fn memories_are_counted_apart_and_a_model_larger_than_all_is_alone() {
    let needs = vec![vec![4, 8], vec![4, 0], vec![99, 0]];
    let mut set = ModelSet::new(vec![10, 8], needs, KeepAlive::Always);
    let claims = [0, 1].map(|model| set.claim(model));
    assert_eq!(settle(&mut set, seconds(0)), [Step::Load(0), Step::Load(1)]);
    assert_eq!(set.memories(), [(10, 8), (8, 8)]);
    claims.into_iter().for_each(|claim| set.release(claim, None, seconds(1)));
    let large = set.claim(2);
    let expected = [Step::Unload(0), Step::Unload(1), Step::Load(2)];
    assert_eq!(settle(&mut set, seconds(2)), expected);
    assert_eq!((set.state_of(large), set.needs(2)), (ClaimState::Ready, &[10, 0][..]));
}

#[derive(Debug, Clone)]
enum Event {
    Ask {
        model: usize,
    },
    /// Of the claims there are, whichever this picks.
    Leave {
        which: usize,
        keep_alive: Option<u64>,
    },
    /// A step that was begun ends, this one badly.
    End {
        which: usize,
        badly: bool,
    },
    Pass {
        seconds: u64,
    },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let one = prop_oneof![
        3 => (0usize..4).prop_map(|model| Event::Ask { model }),
        3 => (any::<usize>(), prop::option::of(0u64..20))
            .prop_map(|(which, keep_alive)| Event::Leave { which, keep_alive }),
        3 => (any::<usize>(), prop::bool::weighted(0.2))
            .prop_map(|(which, badly)| Event::End { which, badly }),
        1 => (0u64..30).prop_map(|seconds| Event::Pass { seconds }),
    ];
    prop::collection::vec(one, 1..80)
}

/// A server: claims that are held, and steps that are under way.
struct Driver {
    set: ModelSet,
    claims: Vec<Claim>,
    begun: Vec<Step>,
    now: Duration,
}

impl Driver {
    fn take(&mut self, event: &Event) {
        match *event {
            Event::Ask { model } => self.claims.push(self.set.claim(model)),
            Event::Leave { which, keep_alive } if !self.claims.is_empty() => {
                let claim = self.claims.swap_remove(which % self.claims.len());
                let keep_alive = keep_alive.map(|time| KeepAlive::For(seconds(time)));
                self.set.release(claim, keep_alive, self.now);
            }
            Event::End { which, badly } if !self.begun.is_empty() => {
                match self.begun.swap_remove(which % self.begun.len()) {
                    Step::Load(model) if badly => self.set.failed(model),
                    step => carry_out(&mut self.set, step, self.now),
                }
            }
            Event::Pass { seconds: passed } => self.now += seconds(passed),
            Event::Leave { .. } | Event::End { .. } => {}
        }
    }

    fn begin_steps(&mut self) -> Result<(), TestCaseError> {
        while let Some(step) = self.set.next_step(self.now) {
            if let Step::Unload(model) = step {
                let used = |claim: &&Claim| claim.model == model;
                let ready = |claim: &&Claim| self.set.state_of(**claim) == ClaimState::Ready;
                prop_assert_eq!(self.claims.iter().filter(used).filter(ready).count(), 0);
            }
            self.begun.push(step);
            prop_assert!(self.set.memories().iter().all(|(room, taken)| taken <= room));
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn everybody_gets_their_model_and_none_is_unloaded_in_use(
        events in events(),
        needs in prop::collection::vec(prop::collection::vec(0u64..14, 2), 4),
    ) {
        let set = ModelSet::new(vec![10, 8], needs, IDLE);
        let mut driver = Driver { set, claims: Vec::new(), begun: Vec::new(), now: seconds(0) };
        for event in &events {
            driver.take(event);
            driver.begin_steps()?;
        }
        // From here on all goes well, and whoever has their model leaves.
        for _ in 0..200 {
            driver.take(&Event::End { which: 0, badly: false });
            let set = &driver.set;
            let ready = driver.claims.iter().position(|c| set.state_of(*c) != ClaimState::Waiting);
            if let Some(which) = ready {
                driver.take(&Event::Leave { which, keep_alive: None });
            }
            driver.begin_steps()?;
        }
        prop_assert!(driver.claims.is_empty() && driver.begun.is_empty(), "{:?}", driver.set);
        driver.now += seconds(601);
        settle(&mut driver.set, driver.now);
        prop_assert!(driver.set.memories().iter().all(|(_, taken)| *taken == 0));
    }
}
