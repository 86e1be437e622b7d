//! One hostile request and what can come of it. Sends nothing.

use std::net::TcpStream;

/// One hostile request.
#[derive(Debug, Clone)]
pub struct Attack {
    pub name: &'static str,
    /// What is sent, headers included.
    pub bytes: Vec<u8>,
    pub then: Then,
    /// Statuses a sound server may answer with.
    pub statuses: &'static [u16],
    /// Whether it may close the connection without a word: what was sent is no HTTP, or more
    /// than it reads.
    pub may_close: bool,
}

/// What the sender does when all is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Reads the answer.
    Read,
    /// Says that nothing more comes, and reads the answer.
    EndAndRead,
    /// Goes away.
    Leave,
    /// Stays and reads nothing.
    Stall,
}

/// What came of an attack.
#[derive(Debug)]
pub enum Outcome {
    /// An HTTP response.
    Answered { status: u16, body: String },
    /// The server closed the connection without a word.
    Closed,
    /// The sender went away.
    Left,
    /// The sender stays; the connection lives until this is dropped or the server ends it.
    Stalled(TcpStream),
    /// Nothing came, or something that is no HTTP.
    Lost(String),
}

impl Attack {
    /// Whether a sound server may let it end so.
    pub fn allows(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Answered { status, body } => {
                let explains = *status < 400 || body.is_empty() || body.contains("\"message\"");
                self.statuses.contains(status) && explains
            }
            Outcome::Closed => self.may_close,
            Outcome::Left | Outcome::Stalled(_) => true,
            Outcome::Lost(_) => false,
        }
    }
}

/// A well-formed request to close the connection after.
pub fn post(path: &str, body: &str) -> Vec<u8> {
    let mut request = head(path, &body.len().to_string());
    request.extend(body.as_bytes());
    request
}

/// The head of a request whose body says to have `length` bytes.
pub fn head(path: &str, length: &str) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    head.into_bytes()
}
