//! Where the time of a request goes: the stages it has been through so far. Reads no clock.

use std::time::Duration;

/// Where the time of an answer went: first it waited, then its prompt was computed, then its tokens.
/// Each stage begins where the one before ends, so the three are all of its time in the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnswerTimes {
    /// From being handed in until something was done for it: a segment of its prompt read, or a
    /// token computed.
    pub waited: Duration,
    /// From there until its first token was chosen. Others may have been computed in between.
    pub prompt: Duration,
    /// Of `prompt`: segments read from the prefix cache, and steps it was part of that stood still
    /// until experts came from the disk or, where devices compute some, until those were done.
    pub prompt_disk: Duration,
    /// From its first token to its end.
    pub answer: Duration,
    /// Of `answer`: steps it was part of that stood still like that.
    pub answer_disk: Duration,
}

/// A request's stages as they come. Times are those of one clock, and never go back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stages {
    came: Duration,
    begun: Option<Duration>,
    first_token: Option<Duration>,
    prompt_disk: Duration,
    answer_disk: Duration,
}

impl Stages {
    /// A request that was handed in at `came`.
    pub(super) fn new(came: Duration) -> Self {
        let zero = Duration::ZERO;
        Self { came, begun: None, first_token: None, prompt_disk: zero, answer_disk: zero }
    }

    /// Something is done for it from `now` on.
    pub(super) fn begin(&mut self, now: Duration) {
        self.begun.get_or_insert(now);
    }

    /// What was done for it waited for the disk for so long.
    pub(super) fn wait_for_disk(&mut self, time: Duration) {
        match self.first_token {
            None => self.prompt_disk += time,
            Some(_) => self.answer_disk += time,
        }
    }

    /// A token was chosen `now`.
    pub(super) fn say(&mut self, now: Duration) {
        self.first_token.get_or_insert(now);
    }

    /// All of it, for an answer that ends `now`.
    pub(super) fn end(&self, now: Duration) -> AnswerTimes {
        let begun = self.begun.unwrap_or(now);
        let first_token = self.first_token.unwrap_or(now);
        AnswerTimes {
            waited: begun.saturating_sub(self.came),
            prompt: first_token.saturating_sub(begun),
            prompt_disk: self.prompt_disk,
            answer: now.saturating_sub(first_token),
            answer_disk: self.answer_disk,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn stages_follow_each_other_and_each_has_its_disk() {
        let mut stages = Stages::new(ms(10));
        stages.begin(ms(15));
        stages.wait_for_disk(ms(3));
        stages.begin(ms(20));
        stages.say(ms(40));
        stages.wait_for_disk(ms(2));
        stages.say(ms(50));
        let times = AnswerTimes {
            waited: ms(5),
            prompt: ms(25),
            prompt_disk: ms(3),
            answer: ms(20),
            answer_disk: ms(2),
        };
        assert_eq!(stages.end(ms(60)), times);
    }

    #[test]
    fn one_that_never_began_has_waited_all_the_time() {
        let times = Stages::new(ms(10)).end(ms(12));
        assert_eq!(times, AnswerTimes { waited: ms(2), ..AnswerTimes::default() });
    }
}
