//! Requests and answers of the hub, and the files they are about.

use serde_json::Value;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// A request.
#[derive(Debug, Clone)]
pub struct Request {
    /// Whether the endpoint was asked, or the host of the bytes.
    pub endpoint: bool,
    pub method: String,
    /// With its query.
    pub path: String,
    pub(super) headers: Vec<(String, String)>,
}

impl Request {
    /// A header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: ReplyBody,
    /// Whether its first byte is another one.
    pub(super) damaged: bool,
}

#[derive(Debug, Clone)]
pub(super) enum ReplyBody {
    Bytes(Vec<u8>),
    File { stored: Stored, from: u64, len: u64 },
    Endless,
}

impl Reply {
    /// No body.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: ReplyBody::Bytes(Vec::new()), damaged: false }
    }

    /// A text.
    pub fn bytes(status: u16, bytes: Vec<u8>) -> Self {
        Self { body: ReplyBody::Bytes(bytes), ..Self::status(status) }
    }

    /// JSON.
    pub fn json(value: &Value) -> Self {
        Self::bytes(200, value.to_string().into_bytes()).with("content-type", "application/json")
    }

    /// Blanks without an end.
    pub fn endless() -> Self {
        Self { body: ReplyBody::Endless, ..Self::status(200) }
    }

    pub(super) fn file(status: u16, stored: Stored, from: u64, len: u64) -> Self {
        Self { body: ReplyBody::File { stored, from, len }, ..Self::status(status) }
    }

    /// With one more header.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A file of a repository.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) file: PathBuf,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Stored {
    pub(super) fn read(&self, from: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut file = File::open(&self.file)?;
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(buffer)
    }
}
