//! What a client does between handing its request in and going: it looks at its events at its own
//! pace, leaves perhaps, and holds what it is told against what it must be told.

use crate::clients::State;
use crate::events::{Event, Events};
use crate::plan::DEADLINE;
use motley_engine::SubmitError;
use motley_engine::batching::{AnswerTimes, Done, Door, Event as Said, Health, Refused};
use std::time::Duration;
use tokio::sync::mpsc::error::TryRecvError;

/// From this time between two looks on a client counts as slow.
const SLOW: Duration = Duration::from_millis(10);

/// What a client saw when it looked.
enum Seen {
    More,
    Nothing,
    Done(Done),
    Failed(String),
    Silence,
}

impl Events {
    /// Hands a prepared request to the engine.
    pub(crate) fn hand_in(&mut self, index: usize) {
        let now = self.now();
        let Some(door) = self.clients.door.clone() else { return };
        let client = &mut self.clients.clients[index];
        match door.submit(client.ask()) {
            Ok(events) => {
                (client.events, client.since) = (Some(events), now);
                client.state = State::Waiting;
                let pace = client.plan.pace;
                self.counts.slow_clients += u64::from(pace >= SLOW);
                self.after(pace, Event::Looks(index));
            }
            Err(error) => {
                client.go();
                self.refused(index, &door, error);
            }
        }
    }

    /// A refusal must have its reason.
    fn refused(&mut self, index: usize, door: &Door, error: SubmitError) {
        self.counts.refused += 1;
        let tokens = self.clients.clients[index].plan.prompt.len();
        let just = match error {
            SubmitError::Refused(Refused::TooLong { .. }) => tokens >= door.longest() as usize,
            SubmitError::Refused(Refused::QueueFull { waiting }) => {
                waiting >= door.options().waiting
            }
            SubmitError::Dead => matches!(door.health(), Health::Dead { .. }),
            _ => false,
        };
        self.say(|| format!("client {index} is refused: {error}"));
        if !just {
            self.broken(|| format!("client {index} was refused without reason: {error}"));
        }
    }

    pub(crate) fn leaves(&mut self, index: usize) {
        let client = &mut self.clients.clients[index];
        let ticket = match client.state {
            State::Coming | State::Gone => return,
            State::Waiting => None,
            State::Sending(ticket) | State::Queued(ticket) | State::Preparing(ticket) => {
                Some(ticket)
            }
        };
        client.go();
        self.counts.clients_left += 1;
        ticket.into_iter().for_each(|ticket| self.leaves_admission(ticket));
    }

    pub(crate) fn looks(&mut self, index: usize) {
        if self.clients.clients[index].state != State::Waiting {
            return;
        }
        loop {
            match self.look(index) {
                Seen::More => {}
                Seen::Nothing => break,
                Seen::Done(done) => return self.answered(index, done),
                Seen::Failed(reason) => return self.failed(index, &reason),
                Seen::Silence => {
                    return self.broken(|| format!("client {index} heard no end of its answer"));
                }
            }
        }
        let client = &self.clients.clients[index];
        let (waited, pace) = (self.now() - client.since, client.plan.pace);
        if waited > DEADLINE {
            return self.broken(|| format!("client {index} has waited {waited:?}"));
        }
        self.after(pace, Event::Looks(index));
    }

    fn look(&mut self, index: usize) -> Seen {
        let client = &mut self.clients.clients[index];
        let Some(events) = &mut client.events else { return Seen::Silence };
        match events.try_recv() {
            Ok(Said::Piece(piece)) => {
                client.text.push_str(&piece.text);
                Seen::More
            }
            Ok(Said::Done(done)) => Seen::Done(done),
            Ok(Said::Failed(reason)) => Seen::Failed(reason),
            // Nobody here has a deadline, or asks for a vector.
            Ok(Said::Late | Said::Vector(_)) => Seen::Silence,
            Err(TryRecvError::Empty) => Seen::Nothing,
            Err(TryRecvError::Disconnected) => Seen::Silence,
        }
    }

    fn answered(&mut self, index: usize, done: Done) {
        self.ended(index);
        self.check_times(index, done.times);
        let client = &mut self.clients.clients[index];
        client.go();
        let expected = &client.expected;
        let right = client.text == expected.text
            && done.reason == expected.reason
            && done.answer_tokens == expected.tokens
            && done.prompt_tokens == client.plan.prompt.len();
        if right {
            self.counts.answered_right += 1;
        } else {
            let words = format!(
                "client {index} was told {:?} ({done:?}), right is {:?} ({:?}, {} tokens)",
                client.text, expected.text, expected.reason, expected.tokens
            );
            self.broken(|| words);
        }
    }

    /// Its stages are all of its time in the engine, and what they waited for the disk is in them.
    fn check_times(&mut self, index: usize, times: AnswerTimes) {
        let all = times.waited + times.prompt + times.answer;
        let since = self.now() - self.clients.clients[index].since;
        if all > since || times.prompt_disk > times.prompt || times.answer_disk > times.answer {
            self.broken(|| format!("client {index} waited {since:?}, and was told {times:?}"));
        }
    }

    fn failed(&mut self, index: usize, reason: &str) {
        self.ended(index);
        self.clients.clients[index].go();
        self.counts.ended_in_error += 1;
        self.say(|| format!("client {index} fails: {reason}"));
        let harmful = self.counts.harmful() + self.experts().disk.counts().harmful();
        if harmful == 0 {
            self.broken(|| format!("client {index} failed without a fault: {reason}"));
        }
    }

    fn ended(&mut self, index: usize) {
        let client = &self.clients.clients[index];
        let waited = self.now() - client.since;
        if client.plan.pace < SLOW {
            self.clients.longest_wait = self.clients.longest_wait.max(waited);
        }
    }
}
