//! Properties of batch planning on a model of the cache: nobody starves, no sequence is
//! twice in a step, cells stay within the budget, and what a sequence holds is exactly
//! the beginning of its request's tokens, whatever was copied, cut short or sent back.

mod batch_cache;

use batch_cache::{Cache, Disk};
use motley_sched::batch::{
    BatchLimits, Change, ClientId, Planner, Prompt, Refused, RequestId, Sharing, Step, StepPart,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// A request of a world: its prompt, how long its answer gets, when it is given up.
#[derive(Debug, Clone)]
struct Asked {
    client: u128,
    prompt: Vec<i32>,
    answer: usize,
    cancelled_at_step: Option<usize>,
    arrives_at_step: usize,
}

/// Prompts from few tokens, so that they share prefixes.
fn asked(longest: usize) -> impl Strategy<Value = Asked> {
    let prompt = (0_i32..3, 1..longest).prop_map(|(kind, len)| {
        (0..len as i32).map(|at| if at < 24 { at } else { at + 100 * kind }).collect()
    });
    let cancelled = proptest::option::weighted(0.2, 0_usize..40);
    (0..3_u128, prompt, 0_usize..20, cancelled, 0_usize..30).prop_map(
        |(client, prompt, answer, cancelled_at_step, arrives_at_step)| Asked {
            client,
            prompt,
            answer,
            cancelled_at_step,
            arrives_at_step,
        },
    )
}

fn limits() -> impl Strategy<Value = BatchLimits> {
    let sharing = prop_oneof![
        3 => Just(Sharing::Prefixes), 1 => Just(Sharing::Cells), 1 => Just(Sharing::Nothing),
        3 => Just(Sharing::Parts), 3 => (1_u16..5).prop_map(|most| Sharing::States { most })
    ];
    let step_time = proptest::option::of((0_u64..60).prop_map(Duration::from_millis));
    (1_u16..6, 100_u32..200, 1_u32..40, 1_u32..16, step_time, sharing).prop_map(
        |(sequences, cells, step_tokens, prefill_beside_decode, step_time, sharing)| BatchLimits {
            sequences,
            cells,
            longest_tokens: if cells % 3 == 0 { cells / 2 } else { u32::MAX },
            step_tokens,
            prefill_beside_decode,
            step_time,
            waiting: 100,
            sharing,
        },
    )
}

struct World {
    planner: Planner,
    limits: BatchLimits,
    cache: Cache,
    /// Answers so far of those not finished.
    answers: BTreeMap<RequestId, usize>,
    asked: Vec<Asked>,
    now: usize,
    /// What a token takes.
    token_time: Duration,
}

impl World {
    fn new(limits: BatchLimits, asked: Vec<Asked>, token_time: Duration) -> Self {
        Self {
            planner: Planner::new(limits),
            limits,
            cache: Cache::default(),
            answers: BTreeMap::new(),
            asked,
            now: 0,
            token_time,
        }
    }

    /// Runs to the end; steps needed.
    fn run(&mut self) -> usize {
        let work: usize = self.asked.iter().map(|a| a.prompt.len() + a.answer + 2).sum();
        let last_arrival = 30;
        while self.now <= last_arrival || !self.answers.is_empty() {
            assert!(self.now <= last_arrival + 20 * work, "someone starves: {:?}", self.answers);
            self.step();
            self.now += 1;
        }
        self.now
    }

    fn step(&mut self) {
        self.arrive();
        let step = self.planner.plan();
        self.check(&step);
        let tokens: u32 = step.parts.iter().map(|part| part.tokens).sum();
        self.planner.on_computed(self.token_time * tokens);
        let states = match self.limits.sharing {
            Sharing::States { most } => Some(usize::from(most)),
            _ => None,
        };
        self.cache.apply(&step, &mut self.planner, states.is_some());
        assert!(self.cache.saved.len() <= states.unwrap_or(0), "states over budget");
        assert!(self.cache.cells() <= self.limits.cells as usize, "cells over budget");
        let figures = self.planner.figures();
        assert_eq!(self.cache.cells(), figures.cells_used as usize);
        let active = |sequence| self.planner.request_of(sequence).is_some();
        assert_eq!(self.cache.cells_of(active), figures.cells_active as usize);
        if self.limits.sharing == Sharing::Parts {
            let longest = self.planner.longest() as usize;
            assert!(self.cache.sequences.values().all(|held| held.len() <= longest));
            assert!(step.parts.is_sorted_by_key(|part| part.sequence));
        }
        for part in step.parts.iter().filter(|part| part.samples) {
            let asked = &self.asked[part.request.0 as usize];
            let answer = self.answers.get_mut(&part.request).expect("only known requests run");
            *answer += 1;
            let token = 1000 + *answer as i32;
            if *answer > asked.answer || !self.planner.on_token(part.request, token) {
                self.answers.remove(&part.request);
                self.planner.finish(part.request, true);
            }
        }
    }

    fn arrive(&mut self) {
        for (id, asked) in self.asked.iter().enumerate() {
            let request = RequestId(id as u64);
            if asked.arrives_at_step == self.now {
                let prompt = Prompt {
                    client: ClientId(asked.client).into(),
                    tokens: asked.prompt.clone(),
                    chunk_tokens: 7,
                    boundaries: vec![20, 30, 100],
                };
                match self.planner.submit(request, prompt) {
                    Ok(()) => drop(self.answers.insert(request, 0)),
                    Err(refused) => assert!(matches!(refused, Refused::TooLong { .. })),
                }
            }
            let cancelled = asked.cancelled_at_step.map(|step| step + asked.arrives_at_step);
            if cancelled == Some(self.now) && self.answers.remove(&request).is_some() {
                assert!(self.planner.finish(request, false));
            }
        }
    }

    fn check(&self, step: &Step) {
        let sequences: HashSet<_> = step.parts.iter().map(|part| part.sequence).collect();
        assert_eq!(sequences.len(), step.parts.len(), "a sequence is once in a step");
        let requests: HashSet<_> = step.parts.iter().map(|part| part.request).collect();
        assert_eq!(requests.len(), step.parts.len(), "a request has one sequence");
        assert!(step.parts.iter().all(|part| part.tokens > 0));
        if self.limits.sharing == Sharing::Nothing {
            return;
        }
        let tokens: u32 = step.parts.iter().map(|part| part.tokens).sum();
        assert!(tokens <= self.limits.step_tokens.max(u32::from(self.limits.sequences)));
        // One that was sent back computes its own answer as a prompt again.
        let decodes = |part: &&StepPart| self.answers.get(&part.request).is_some_and(|&n| n > 0);
        if self.planner.figures().sent_back == 0 && step.parts.iter().any(|part| decodes(&part)) {
            // The last token of a prompt costs what a decoded one does.
            let last = |part: &&StepPart| part.tokens == 1 && part.samples;
            let prompts = step.parts.iter().filter(|part| !decodes(part) && !last(part));
            let prompt_tokens: u32 = prompts.map(|part| part.tokens).sum();
            assert!(prompt_tokens <= self.limits.prefill_beside_decode, "{step:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_request_ends_and_the_cache_is_always_right(
        limits in limits(),
        asked in proptest::collection::vec(asked(120), 1..14),
        token_ms in 0..3_u64,
        disk in proptest::option::of((0..4000_u64, 0..6_u32)),
    ) {
        let mut world = World::new(limits, asked, Duration::from_millis(token_ms));
        if let Some((most_bytes, fails_every)) = disk {
            world.cache.disk = Disk::new(most_bytes, fails_every);
            world.planner.keep_on_disk(world.cache.disk.limits(), &[]);
        }
        world.run();
        world.planner.forget_prefixes();
        let step = world.planner.plan();
        world.cache.apply(&step, &mut world.planner, false);
        prop_assert_eq!(world.cache.cells(), 0);
        let figures = world.planner.figures();
        prop_assert_eq!((figures.active, figures.cells_active), (0, 0));
    }
}

const ROOMY: BatchLimits = BatchLimits {
    sequences: 8,
    cells: 4096,
    longest_tokens: u32::MAX,
    step_tokens: 512,
    prefill_beside_decode: 64,
    step_time: None,
    waiting: 4,
    sharing: Sharing::Prefixes,
};

fn prompt(tokens: std::ops::Range<i32>) -> Prompt {
    Prompt {
        client: ClientId(0).into(),
        tokens: tokens.collect(),
        chunk_tokens: 512,
        boundaries: vec![],
    }
}

#[test]
fn a_shared_system_prompt_is_computed_once() {
    let mut planner = Planner::new(ROOMY);
    for request in 0..4 {
        let mut tokens: Vec<i32> = (0..300).collect();
        tokens.push(1000 + request);
        let prompt =
            Prompt { client: ClientId(0).into(), tokens, chunk_tokens: 512, boundaries: vec![] };
        planner.submit(RequestId(request as u64), prompt).unwrap();
    }
    let computed = |step: &Step| step.parts.iter().map(|part| part.tokens).sum::<u32>();
    let first = planner.plan();
    assert_eq!((first.parts.len(), computed(&first)), (1, 301));
    assert!(planner.on_token(RequestId(0), 7));
    let second = planner.plan();
    assert_eq!((second.parts.len(), computed(&second)), (4, 4), "{second:?}");
    assert_eq!(planner.figures().reused_tokens, 900);
    assert_eq!(planner.figures().cells_used, 301 + 1 + 3);
}

#[test]
fn a_long_prompt_does_not_hold_up_those_who_decode() {
    let mut planner = Planner::new(ROOMY);
    planner.submit(RequestId(0), prompt(0..10)).unwrap();
    planner.plan();
    planner.on_token(RequestId(0), 99);
    planner.submit(RequestId(1), prompt(5000..7000)).unwrap();
    let step = planner.plan();
    let tokens: Vec<u32> = step.parts.iter().map(|part| part.tokens).collect();
    assert_eq!(tokens, [1, 64]);
}

#[test]
fn those_who_decode_have_half_of_the_time_to_themselves() {
    let mut planner = Planner::new(ROOMY);
    planner.submit(RequestId(0), prompt(0..10)).unwrap();
    planner.plan();
    planner.on_token(RequestId(0), 99);
    planner.submit(RequestId(1), prompt(5000..7000)).unwrap();
    let (mut alone, mut held) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..200 {
        let tokens: u32 = planner.plan().parts.iter().map(|part| part.tokens).sum();
        // A token of a prompt costs a quarter of a decoded one.
        let took = Duration::from_millis(4 + u64::from(tokens - 1));
        planner.on_computed(took);
        planner.on_token(RequestId(0), 99);
        *if tokens == 1 { &mut alone } else { &mut held } += took;
    }
    let share = alone.as_secs_f64() / (alone + held).as_secs_f64();
    assert!((0.45..0.55).contains(&share), "{share}");
}

#[test]
fn a_clock_that_stands_still_starves_no_prompt() {
    let mut planner = Planner::new(ROOMY);
    planner.submit(RequestId(0), prompt(0..10)).unwrap();
    planner.plan();
    planner.on_token(RequestId(0), 99);
    planner.submit(RequestId(1), prompt(5000..5128)).unwrap();
    planner.plan();
    planner.on_computed(Duration::from_secs(1));
    let waits = (0..100).take_while(|_| {
        planner.on_token(RequestId(0), 99);
        let step = planner.plan();
        planner.on_computed(Duration::ZERO);
        step.parts.len() == 1
    });
    assert_eq!(waits.count(), 32);
}

#[test]
fn a_short_prompt_is_not_held_up_by_a_long_one() {
    let mut planner = Planner::new(ROOMY);
    planner.submit(RequestId(0), prompt(0..2000)).unwrap();
    planner.submit(RequestId(1), prompt(5000..5010)).unwrap();
    let first = planner.plan();
    let parts: Vec<_> = first.parts.iter().map(|part| (part.request.0, part.tokens)).collect();
    assert_eq!(parts, [(1, 10), (0, 502)]);
    // Nor while those who decode have their turn.
    planner.on_token(RequestId(1), 99);
    planner.plan();
    planner.on_computed(Duration::from_secs(1));
    planner.on_token(RequestId(1), 99);
    planner.submit(RequestId(2), prompt(6000..6010)).unwrap();
    let next = planner.plan();
    let parts: Vec<_> = next.parts.iter().map(|part| (part.request.0, part.tokens)).collect();
    assert_eq!(parts, [(1, 1), (2, 10)]);
}

#[test]
fn what_fits_passes_what_does_not_but_not_for_ever() {
    let mut planner = Planner::new(BatchLimits { cells: 100, waiting: 99, ..ROOMY });
    planner.submit(RequestId(0), prompt(0..50)).unwrap();
    planner.submit(RequestId(1), prompt(1000..1090)).unwrap();
    for request in 2..40 {
        planner.submit(RequestId(request), prompt(0..3)).unwrap();
    }
    let mut passed = 0;
    while planner.figures().waiting > 0 {
        let parts = planner.plan().parts;
        if parts.iter().any(|part| part.request == RequestId(1)) {
            break;
        }
        for part in parts.iter().filter(|part| part.request != RequestId(0)) {
            passed += 1;
            planner.finish(part.request, false);
        }
        if passed >= 16 {
            planner.finish(RequestId(0), false);
        }
    }
    assert_eq!(passed, 16);
}

#[test]
fn beyond_the_queue_is_refused() {
    let mut planner = Planner::new(ROOMY);
    for request in 0..4 {
        planner.submit(RequestId(request), prompt(0..3)).unwrap();
    }
    let refused = planner.submit(RequestId(4), prompt(0..3)).unwrap_err();
    assert_eq!(refused, Refused::QueueFull { waiting: 4 });
    assert_eq!(planner.submit(RequestId(5), prompt(0..0)).unwrap_err(), Refused::Empty);
    let long = planner.submit(RequestId(6), prompt(0..5000)).unwrap_err();
    assert_eq!(long, Refused::TooLong { tokens: 5000, longest: 4096 });
}

#[test]
fn streams_that_share_nothing_run_in_their_own_chunks() {
    let mut planner = Planner::new(BatchLimits { sharing: Sharing::Nothing, ..ROOMY });
    assert_eq!(planner.longest(), 512);
    planner.submit(RequestId(0), Prompt { chunk_tokens: 256, ..prompt(0..300) }).unwrap();
    planner.submit(RequestId(1), Prompt { chunk_tokens: 256, ..prompt(0..300) }).unwrap();
    let chunks: Vec<_> = (0..4)
        .map(|_| planner.plan().parts.iter().map(|p| (p.request.0, p.tokens)).collect::<Vec<_>>())
        .collect();
    assert_eq!(chunks[..2], [[(0, 256)], [(0, 44)]]);
    assert_eq!(chunks[2..], [[(1, 256)], [(1, 44)]]);
}

#[test]
fn with_own_parts_prompts_are_cut_to_one_length() {
    let mut planner = Planner::new(BatchLimits { sharing: Sharing::Parts, ..ROOMY });
    assert_eq!(planner.longest(), 512);
    for (request, tokens) in [(0, 17), (1, 14), (2, 15)] {
        let tokens = 1000 * request..1000 * request + tokens;
        planner.submit(RequestId(request as u64), prompt(tokens)).unwrap();
    }
    let lengths = |step: &Step| step.parts.iter().map(|part| part.tokens).collect::<Vec<_>>();
    assert_eq!(lengths(&planner.plan()), [14, 14, 14]);
    planner.on_token(RequestId(1), 7);
    assert_eq!(lengths(&planner.plan()), [3, 1, 1], "the last one need not wait for anyone");
}

#[test]
fn with_own_parts_a_long_prompt_does_not_crawl_behind_short_ones() {
    let mut planner = Planner::new(BatchLimits { sharing: Sharing::Parts, ..ROOMY });
    planner.submit(RequestId(0), prompt(0..400)).unwrap();
    planner.submit(RequestId(1), prompt(1000..1002)).unwrap();
    let tokens: Vec<u32> = planner.plan().parts.iter().map(|part| part.tokens).collect();
    assert_eq!(tokens, [100, 2]);
}

#[test]
fn with_own_parts_a_chat_goes_on_where_its_beginning_is() {
    let mut planner = Planner::new(BatchLimits { sharing: Sharing::Parts, ..ROOMY });
    for request in 0..3 {
        let first = 1000 * request;
        planner.submit(RequestId(request as u64), prompt(first..first + 40)).unwrap();
    }
    planner.plan();
    (0..3).for_each(|request| assert!(planner.finish(RequestId(request), true)));
    planner.submit(RequestId(9), prompt(1000..1060)).unwrap();
    let step = planner.plan();
    assert_eq!(step.changes, [Change::Cut { sequence: 1, tokens: 40 }]);
    assert_eq!((step.parts[0].sequence, step.parts[0].first, step.parts[0].tokens), (1, 40, 20));
    assert_eq!(planner.figures().reused_tokens, 40);
}
