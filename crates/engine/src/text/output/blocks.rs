//! Calls that stand between marks, any number of times, text before, between and after. Which marks,
//! and how what stands between them is read, each format says in a `Frame`.
//!
//! ```text
//!            mark that opens
//!   Outside ────────────────▶ Block ──▶ at a mark that closes, or at the end of the output:
//!      ▲                        ▲         calls   → Outside
//!      └────────────────────────┼──────   no call → its text, to the letter → Outside
//!                               └──────   not yet (the mark was part of a value)
//! ```
//!
//! What is certain of a block's calls before that is its draft, which may be said as it grows.

use super::draft::Draft;
use super::marks::{Found, Marks};
use super::parsed::{Call, Said};
use super::pieces::{Calls, Pieces};
use super::types::ArgumentTypes;
use std::sync::Arc;

/// Closing marks that a block may have inside its values; with more of them it is text.
const CLOSES_MAX: usize = 100;

/// The marks of a format, and how it is read.
#[derive(Debug)]
pub(super) struct Frame {
    /// Marks a block begins with; they are part of it.
    pub(super) open: &'static [&'static str],
    /// Marks that may end a block, and are part of it. None: the end of the output ends it.
    pub(super) close: &'static [&'static str],
    /// Marks that mean nothing when they follow a call: a wrapper's end, a call closed twice.
    pub(super) after: &'static [&'static str],
    pub(super) read: fn(&Block<'_>) -> Read,
    /// Adds what is certain of a block that goes on.
    pub(super) draft: fn(&Block<'_>, &mut Draft),
}

/// What is to be read.
pub(super) struct Block<'a> {
    /// From the opening mark to a closing one, both included.
    pub(super) text: &'a str,
    pub(super) types: &'a ArgumentTypes,
    /// Whether nothing follows.
    pub(super) last: bool,
}

/// What a block is.
pub(super) enum Read {
    /// Not clear before more of it is there.
    More,
    /// Calls, in so many bytes of it; what follows is no part of them.
    Calls(Vec<Call>, usize),
    Text,
}

impl Read {
    /// A block that is calls from its first byte to its last.
    pub(super) fn whole(calls: Option<Vec<Call>>, block: &Block<'_>) -> Self {
        match calls {
            Some(calls) if !calls.is_empty() => Self::Calls(calls, block.text.len()),
            _ => Self::Text,
        }
    }
}

/// Reads output with blocks of calls.
#[derive(Debug)]
pub(super) struct Blocks {
    frame: &'static Frame,
    types: Arc<ArgumentTypes>,
    marks: Marks,
    /// Marks that mean something outside a block.
    outside: Vec<&'static str>,
    mode: Calls,
    inside: Option<Inside>,
    called: bool,
    /// White space after a call: text when other text follows, nothing before the next call.
    blank: String,
    /// Whether other text came since the last mark.
    said: bool,
}

/// A block so far.
#[derive(Debug, Default)]
struct Inside {
    text: String,
    /// Closing marks in its values.
    closes: usize,
    draft: Draft,
}

impl Blocks {
    pub(super) fn new(frame: &'static Frame, types: Arc<ArgumentTypes>, mode: Calls) -> Self {
        let outside = [frame.open, frame.after].concat();
        let (marks, blank) = (Marks::default(), String::new());
        Self { frame, types, marks, outside, mode, inside: None, called: false, blank, said: false }
    }

    pub(super) fn push(&mut self, text: &str) -> Vec<Said> {
        self.marks.push(text);
        let mut pieces = Pieces::default();
        self.read(&mut pieces);
        pieces.row()
    }

    pub(super) fn finish(&mut self) -> Vec<Said> {
        let mut pieces = Pieces::default();
        loop {
            let rest = self.marks.rest();
            if self.inside.is_none() {
                self.text(&rest, &mut pieces);
                return pieces.row();
            }
            self.grow(&rest, &mut pieces);
            self.close(true, &mut pieces);
            self.read(&mut pieces);
        }
    }

    /// Reads as far as it is clear what the text means.
    fn read(&mut self, pieces: &mut Pieces) {
        loop {
            let wanted = if self.inside.is_some() { self.frame.close } else { &self.outside };
            match (self.marks.next(wanted), &mut self.inside) {
                (Found::Mark(text, mark), None) => {
                    self.text(&text, pieces);
                    self.outside_mark(mark, pieces);
                }
                (Found::Mark(text, mark), Some(_)) => {
                    self.grow(&text, pieces);
                    self.inside.iter_mut().for_each(|inside| inside.text.push_str(mark));
                    self.close(false, pieces);
                }
                (Found::Text(text), None) => return self.text(&text, pieces),
                (Found::Text(text), Some(_)) => return self.grow(&text, pieces),
            }
        }
    }

    fn outside_mark(&mut self, mark: &'static str, pieces: &mut Pieces) {
        if self.frame.open.contains(&mark) {
            self.inside = Some(Inside { text: mark.to_owned(), ..Inside::default() });
        } else if !self.called || self.said {
            return self.text(mark, pieces);
        }
        self.blank.clear();
        self.said = false;
    }

    /// The block goes on. A mark that may close it comes after `text`, or none yet.
    fn grow(&mut self, text: &str, pieces: &mut Pieces) {
        let Some(Inside { text: block, draft, .. }) = &mut self.inside else { return };
        block.push_str(text);
        (self.frame.draft)(&Block { text: block, types: &self.types, last: false }, draft);
        if self.mode == Calls::InPieces {
            draft.say(pieces);
        }
    }

    /// Ends the block, if it ends here.
    fn close(&mut self, last: bool, pieces: &mut Pieces) {
        let Some(mut inside) = self.inside.take() else { return };
        match self.meaning(&inside.text, last) {
            Read::More if !last && inside.closes < CLOSES_MAX => {
                inside.closes += 1;
                self.inside = Some(inside);
            }
            Read::Calls(calls, bytes) => {
                self.marks.unread(&inside.text.split_off(bytes));
                inside.draft.confirm(&calls, pieces);
                self.called = true;
            }
            Read::More | Read::Text => self.give_up(inside, last, pieces),
        }
    }

    /// A block that is no call is text, but for what was said of it. Its first mark may have been one
    /// only in prose: what the last opening mark begins may still be a call.
    fn give_up(&mut self, inside: Inside, last: bool, pieces: &mut Pieces) {
        let (mut text, is_said) = (inside.text, inside.draft.is_said());
        if is_said {
            text.drain(..inside.draft.at);
            (self.called, self.said) = (true, false);
        }
        let inner = text.split_off(self.last_opening(&text));
        match self.meaning(&inner, last) {
            Read::Calls(calls, bytes) if is_said || !text.is_empty() => {
                self.text(&text, pieces);
                self.marks.unread(&inner[bytes..]);
                calls.iter().for_each(|call| pieces.call(call));
                (self.called, self.said) = (true, false);
                self.blank.clear();
            }
            _ => self.text(&(text + &inner), pieces),
        }
    }

    /// Where the last opening mark begins, or the first of several in a row.
    fn last_opening(&self, text: &str) -> usize {
        let open = self.frame.open;
        let mut at = open.iter().filter_map(|open| text.rfind(open)).max().unwrap_or(0);
        loop {
            let before = text[..at].trim_end();
            match open.iter().find_map(|open| before.strip_suffix(open)) {
                Some(rest) => at = rest.len(),
                None => return at,
            }
        }
    }

    fn meaning(&self, text: &str, last: bool) -> Read {
        (self.frame.read)(&Block { text, types: &self.types, last })
    }

    /// Blank lines around calls are not text, in whatever pieces they come.
    fn text(&mut self, text: &str, pieces: &mut Pieces) {
        self.said |= !self.called || !text.trim().is_empty();
        self.blank.push_str(text);
        if self.said {
            pieces.text(&std::mem::take(&mut self.blank));
        }
    }
}
