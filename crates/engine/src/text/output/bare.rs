//! An answer that is nothing but calls, known by its first character; anything else may have calls
//! behind a mark.

use super::blocks::{Block, Blocks, Frame};
use super::draft::Draft;
use super::parsed::{Call, Said};
use super::pieces::{Calls, Pieces};
use super::types::ArgumentTypes;
use std::sync::Arc;

/// How a format writes such an answer.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) first: char,
    /// The calls, if the answer is nothing else.
    pub(super) read: fn(&str, &ArgumentTypes) -> Option<Vec<Call>>,
    /// Adds what is certain of an answer that goes on.
    pub(super) draft: fn(&Block<'_>, &mut Draft),
    /// Calls behind a mark.
    pub(super) frame: Frame,
}

#[derive(Debug)]
pub(super) struct Bare {
    form: &'static Form,
    /// An answer that may be calls, or white space so far.
    held: String,
    place: Place,
    marked: Blocks,
    types: Arc<ArgumentTypes>,
    mode: Calls,
    draft: Draft,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Before,
    Calls,
    Text,
}

impl Bare {
    pub(super) fn new(form: &'static Form, types: Arc<ArgumentTypes>, mode: Calls) -> Self {
        let marked = Blocks::new(&form.frame, Arc::clone(&types), mode);
        let (held, draft) = (String::new(), Draft::default());
        Self { form, held, place: Place::Before, marked, types, mode, draft }
    }

    pub(super) fn push(&mut self, text: &str) -> Vec<Said> {
        if self.place == Place::Text {
            return self.marked.push(text);
        }
        self.held.push_str(text);
        if self.place == Place::Before {
            self.place = match self.held.trim_start().chars().next() {
                None => Place::Before,
                Some(first) if first == self.form.first => Place::Calls,
                Some(_) => Place::Text,
            };
        }
        match self.place {
            Place::Text => self.marked.push(&std::mem::take(&mut self.held)),
            Place::Before => Vec::new(),
            Place::Calls => self.calls(),
        }
    }

    pub(super) fn finish(&mut self) -> Vec<Said> {
        let mut held = std::mem::take(&mut self.held);
        let draft = std::mem::take(&mut self.draft);
        if let Some(calls) = (self.form.read)(&held, &self.types) {
            let mut pieces = Pieces::default();
            draft.confirm(&calls, &mut pieces);
            return pieces.row();
        }
        if draft.is_said() {
            held.drain(..draft.at);
        }
        let mut said = self.marked.push(&held);
        said.extend(self.marked.finish());
        said
    }

    /// What is certain of calls so far.
    fn calls(&mut self) -> Vec<Said> {
        let mut pieces = Pieces::default();
        let block = Block { text: &self.held, types: &self.types, last: false };
        (self.form.draft)(&block, &mut self.draft);
        if self.mode == Calls::InPieces {
            self.draft.say(&mut pieces);
        }
        pieces.row()
    }
}
