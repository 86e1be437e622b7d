//! Calls of which something is certain before all of them is there. Their end is never certain: what
//! reads the whole decides whether they are calls at all, and until then the last brace of a call's
//! arguments is kept back.
//!
//! What is certain depends on the text so far and only grows with it, so it does not matter in which
//! pieces that came.

use super::parsed::Call;
use super::pieces::Pieces;
use super::scan::{Scan, Scanned};

/// What is certain so far.
#[derive(Debug, Default)]
pub(super) struct Draft {
    calls: Vec<Drafted>,
    /// Bytes of the text that the calls took.
    pub(super) at: usize,
    /// Arguments of the last call that are being copied.
    scan: Option<Scan>,
    /// Nothing more is certain before the end.
    over: bool,
    /// Calls that were said and ended.
    ended: usize,
    /// Bytes of the next one's arguments that were said, once it began.
    said_bytes: Option<usize>,
}

/// A call that has begun.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Drafted {
    pub(super) name: String,
    /// JSON, as far as it is certain.
    pub(super) arguments: String,
}

impl Draft {
    /// Whether a call is open or may begin where the text goes on.
    pub(super) fn goes_on(&self) -> bool {
        !self.over
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn is_copying(&self) -> bool {
        self.scan.is_some()
    }

    /// Whether anything of it was said.
    pub(super) fn is_said(&self) -> bool {
        self.ended > 0 || self.said_bytes.is_some()
    }

    /// A call whose arguments begin with the brace at `at`.
    pub(super) fn begin(&mut self, name: String, at: usize) {
        self.calls.push(Drafted { name, arguments: String::new() });
        self.scan = Some(Scan::default());
        self.at = at;
    }

    /// Nothing more is certain before the end.
    pub(super) fn stop(&mut self) {
        self.over = true;
    }

    /// Copies arguments out of `text`, as far as they go.
    pub(super) fn copy(&mut self, text: &str) {
        let (Some(scan), Some(call)) = (&mut self.scan, self.calls.last_mut()) else { return };
        for c in text[self.at..].chars() {
            let scanned = scan.push(c, &mut call.arguments);
            if scanned == Scanned::Foreign {
                self.over = true;
                return;
            }
            self.at += c.len_utf8();
            if scanned == Scanned::End {
                self.scan = None;
                return;
            }
        }
    }

    /// All calls anew, in the first `at` bytes of the text; those that were there have only grown.
    pub(super) fn set(&mut self, calls: Vec<Drafted>, at: usize) {
        if calls.len() >= self.calls.len() {
            (self.calls, self.at) = (calls, at);
        }
    }

    /// Says what is new. A call that begins ends the one before.
    pub(super) fn say(&mut self, pieces: &mut Pieces) {
        while let Some(call) = self.calls.get(self.ended) {
            say_more(call, &mut self.said_bytes, pieces);
            if self.ended + 1 == self.calls.len() {
                return;
            }
            pieces.arguments("}");
            pieces.end();
            self.ended += 1;
            self.said_bytes = None;
        }
    }

    /// Says the rest: the text is known to be `calls`.
    pub(super) fn confirm(mut self, calls: &[Call], pieces: &mut Pieces) {
        for (index, call) in calls.iter().enumerate().skip(self.ended) {
            let mut said_bytes = self.said_bytes.take();
            match self.calls.get(index) {
                Some(drafted) if call.means(&drafted.name, &self.whole(index)) => {
                    say_more(drafted, &mut said_bytes, pieces);
                    pieces.arguments(&self.closing(index));
                    pieces.end();
                }
                // Something else was said already, and stays without its end.
                _ if said_bytes.is_some() => {}
                _ => pieces.call(call),
            }
        }
    }

    fn whole(&self, index: usize) -> String {
        self.calls[index].arguments.clone() + &self.closing(index)
    }

    fn closing(&self, index: usize) -> String {
        let is_last = index + 1 == self.calls.len();
        let copied = self.scan.as_ref().filter(|_| is_last);
        copied.map_or_else(|| "}".to_owned(), Scan::closing)
    }
}

fn say_more(call: &Drafted, said_bytes: &mut Option<usize>, pieces: &mut Pieces) {
    if said_bytes.is_none() {
        pieces.begin(&call.name);
    }
    let said = said_bytes.get_or_insert_default();
    pieces.arguments(&call.arguments[*said..]);
    *said = call.arguments.len();
}
