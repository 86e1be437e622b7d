//! What clients do to each other in batch planning: time and sequences are theirs in equal parts.

use motley_sched::batch::{BatchLimits, ClientId, Planner, Prompt, RequestId, Sharing};
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
    Prompt { client: ClientId(client), tokens, chunk_tokens: 512, boundaries: vec![] }
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
