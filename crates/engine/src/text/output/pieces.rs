//! Where readers put what they have read, in order. Reads nothing itself.

use super::parsed::{Call, Said};

/// Whether calls are said while they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// Each at once, when it is known to be one; what turns out to be none is text.
    Whole,
    /// Each as soon as its name is certain, its arguments as they come. One that is cut off or turns
    /// out to be wrong stays what it is, without its end; what is left of it is text.
    InPieces,
}

/// Pieces so far.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    row: Vec<Said>,
}

impl Pieces {
    pub(super) fn text(&mut self, more: &str) {
        match self.row.last_mut() {
            Some(Said::Text(text)) => text.push_str(more),
            _ if more.is_empty() => {}
            _ => self.row.push(Said::Text(more.to_owned())),
        }
    }

    pub(super) fn thought(&mut self, more: &str) {
        match self.row.last_mut() {
            Some(Said::Thought(thought)) => thought.push_str(more),
            _ if more.is_empty() => {}
            _ => self.row.push(Said::Thought(more.to_owned())),
        }
    }

    pub(super) fn begin(&mut self, name: &str) {
        self.row.push(Said::Call(name.to_owned()));
    }

    pub(super) fn arguments(&mut self, more: &str) {
        match self.row.last_mut() {
            Some(Said::Arguments(arguments)) => arguments.push_str(more),
            _ if more.is_empty() => {}
            _ => self.row.push(Said::Arguments(more.to_owned())),
        }
    }

    pub(super) fn end(&mut self) {
        self.row.push(Said::CallEnd);
    }

    /// A whole call.
    pub(super) fn call(&mut self, call: &Call) {
        self.begin(&call.name);
        self.arguments(&call.arguments);
        self.end();
    }

    pub(super) fn row(self) -> Vec<Said> {
        self.row
    }
}
