//! How many tokens of a prompt fit into a step that shall not take long. Time is given, not read.
//!
//! A token costs the more the more stand before it: with a model of 135M parameters on one core
//! 0.4 ms at the beginning of a prompt and 5.6 ms after 4000 tokens, so a bound in tokens bounds
//! no time. What each prompt's last chunk took says how long its next may be. Choosing chunks by
//! what they take beside others: Sarathi-Serve (Agrawal et al. 2024).

use super::planner::Planner;
use super::{Sharing, StepPart};
use std::time::Duration;

/// Tokens of a prompt of which nothing was computed yet.
const FIRST_TOKENS: u32 = 16;
/// The oldest prompt, and the first of a step, go on by so many however long they take.
const TOKENS_LEAST: u32 = 4;

/// Steps of so many tokens tell what a prompt's take.
const PROMPT_STEP_TOKENS: u32 = 64;

/// What is left of a step's time while it is planned; `None` where time is not bounded.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeLeft(Option<Duration>);

impl Planner {
    /// How long the step planned last took: what prompts do to those that decode is bounded in
    /// time. Without it they go on in every step.
    pub fn on_computed(&mut self, took: Duration) {
        self.turns.took(took);
        self.shares.took(&self.planned, took);
        let tokens: u32 = self.planned.iter().map(|(_, part)| part.tokens).sum();
        if tokens >= PROMPT_STEP_TOKENS {
            let new = took / tokens;
            self.token_time = Some(self.token_time.map_or(new, |before| (before * 3 + new) / 4));
        }
        for (_, part) in std::mem::take(&mut self.planned) {
            if let Some(sequence) = &mut self.sequences[usize::from(part.sequence)] {
                sequence.token_time = Some(took / tokens.max(1));
            }
        }
    }

    /// Remembers what a step computes until it is known how long that took.
    pub(super) fn note_planned(&mut self, parts: &[StepPart]) {
        let client = |at: u16| self.sequences[usize::from(at)].as_ref().map(|s| s.client.id);
        let asked = |&part: &StepPart| Some((client(part.sequence)?, part));
        self.planned = parts.iter().filter_map(asked).collect();
    }

    /// The time of a new step. Where chunks are as long as they came nothing is left out.
    pub(super) fn step_time(&self) -> TimeLeft {
        let bounded = self.limits.sharing != Sharing::Nothing;
        TimeLeft(self.limits.step_time.filter(|_| bounded))
    }

    /// Most tokens of the prompt of `at` in what is left; `must` go on.
    pub(super) fn fitting(&self, at: usize, left: TimeLeft, must: bool) -> u32 {
        let Some(left) = left.0 else { return u32::MAX };
        let known = self.sequences[at].as_ref().and_then(|sequence| sequence.token_time);
        let fits = match known {
            Some(each) => left.as_nanos() / each.as_nanos().max(1),
            None if left.is_zero() => 0,
            None => u128::from(FIRST_TOKENS),
        };
        let fits = u32::try_from(fits).unwrap_or(u32::MAX);
        if must { fits.max(TOKENS_LEAST) } else { fits }
    }

    /// What is left once `tokens` of the prompt of `at` are in the step.
    pub(super) fn after(&self, left: TimeLeft, at: usize, tokens: u32) -> TimeLeft {
        let known = self.sequences[at].as_ref().and_then(|sequence| sequence.token_time);
        TimeLeft(left.0.map(|left| left.saturating_sub(known.unwrap_or_default() * tokens)))
    }
}

#[cfg(test)]
mod tests {
    use crate::batch::{BatchLimits, Client, ClientId, Planner, Prompt, RequestId, Sharing};
    use std::time::Duration;

    const LIMITS: BatchLimits = BatchLimits {
        sequences: 4,
        cells: 8192,
        longest_tokens: u32::MAX,
        step_tokens: 512,
        prefill_beside_decode: 512,
        step_time: Some(Duration::from_millis(20)),
        waiting: 8,
        sharing: Sharing::Prefixes,
    };

    const PROMPT: Prompt = Prompt {
        client: Client::like_others(ClientId(0)),
        tokens: Vec::new(),
        chunk_tokens: 512,
        boundaries: Vec::new(),
    };

    /// What a step takes whose tokens cost more the further on they are.
    fn took(first: u32, tokens: u32) -> Duration {
        (0..tokens).map(|at| Duration::from_micros(400 + u64::from(first + at))).sum()
    }

    #[test]
    fn steps_stay_within_their_time_however_long_the_prompt_gets() {
        let mut planner = Planner::new(LIMITS);
        let prompt = Prompt { tokens: (0..4000).collect(), ..PROMPT };
        planner.submit(RequestId(0), prompt).unwrap();
        let (mut steps, mut time) = (0_u32, Duration::ZERO);
        loop {
            let part = planner.plan().parts[0];
            let took = took(part.first, part.tokens);
            assert!(took < Duration::from_millis(25), "{part:?}: {took:?}");
            planner.on_computed(took);
            (steps, time) = (steps + 1, time + took);
            if part.samples {
                break;
            }
        }
        // And hardly shorter than they may be.
        assert!(time / steps > Duration::from_millis(15), "{steps} steps in {time:?}");
    }

    #[test]
    fn the_oldest_prompt_goes_on_however_slow_it_is() {
        let mut planner = Planner::new(LIMITS);
        for id in 0..2_i32 {
            let tokens = (5000 * id..5000 * id + 100).collect();
            let prompt = Prompt { tokens, ..PROMPT };
            planner.submit(RequestId(id as u64), prompt).unwrap();
        }
        let tokens = |planner: &mut Planner| -> Vec<(u64, u32)> {
            planner.plan().parts.iter().map(|part| (part.request.0, part.tokens)).collect()
        };
        assert_eq!(tokens(&mut planner), [(0, 16), (1, 16)]);
        planner.on_computed(Duration::from_secs(32));
        assert_eq!(tokens(&mut planner), [(0, 4)]);
    }

    #[test]
    fn chunks_that_must_be_whole_are() {
        let mut planner = Planner::new(BatchLimits { sharing: Sharing::Nothing, ..LIMITS });
        let prompt = Prompt { tokens: (0..600).collect(), chunk_tokens: 300, ..PROMPT };
        planner.submit(RequestId(0), prompt).unwrap();
        assert_eq!(planner.plan().parts[0].tokens, 300);
        planner.on_computed(Duration::from_secs(9));
        assert_eq!(planner.plan().parts[0].tokens, 300);
    }
}
