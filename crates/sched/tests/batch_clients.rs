//! What clients do to each other in batch planning: time and sequences are theirs in equal parts,
//! or in those they are given.

use motley_sched::batch::{
    BatchLimits, Client, ClientId, Planner, Priority, Prompt, RequestId, Sharing,
};
use std::time::Duration;

const LIMITS: BatchLimits = BatchLimits {
    sequences: 8,
    cells: 4096,
    longest_tokens: u32::MAX,
    step_tokens: 512,
    prefill_beside_decode: 64,
    step_time: None,
    waiting: 99,
    sharing: Sharing::Prefixes,
};

/// The question `number` of `client`, unlike any other.
fn question(client: u128, number: i32) -> Prompt {
    let tokens = (100 * number..100 * number + 9).collect();
    Prompt { client: ClientId(client).into(), tokens, chunk_tokens: 512, boundaries: vec![] }
}

#[test]
fn a_client_with_one_stream_has_as_much_time_as_one_with_seven() {
    let mut planner = Planner::new(LIMITS);
    for request in 0..8 {
        let question = question(u128::from(request == 7), request);
        planner.submit(RequestId(request as u64), question).unwrap();
        let step = planner.plan();
        step.parts.iter().for_each(|part| assert!(planner.on_token(part.request, 99)));
    }
    let mut time = [Duration::ZERO; 2];
    for _ in 0..400 {
        let step = planner.plan();
        // Streams are computed together for less than one after another.
        let tokens = step.parts.len() as u64;
        let took = Duration::from_millis(4 + tokens);
        planner.on_computed(took);
        for part in &step.parts {
            planner.on_token(part.request, 99);
            time[usize::from(part.request.0 == 7)] += took / tokens as u32;
        }
    }
    let share = time[1].as_secs_f64() / (time[0] + time[1]).as_secs_f64();
    assert!((0.45..0.55).contains(&share), "{share}");
}

#[test]
fn the_last_sequence_is_left_to_a_client_that_has_none_where_there_are_others() {
    let mut planner = Planner::new(BatchLimits { sequences: 4, ..LIMITS });
    let submit = |planner: &mut Planner, request: i32, client: u128| {
        planner.submit(RequestId(request as u64), question(client, request)).unwrap();
        planner.plan();
        (planner.figures().active, planner.figures().waiting)
    };
    let alone = [0, 1, 2, 3, 4].map(|request| submit(&mut planner, request, 0));
    assert_eq!(alone, [(1, 0), (2, 0), (3, 0), (4, 0), (4, 1)]);
    assert_eq!(submit(&mut planner, 5, 1), (4, 2));
    assert!(planner.finish(RequestId(0), false));
    planner.plan();
    assert_eq!(planner.request_of(0), Some(RequestId(5)), "who has none goes first");
    assert!(planner.finish(RequestId(5), false));
    planner.plan();
    assert_eq!((planner.figures().active, planner.figures().waiting), (3, 1));
    // It is not expected back for ever.
    for request in 6..50 {
        submit(&mut planner, request, 0);
        assert!(planner.finish(RequestId(request as u64 - 5), false) || request == 10);
    }
    planner.plan();
    assert_eq!(planner.figures().active, 4);
}

#[test]
fn a_client_has_no_more_sequences_than_it_is_given() {
    let mut planner = Planner::new(LIMITS);
    for request in 0..6 {
        let client = Client { streams: 2, ..ClientId(1).into() };
        let question = Prompt { client, ..question(1, request) };
        planner.submit(RequestId(request as u64), question).unwrap();
    }
    planner.submit(RequestId(6), question(2, 6)).unwrap();
    planner.plan();
    assert_eq!((planner.figures().active, planner.figures().waiting), (3, 4));
    assert!(planner.finish(RequestId(0), false));
    planner.plan();
    assert_eq!((planner.figures().active, planner.figures().waiting), (3, 3), "the next of it");
}

#[test]
fn a_higher_priority_goes_first_and_a_lower_one_goes_too() {
    let mut planner = Planner::new(BatchLimits { sequences: 1, ..LIMITS });
    let submit = |planner: &mut Planner, request: i32, priority: Priority| {
        let client = Client { priority, ..ClientId(request as u128).into() };
        let question = Prompt { client, ..question(0, request) };
        planner.submit(RequestId(request as u64), question).unwrap();
    };
    submit(&mut planner, 0, Priority::Normal);
    planner.plan();
    submit(&mut planner, 1, Priority::Low);
    submit(&mut planner, 2, Priority::Normal);
    submit(&mut planner, 3, Priority::High);
    let mut served = Vec::new();
    for request in 4..40 {
        let now = planner.request_of(0).expect("somebody is answered");
        served.push(now.0);
        assert!(planner.finish(now, false));
        // Others that are more urgent keep coming.
        submit(&mut planner, request, Priority::High);
        planner.plan();
    }
    assert_eq!(served[..3], [0, 3, 4], "the urgent ones first");
    let low = served.iter().position(|request| *request == 1).expect("in the end");
    assert!(low <= 18, "it was passed {low} times");
    let normal = served.iter().position(|request| *request == 2).expect("in the end");
    assert!(normal > low, "it waited behind it");
}

#[test]
fn prompts_of_a_higher_priority_are_computed_first() {
    let mut planner = Planner::new(LIMITS);
    let mut submit = |request: u64, priority: Priority| {
        let client = Client { priority, ..ClientId(0).into() };
        let tokens = (1000 * request as i32..1000 * request as i32 + 600).collect();
        let prompt = Prompt { client, tokens, chunk_tokens: 512, boundaries: vec![] };
        planner.submit(RequestId(request), prompt).unwrap();
    };
    submit(0, Priority::Low);
    submit(1, Priority::High);
    let first = planner.plan().parts;
    assert_eq!(first.iter().map(|part| part.request.0).collect::<Vec<_>>(), [1]);
    let second = planner.plan().parts;
    assert_eq!(second.iter().map(|part| part.request.0).collect::<Vec<_>>(), [1, 0]);
}
