//! One request of a load generator: the question, and the answer as it comes in.

#![allow(clippy::disallowed_methods, reason = "a load generator reads the clock")]

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Longest silence of a server before a request counts as lost.
const PATIENCE: Duration = Duration::from_secs(120);

/// Subjects of the questions: no two streams of a round share more than a few words.
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
    /// Address of this machine to ask from, where it matters who asks.
    pub from: Option<IpAddr>,
    /// Key, if the server wants one.
    pub key: Option<String>,
    /// Compare every answer with the one given alone.
    pub check: bool,
    /// Stands in every question: another edition finds none of the last one's prefixes.
    pub edition: usize,
}

/// One answer: its text, and when each piece came.
#[derive(Debug)]
pub struct Answer {
    /// All of it.
    pub text: String,
    /// When it was asked for.
    pub asked: Instant,
    /// When each piece of text came.
    pub pieces: Vec<Instant>,
    /// Tokens of it as the server counts them; pieces where it does not.
    pub tokens: usize,
}

/// What `stream` asks as its `request`th question.
pub fn prompt(edition: usize, stream: usize, request: usize) -> String {
    let subject = SUBJECTS[(stream + 5 * request) % SUBJECTS.len()];
    let (chapter, page) = (stream + 1, request + 1);
    format!("{subject} {edition}, chapter {chapter}, page {page}. It is well known that")
}

/// Asks on a connection of its own and reads to the end of the stream.
pub fn ask(target: &Target, prompt: &str) -> Result<Answer> {
    let whole = converse(target, prompt, PATIENCE, &mut |_| ControlFlow::Continue(()))?;
    whole.context("nobody left")
}

/// As [`ask`], with no silence longer than `patience`; `on_piece` sees each piece of text and may
/// leave, which gives `None`.
pub fn converse(
    target: &Target,
    prompt: &str,
    patience: Duration,
    on_piece: &mut dyn FnMut(&Answer) -> ControlFlow<()>,
) -> Result<Option<Answer>> {
    let asked = Instant::now();
    let stream = send(target, prompt, patience)?;
    let mut answer = Answer { text: String::new(), asked, pieces: Vec::new(), tokens: 0 };
    let mut lines = BufReader::new(stream).lines();
    let status = lines.next().context("the server said nothing")??;
    ensure!(status.contains(" 200"), "the server refused: {status}");
    for line in lines {
        // Events end with an empty line, so a chunk of the transfer never cuts one.
        let line = line?;
        let Some(data) = line.strip_prefix("data: ") else { continue };
        if data == "[DONE]" {
            answer.tokens = answer.tokens.max(answer.pieces.len());
            return Ok(Some(answer));
        }
        answer.take(data)?;
        if on_piece(&answer).is_break() {
            return Ok(None);
        }
    }
    anyhow::bail!("an answer was cut off")
}

fn connect(target: &Target) -> Result<TcpStream> {
    let Some(from) = target.from else { return Ok(TcpStream::connect(&target.address)?) };
    let address: SocketAddr = target.address.parse()?;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(from, 0).into())?;
    socket.connect(&address.into())?;
    Ok(socket.into())
}

fn send(target: &Target, prompt: &str, patience: Duration) -> Result<TcpStream> {
    let body = body(target, prompt).to_string();
    let key = target.key.as_ref().map(|key| format!("Authorization: Bearer {key}\r\n"));
    let mut stream = connect(target).context("the server does not listen")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
         Content-Type: application/json\r\n{}Content-Length: {}\r\n\r\n",
        target.address,
        key.unwrap_or_default(),
        body.len()
    );
    stream.write_all((head + &body).as_bytes())?;
    Ok(stream)
}

impl Answer {
    fn take(&mut self, data: &str) -> Result<()> {
        let chunk: Value = serde_json::from_str(data)?;
        ensure!(chunk["error"].is_null(), "the server failed: {data}");
        if let Some(tokens) = chunk["usage"]["completion_tokens"].as_u64() {
            self.tokens = tokens as usize;
        }
        if let Some(text) = chunk["choices"][0]["text"].as_str().filter(|text| !text.is_empty()) {
            self.text.push_str(text);
            self.pieces.push(Instant::now());
        }
        Ok(())
    }
}

fn body(target: &Target, prompt: &str) -> Value {
    let mut body = json!({
        "prompt": prompt, "max_tokens": target.tokens, "temperature": 0, "stream": true,
        "ignore_eos": true, "stream_options": {"include_usage": true},
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
    fn no_question_is_asked_twice() {
        let all = |edition| {
            let streams = (0..64).flat_map(|stream| (0..3).map(move |request| (stream, request)));
            streams.map(move |(stream, request)| prompt(edition, stream, request))
        };
        let prompts: std::collections::HashSet<_> = all(0).chain(all(1)).collect();
        assert_eq!(prompts.len(), 2 * 64 * 3);
    }

    #[test]
    fn tokens_are_counted_by_the_server_when_it_counts() {
        let mut answer =
            Answer { text: String::new(), asked: Instant::now(), pieces: Vec::new(), tokens: 0 };
        answer.take(r#"{"choices":[{"text":"a "}]}"#).unwrap();
        answer.take(r#"{"choices":[{"text":""}]}"#).unwrap();
        answer.take(r#"{"choices":[],"usage":{"completion_tokens":3}}"#).unwrap();
        assert_eq!((answer.text.as_str(), answer.pieces.len(), answer.tokens), ("a ", 1, 3));
        assert!(answer.take(r#"{"error":{"message":"no"}}"#).is_err());
    }
}
