//! One client among many: honest, in a hurry or slow; and what came of each question.

#![allow(clippy::disallowed_methods, reason = "a client rolls dice and takes its time")]

use crate::load::{Target, converse};
use serde::Serialize;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Of a hundred clients, those who leave in the middle and those who read slowly.
const LEAVING: u32 = 15;
const SLOW: u32 = 10;
/// Pause of a slow one after each piece.
const PAUSE: Duration = Duration::from_millis(200);
/// Time after a refusal before the next question.
const BACK_OFF: Duration = Duration::from_millis(300);

/// What came of all questions.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Outcomes {
    /// Whole, and equal to the answer given in peace.
    pub right: u64,
    /// Ended by an error the server reported, or refused.
    pub errors: u64,
    /// Ended by the client.
    pub left: u64,
    /// Whole, and not what was said in peace.
    pub wrong: u64,
    /// Nothing was heard for longer than the deadline.
    pub silent: u64,
    /// The connection ended without an answer and without an error.
    pub cut: u64,
    /// Longest wait for a sign of life.
    pub longest_silence_s: f64,
    /// One example of each kind of error.
    pub examples: Vec<String>,
}

/// A question and its answer in peace.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) prompt: String,
    pub(super) answer: String,
}

/// Asks one of `known` and counts what comes.
pub(super) fn ask_one(
    target: &Target,
    known: &[Known],
    deadline: Duration,
    outcomes: &Mutex<Outcomes>,
) {
    let Known { prompt, answer } = &known[fastrand::usize(..known.len())];
    let kind = fastrand::u32(..100);
    let leaves_at = (kind < LEAVING).then(|| fastrand::usize(1..=target.tokens));
    let is_slow = (LEAVING..LEAVING + SLOW).contains(&kind);
    let (mut last, mut silence) = (Instant::now(), Duration::ZERO);
    let heard = converse(target, prompt, deadline, &mut |answer| {
        silence = silence.max(last.elapsed());
        if leaves_at.is_some_and(|at| answer.pieces.len() >= at) {
            return ControlFlow::Break(());
        }
        if is_slow {
            std::thread::sleep(PAUSE);
        }
        last = Instant::now();
        ControlFlow::Continue(())
    });
    silence = silence.max(last.elapsed());
    let refused = heard.is_err();
    let mut outcomes = outcomes.lock().expect("no panic holds this lock");
    outcomes.longest_silence_s = outcomes.longest_silence_s.max(silence.as_secs_f64());
    match heard {
        Ok(None) => outcomes.left += 1,
        Ok(Some(heard)) if heard.text == *answer => outcomes.right += 1,
        Ok(Some(heard)) => {
            outcomes.wrong += 1;
            outcomes.note(&format!("wrong: {prompt:?}: {:?} is not {answer:?}", heard.text));
        }
        Err(error) => outcomes.count_error(&error),
    }
    drop(outcomes);
    if refused {
        std::thread::sleep(BACK_OFF);
    }
}

impl Outcomes {
    /// Questions asked.
    pub fn asked(&self) -> u64 {
        self.right + self.errors + self.left + self.wrong + self.silent + self.cut
    }

    fn count_error(&mut self, error: &anyhow::Error) {
        let io = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        let text = format!("{error:#}");
        let said = ["the server failed", "the server refused"];
        match io {
            Some(ErrorKind::WouldBlock | ErrorKind::TimedOut) => self.silent += 1,
            _ if said.iter().any(|said| text.contains(said)) => self.errors += 1,
            _ => self.cut += 1,
        }
        self.note(&text);
    }

    /// Keeps one example of each kind: texts that begin alike are one kind.
    fn note(&mut self, text: &str) {
        const KINDS: usize = 20;
        let kind = |text: &str| text.chars().take(120).collect::<String>();
        let is_new = !self.examples.iter().any(|known| kind(known) == kind(text));
        if is_new && self.examples.len() < KINDS {
            self.examples.push(text.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_apart() {
        let mut outcomes = Outcomes::default();
        outcomes.count_error(&anyhow::anyhow!("the server failed: {{\"error\": 1}}"));
        outcomes.count_error(&anyhow::anyhow!("the server refused: HTTP/1.1 503"));
        outcomes.count_error(&anyhow::anyhow!("an answer was cut off"));
        outcomes.count_error(&std::io::Error::from(ErrorKind::WouldBlock).into());
        let Outcomes { errors, cut, silent, .. } = outcomes;
        assert_eq!((errors, cut, silent, outcomes.asked()), (2, 1, 1, 4));
        assert_eq!(outcomes.examples.len(), 4);
    }
}
