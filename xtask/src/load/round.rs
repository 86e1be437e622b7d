//! So many streams at once against one server, to their end. One thread per stream.

#![allow(clippy::disallowed_methods, reason = "a load generator owns threads and a clock")]

use super::{Answer, Target, ask, prompt};
use anyhow::Result;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// First line of the CSV.
pub const HEADER: &str = "streams,requests,tokens,seconds,tokens_per_s,ttft_ms_p50,ttft_ms_p99,between_ms_p50,between_ms_p99,mixed_up";

/// What one number of streams took.
#[derive(Debug)]
pub struct Round {
    streams: usize,
    requests: usize,
    tokens: usize,
    time: Duration,
    first_us: Histogram<u64>,
    between_us: Histogram<u64>,
    mixed_up: usize,
}

/// The same as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Streams at once.
    pub streams: usize,
    /// Answers, all of them whole.
    pub requests: usize,
    /// Tokens of all answers.
    pub tokens: usize,
    /// From the first question to the end of the last answer.
    pub seconds: f64,
    /// Tokens of all streams together.
    pub tokens_per_s: f64,
    /// Time to the first piece of an answer.
    pub ttft_ms_p50: f64,
    /// The same, of the slowest in a hundred.
    pub ttft_ms_p99: f64,
    /// Time between two pieces.
    pub between_ms_p50: f64,
    /// The same, of the slowest in a hundred.
    pub between_ms_p99: f64,
    /// Answers that differ from those given alone; 0 when not compared.
    pub mixed_up: usize,
}

/// Runs `streams` at once to their end.
pub fn round(target: &Target, streams: usize) -> Result<Round> {
    let of_stream = |stream| {
        let requests = 0..target.requests;
        requests.map(move |request| prompt(target.edition, stream, request)).collect()
    };
    let prompts: Vec<Vec<String>> = (0..streams).map(of_stream).collect();
    let alone = match target.check {
        true => all_alone(target, &prompts)?,
        false => Vec::new(),
    };
    let start = Instant::now();
    let answers = together(target, &prompts)?;
    let time = start.elapsed();
    let differ = |(answer, alone): &(&Answer, &String)| answer.text != **alone;
    let mut round = Round {
        streams,
        requests: answers.len(),
        tokens: answers.iter().map(|answer| answer.tokens).sum(),
        time,
        first_us: Histogram::new(3)?,
        between_us: Histogram::new(3)?,
        mixed_up: answers.iter().zip(&alone).filter(differ).count(),
    };
    for answer in &answers {
        round.time_of(answer)?;
    }
    Ok(round)
}

impl Round {
    /// As numbers.
    pub fn figures(&self) -> Figures {
        let ms = |histogram: &Histogram<u64>, quantile| {
            histogram.value_at_quantile(quantile) as f64 / 1e3
        };
        let seconds = self.time.as_secs_f64();
        Figures {
            streams: self.streams,
            requests: self.requests,
            tokens: self.tokens,
            seconds,
            tokens_per_s: self.tokens as f64 / seconds,
            ttft_ms_p50: ms(&self.first_us, 0.5),
            ttft_ms_p99: ms(&self.first_us, 0.99),
            between_ms_p50: ms(&self.between_us, 0.5),
            between_ms_p99: ms(&self.between_us, 0.99),
            mixed_up: self.mixed_up,
        }
    }

    fn time_of(&mut self, answer: &Answer) -> Result<()> {
        let us = |from: Instant, to: Instant| (to - from).as_micros() as u64;
        if let Some(&first) = answer.pieces.first() {
            self.first_us.record(us(answer.asked, first))?;
        }
        for pair in answer.pieces.windows(2) {
            self.between_us.record(us(pair[0], pair[1]))?;
        }
        Ok(())
    }
}

impl Figures {
    /// One line of the CSV.
    pub fn row(&self) -> String {
        let Self { streams, requests, tokens, seconds, mixed_up, .. } = self;
        format!(
            "{streams},{requests},{tokens},{seconds:.2},{:.1},{:.1},{:.1},{:.1},{:.1},{mixed_up}",
            self.tokens_per_s,
            self.ttft_ms_p50,
            self.ttft_ms_p99,
            self.between_ms_p50,
            self.between_ms_p99,
        )
    }
}

fn all_alone(target: &Target, prompts: &[Vec<String>]) -> Result<Vec<String>> {
    prompts.iter().flatten().map(|prompt| Ok(ask(target, prompt)?.text)).collect()
}

/// Every stream in a thread of its own; answers in the order of the prompts.
fn together(target: &Target, prompts: &[Vec<String>]) -> Result<Vec<Answer>> {
    std::thread::scope(|scope| {
        let stream = |prompts: &'_ Vec<String>| {
            prompts.iter().map(|prompt| ask(target, prompt)).collect::<Result<Vec<_>>>()
        };
        let running: Vec<_> =
            prompts.iter().map(|prompts| scope.spawn(move || stream(prompts))).collect();
        let mut answers = Vec::new();
        for stream in running {
            answers.extend(stream.join().expect("asking does not panic")?);
        }
        Ok(answers)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_value_for_every_column() {
        let round = Round {
            streams: 4,
            requests: 8,
            tokens: 64,
            time: Duration::from_secs(2),
            first_us: Histogram::new(3).unwrap(),
            between_us: Histogram::new(3).unwrap(),
            mixed_up: 0,
        };
        let row = round.figures().row();
        assert_eq!(row.split(',').count(), HEADER.split(',').count());
        assert!(row.starts_with("4,8,64,2.00,32.0,"), "{row}");
    }
}
