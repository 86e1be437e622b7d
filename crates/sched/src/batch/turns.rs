//! Whether prompts may be computed beside those that decode. Time is given, not read.
//!
//! Where a prompt's tokens cost what decoded ones do (no idle arithmetic, as on CPUs), a step with a
//! chunk of a prompt takes as long as many that only decode. So for each such step those that
//! decode, and short prompts, get time to themselves: as much, where they are as many as the prompts
//! or more, and less by as much as they are fewer. A long prompt beside them halves their speed at
//! most, and they its; one that answers does not hold up fifteen that wait to. The idea of bounding what a prompt does to others: Sarathi-Serve
//! (Agrawal et al. 2024).

use super::StepPart;
use std::time::Duration;

/// Most steps in a row without prompts: they go on whatever the clock says.
const STEPS_MOST: u32 = 32;

/// Keeps count of whose turn it is.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turns {
    /// Whether those that decode, or would have, were held up by prompts in the last step.
    held: bool,
    /// Of them so many for so many prompts.
    sides: (u32, u32),
    /// Time they have to themselves.
    owed: Duration,
    /// Steps they had of it.
    steps: u32,
}

impl Turns {
    /// Whether all prompts may go on beside those that decode; short ones always may.
    pub(super) fn prompts_may(&self) -> bool {
        self.owed.is_zero() || self.steps >= STEPS_MOST
    }

    /// Notes a step of so many sequences that decode and so many prompts: `short` is the most prompt
    /// tokens in one that counts as decoding.
    pub(super) fn planned(&mut self, parts: &[StepPart], short: u32, sides: (u32, u32)) {
        self.sides = sides;
        let prompts = || parts.iter().filter(|part| !part.decodes);
        let unfinished = prompts().any(|part| !part.samples);
        self.held = unfinished || prompts().map(|part| part.tokens).sum::<u32>() > short;
    }

    /// How long the step took.
    pub(super) fn took(&mut self, time: Duration) {
        (self.owed, self.steps) = match self.held {
            true => (time * self.sides.0.min(self.sides.1) / self.sides.1.max(1), 0),
            false => (self.owed.saturating_sub(time), self.steps + 1),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::RequestId;

    #[test]
    fn few_that_decode_have_less_of_the_time_than_many_prompts() {
        let chunk = StepPart {
            request: RequestId(0),
            sequence: 0,
            first: 0,
            tokens: 512,
            samples: false,
            decodes: false,
        };
        let second = Duration::from_secs(1);
        for (sides, owed) in [((1, 16), second / 16), ((3, 3), second), ((9, 1), second)] {
            let mut turns = Turns::default();
            turns.planned(&[chunk], 16, sides);
            turns.took(second);
            assert_eq!(turns.owed, owed, "{sides:?}");
        }
    }
}
