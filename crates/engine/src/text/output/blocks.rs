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

use super::marks::{Found, Marks};
use super::parsed::{Call, Parsed};
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
    /// The block so far, inside one, and how many closing marks its values have.
    inside: Option<(String, usize)>,
    called: bool,
    /// White space after a call: text when other text follows, nothing before the next call.
    blank: String,
    /// Whether other text came since the last mark.
    said: bool,
}

impl Blocks {
    pub(super) fn new(frame: &'static Frame, types: Arc<ArgumentTypes>) -> Self {
        let outside = [frame.open, frame.after].concat();
        let (marks, blank) = (Marks::default(), String::new());
        Self { frame, types, marks, outside, inside: None, called: false, blank, said: false }
    }

    pub(super) fn push(&mut self, text: &str) -> Parsed {
        self.marks.push(text);
        let mut parsed = Parsed::default();
        self.read(&mut parsed);
        parsed
    }

    pub(super) fn finish(&mut self) -> Parsed {
        let mut parsed = Parsed::default();
        loop {
            let rest = self.marks.rest();
            match &mut self.inside {
                Some((block, _)) => {
                    block.push_str(&rest);
                    self.close(true, &mut parsed);
                    self.read(&mut parsed);
                }
                None => {
                    self.text(&rest, &mut parsed);
                    return parsed;
                }
            }
        }
    }

    /// Reads as far as it is clear what the text means.
    fn read(&mut self, parsed: &mut Parsed) {
        loop {
            let wanted = if self.inside.is_some() { self.frame.close } else { &self.outside };
            match (self.marks.next(wanted), &mut self.inside) {
                (Found::Mark(text, mark), None) => {
                    self.text(&text, parsed);
                    self.outside_mark(mark, parsed);
                }
                (Found::Mark(text, mark), Some((block, _))) => {
                    block.push_str(&text);
                    block.push_str(mark);
                    self.close(false, parsed);
                }
                (Found::Text(text), None) => return self.text(&text, parsed),
                (Found::Text(text), Some((block, _))) => return block.push_str(&text),
            }
        }
    }

    fn outside_mark(&mut self, mark: &'static str, parsed: &mut Parsed) {
        if self.frame.open.contains(&mark) {
            self.inside = Some((mark.to_owned(), 0));
        } else if !self.called || self.said {
            return self.text(mark, parsed);
        }
        self.blank.clear();
        self.said = false;
    }

    /// Ends the block, if it ends here.
    fn close(&mut self, last: bool, parsed: &mut Parsed) {
        let Some((mut text, closes)) = self.inside.take() else { return };
        match self.meaning(&text, last) {
            Read::More if !last && closes < CLOSES_MAX => self.inside = Some((text, closes + 1)),
            Read::Calls(calls, bytes) => {
                self.marks.unread(&text.split_off(bytes));
                parsed.calls.extend(calls);
                self.called = true;
            }
            Read::More | Read::Text => self.give_up(text, last, parsed),
        }
    }

    /// A block that is no call is text. Its first mark may have been one only in prose: what the last
    /// opening mark begins may still be a call.
    fn give_up(&mut self, mut text: String, last: bool, parsed: &mut Parsed) {
        let inner = text.split_off(self.last_opening(&text));
        match self.meaning(&inner, last) {
            Read::Calls(calls, bytes) if !text.is_empty() => {
                self.text(&text, parsed);
                self.marks.unread(&inner[bytes..]);
                parsed.calls.extend(calls);
                (self.called, self.said) = (true, false);
                self.blank.clear();
            }
            _ => self.text(&(text + &inner), parsed),
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
    fn text(&mut self, text: &str, parsed: &mut Parsed) {
        self.said |= !self.called || !text.trim().is_empty();
        self.blank.push_str(text);
        if self.said {
            parsed.text.push_str(&std::mem::take(&mut self.blank));
        }
    }
}
