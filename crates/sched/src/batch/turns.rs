//! Whether prompts may be computed beside those that decode. Time is given, not read.
//!
//! Where a prompt's tokens cost what decoded ones do (no idle arithmetic, as on CPUs), a step with a
//! chunk of a prompt takes as long as many that only decode. So for each such step those that
//! decode, and short prompts, get as much time to themselves: a long prompt beside them halves their
//! speed at most, and they its. The idea of bounding what a prompt does to others: Sarathi-Serve
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

    /// Notes a step: `short` is the most prompt tokens in one that counts as decoding.
    pub(super) fn planned(&mut self, parts: &[StepPart], short: u32) {
        let prompts = || parts.iter().filter(|part| !part.decodes);
        let unfinished = prompts().any(|part| !part.samples);
        self.held = unfinished || prompts().map(|part| part.tokens).sum::<u32>() > short;
    }

    /// How long the step took.
    pub(super) fn took(&mut self, time: Duration) {
        (self.owed, self.steps) = match self.held {
            true => (time, 0),
            false => (self.owed.saturating_sub(time), self.steps + 1),
        };
    }
}
