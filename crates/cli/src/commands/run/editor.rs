//! Typing: lines with editing and history. History is a file of its own, readable by its owner
//! alone; what cannot be kept is a warning.
//!
//! ```text
//! <state>/motley/history.jsonl    one JSON string per entry, the oldest first
//! ```

use crate::files::write_private;
use crate::state::folder;
use anyhow::{Context, Result};
use rustyline::error::ReadlineError;
use rustyline::history::{History, MemHistory, SearchDirection};
use rustyline::{Config, Editor as LineEditor};
use std::path::{Path, PathBuf};

/// Entries kept.
const ENTRIES_MAX: usize = 1000;
/// Bytes of a history file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

const TERMINAL: &str = "cannot read from the terminal; ask once with -p instead";

/// Reads lines from a terminal.
pub(super) struct Editor {
    lines: LineEditor<(), MemHistory>,
    /// Where history is kept; `None` where it is not.
    file: Option<PathBuf>,
}

/// What somebody typed.
pub(super) enum Typed {
    Line(String),
    /// An empty line, or Ctrl-C.
    Nothing,
    End,
}

impl Editor {
    /// With the history of earlier chats, if it is `kept`.
    pub(super) fn open(kept: bool) -> Result<Self> {
        let config = Config::builder().max_history_size(ENTRIES_MAX)?.build();
        let history = MemHistory::with_config(&config);
        let mut lines = LineEditor::with_history(config, history).context(TERMINAL)?;
        let file = kept.then(|| folder().ok()).flatten().map(|folder| folder.join("history.jsonl"));
        for entry in file.iter().flat_map(|file| read(file)) {
            // A full or repeated entry is not added.
            let _ = lines.add_history_entry(entry);
        }
        Ok(Self { lines, file })
    }

    /// The next line; one that ends with `\` goes on in the next.
    pub(super) fn read(&mut self) -> Result<Typed> {
        let mut text = String::new();
        loop {
            let prompt = if text.is_empty() { "> " } else { "… " };
            let line = match self.lines.readline(prompt) {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => return Ok(Typed::Nothing),
                Err(ReadlineError::Eof) => return Ok(Typed::End),
                Err(error) => return Err(error).context(TERMINAL),
            };
            if let Some(begun) = line.strip_suffix('\\') {
                text.push_str(begun);
                text.push('\n');
                continue;
            }
            text.push_str(&line);
            break;
        }
        if text.trim().is_empty() {
            return Ok(Typed::Nothing);
        }
        let _ = self.lines.add_history_entry(&text);
        Ok(Typed::Line(text))
    }

    /// Keeps the history.
    pub(super) fn keep(&self) {
        let Some(file) = &self.file else { return };
        if let Err(error) = self.write(file) {
            tracing::warn!(
                "what was typed is not kept: {error:#}; MOTLEY_STATE names another folder, \
                 --no-record keeps nothing"
            );
        }
    }

    fn write(&self, path: &Path) -> Result<()> {
        let history = self.lines.history();
        let mut text = String::new();
        for at in 0..history.len() {
            if let Ok(Some(found)) = history.get(at, SearchDirection::Forward) {
                text += &serde_json::to_string(&found.entry)?;
                text.push('\n');
            }
        }
        write_private(path, &text)
    }
}

/// Entries of a history file; none where there is none, and those that are no JSON left out.
fn read(path: &Path) -> Vec<String> {
    let small = std::fs::metadata(path).is_ok_and(|found| found.len() <= FILE_BYTES_MAX);
    let text = small.then(|| std::fs::read_to_string(path).ok()).flatten().unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
