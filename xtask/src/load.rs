//! Many streams at once against a running OpenAI-compatible server, ours or another:
//! tokens per second over all, time to the first token, and whether any answer differs
//! from the one the same question gets alone. One thread per stream, plain sockets.

#![allow(clippy::disallowed_methods, reason = "a load generator owns threads and a clock")]

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// First line of the CSV.
pub const HEADER: &str = "streams,requests,tokens,seconds,tokens_per_s,ttft_ms_p50,ttft_ms_p99,between_ms_p50,between_ms_p99,mixed_up";

/// Longest silence of a server before a request counts as lost.
const PATIENCE: Duration = Duration::from_secs(120);

/// Subjects of the questions: no two streams of a round share more than a word.
const SUBJECTS: [&str; 16] = [
    "Lighthouses",
    "Bread",
    "The moon",
    "Violins",
    "Glaciers",
    "Chess",
    "Bees",
    "Printing",
    "Rivers",
    "Clocks",
    "Tea",
    "Bridges",
    "Owls",
    "Salt",
    "Kites",
    "Maps",
];

/// Whom to ask what.
#[derive(Debug, Clone)]
pub struct Target {
    /// Host and port.
    pub address: String,
    /// Requests of each stream.
    pub requests: usize,
    /// Tokens of each answer.
    pub tokens: usize,
    /// Model's name, if the server wants one.
    pub model: Option<String>,
    /// Key, if the server wants one.
    pub key: Option<String>,
    /// Compare every answer with the one given alone.
    pub check: bool,
}

/// What one number of streams took.
#[derive(Debug)]
pub struct Round {
    streams: usize,
    requests: usize,
    tokens: usize,
    time: Duration,
    first_us: Histogram<u64>,
    between_us: Histogram<u64>,
    /// Answers that differ from those given alone.
    pub mixed_up: usize,
}

/// One answer: its text, and when each piece came.
struct Answer {
    text: String,
    asked: Instant,
    pieces: Vec<Instant>,
}

/// Runs `streams` at once to their end.
pub fn round(target: &Target, streams: usize) -> Result<Round> {
    let prompts: Vec<Vec<String>> = (0..streams)
        .map(|stream| (0..target.requests).map(|request| prompt(stream, request)).collect())
        .collect();
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
        tokens: answers.iter().map(|answer| answer.pieces.len()).sum(),
        time,
        first_us: Histogram::new(3)?,
        between_us: Histogram::new(3)?,
        mixed_up: answers.iter().zip(&alone).filter(differ).count(),
    };
    for answer in &answers {
        let us = |from: Instant, to: Instant| (to - from).as_micros() as u64;
        if let Some(&first) = answer.pieces.first() {
            round.first_us.record(us(answer.asked, first))?;
        }
        for pair in answer.pieces.windows(2) {
            round.between_us.record(us(pair[0], pair[1]))?;
        }
    }
    Ok(round)
}

impl Round {
    /// One line of the CSV.
    pub fn row(&self) -> String {
        let ms = |histogram: &Histogram<u64>, quantile| {
            histogram.value_at_quantile(quantile) as f64 / 1e3
        };
        let seconds = self.time.as_secs_f64();
        format!(
            "{},{},{},{seconds:.2},{:.1},{:.1},{:.1},{:.1},{:.1},{}",
            self.streams,
            self.requests,
            self.tokens,
            self.tokens as f64 / seconds,
            ms(&self.first_us, 0.5),
            ms(&self.first_us, 0.99),
            ms(&self.between_us, 0.5),
            ms(&self.between_us, 0.99),
            self.mixed_up,
        )
    }
}

fn prompt(stream: usize, request: usize) -> String {
    let subject = SUBJECTS[(stream + 5 * request) % SUBJECTS.len()];
    format!("{subject}, chapter {}, page {}. It is well known that", stream + 1, request + 1)
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

/// Asks by HTTP/1.0, whose answers end with the connection.
fn ask(target: &Target, prompt: &str) -> Result<Answer> {
    let body = body(target, prompt).to_string();
    let key = target.key.as_ref().map(|key| format!("Authorization: Bearer {key}\r\n"));
    let asked = Instant::now();
    let mut stream = TcpStream::connect(&target.address).context("the server does not listen")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "POST /v1/completions HTTP/1.0\r\nHost: {}\r\nContent-Type: application/json\r\n{}\
         Content-Length: {}\r\n\r\n{body}",
        target.address,
        key.unwrap_or_default(),
        body.len()
    )?;
    let mut answer = Answer { text: String::new(), asked, pieces: Vec::new() };
    let mut lines = BufReader::new(stream).lines();
    let status = lines.next().context("the server said nothing")??;
    ensure!(status.contains(" 200"), "the server refused: {status}");
    for line in lines {
        let line = line?;
        let Some(data) = line.strip_prefix("data: ") else { continue };
        if data == "[DONE]" {
            return Ok(answer);
        }
        let chunk: Value = serde_json::from_str(data)?;
        ensure!(chunk["error"].is_null(), "the server failed: {data}");
        if let Some(text) = chunk["choices"][0]["text"].as_str().filter(|text| !text.is_empty()) {
            answer.text.push_str(text);
            answer.pieces.push(Instant::now());
        }
    }
    anyhow::bail!("an answer was cut off")
}

fn body(target: &Target, prompt: &str) -> Value {
    let mut body = json!({
        "prompt": prompt, "max_tokens": target.tokens, "temperature": 0, "stream": true,
        "ignore_eos": true,
    });
    if let Some(model) = &target.model {
        body["model"] = json!(model);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_of_a_round_differ() {
        let prompts: std::collections::HashSet<_> =
            (0..64).flat_map(|stream| (0..3).map(move |request| prompt(stream, request))).collect();
        assert_eq!(prompts.len(), 64 * 3);
    }

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
        assert_eq!(round.row().split(',').count(), HEADER.split(',').count());
        assert!(round.row().starts_with("4,8,64,2.00,32.0,"));
    }
}
