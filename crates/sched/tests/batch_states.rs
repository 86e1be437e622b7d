//! States saved where messages end: what a chat costs on a model whose memory cannot be cut.

use motley_sched::batch::{BatchLimits, ClientId, Planner, Prompt, RequestId, Sharing};

const LIMITS: BatchLimits = BatchLimits {
    sequences: 1,
    cells: 4096,
    longest_tokens: u32::MAX,
    step_tokens: 512,
    prefill_beside_decode: 128,
    step_time: None,
    waiting: 8,
    sharing: Sharing::States { most: 4 },
};

/// Runs one request to its end; prompt tokens computed.
fn answer(planner: &mut Planner, id: u64, tokens: Vec<i32>, boundaries: Vec<u32>) -> u32 {
    let (request, length) = (RequestId(id), tokens.len() as u32);
    let asked = Prompt { client: ClientId(0).into(), tokens, chunk_tokens: 512, boundaries };
    planner.submit(request, asked).unwrap();
    let mut computed = 0;
    for token in 5000.. {
        let step = planner.plan();
        let prompts = step.parts.iter().filter(|part| part.first < length);
        computed += prompts.map(|part| part.tokens).sum::<u32>();
        if step.parts.iter().any(|part| part.samples) {
            planner.on_token(request, token);
        }
        if token == 5020 {
            break;
        }
    }
    planner.finish(request, true);
    computed
}

#[test]
fn a_chat_goes_on_from_its_end_or_from_the_end_of_a_message() {
    for sequences in [1, 2, 4] {
        let mut planner = Planner::new(BatchLimits { sequences, ..LIMITS });
        let system: Vec<i32> = (0..300).collect();
        let first = [&system[..], &[7; 100]].concat();
        assert_eq!(answer(&mut planner, 0, first.clone(), vec![300, 390]), 400);
        let said: Vec<i32> = planner.tokens(0).to_vec();
        assert!(said.len() > first.len());
        // It grows at its end: what was said is part of the prompt.
        let grown = [&said[..], &[8; 50]].concat();
        let ends = vec![300, 390, said.len() as u32 + 45];
        assert_eq!(answer(&mut planner, 1, grown, ends), 50);
        // The last message is edited: from the message before.
        let edited = [&first[..395], &[9; 70]].concat();
        assert_eq!(answer(&mut planner, 2, edited, vec![300, 390, 460]), 75);
        // Another chat with the same beginning.
        let other = [&system[..], &[6; 40]].concat();
        assert_eq!(answer(&mut planner, 3, other, vec![300, 335]), 40);
    }
}

#[test]
fn messages_end_after_tokens_that_end_an_answer() {
    let planner = |sharing| Planner::new(BatchLimits { sharing, ..LIMITS });
    let saves = planner(LIMITS.sharing);
    assert_eq!(saves.boundaries(&[5, 2, 6, 2, 7], |token| token == 2), [2, 4]);
    assert_eq!(saves.boundaries(&[5, 6, 7], |token| token == 2), [2]);
    let never = |_| panic!("nothing is looked for");
    assert!(planner(Sharing::Prefixes).boundaries(&[5, 2], never).is_empty());
}
