//! Calls between control tokens, their arguments as JSON: a mark, a head, a mark, the arguments, a
//! mark. What stands in head and arguments each format says.

use super::blocks::{Block, Read};
use super::draft::Draft;
use super::json::{self, End, Json};
use super::parsed::{Call, is_name};

/// The marks of one format.
pub(super) struct Marked {
    /// Marks before the first call.
    pub(super) sections: &'static [&'static str],
    pub(super) call: &'static str,
    /// Between head and arguments.
    pub(super) separator: &'static str,
    pub(super) ends: &'static [&'static str],
    pub(super) call_of: for<'a> fn(&'a str, &'a str) -> MarkedCall<'a>,
}

/// A call as written.
pub(super) struct MarkedCall<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a str,
}

/// Calls in a block. One that begins ends the one before.
pub(super) fn read(format: &Marked, block: &Block<'_>) -> Read {
    let mut parts = block.text.split(format.call);
    let before = stripped(parts.next().unwrap_or_default(), format.sections);
    let mut parts = parts.filter(|part| !part.trim().is_empty()).peekable();
    if !before.0.is_empty() || parts.peek().is_none() {
        return Read::Text;
    }
    let mut calls = Vec::new();
    while let Some(part) = parts.next() {
        let (part, ended) = stripped(part, format.ends);
        let end = if ended || parts.peek().is_some() { End::Marked } else { End::Open };
        match call(format, part, end) {
            Json::Is(call) => calls.push(call),
            Json::InString if !block.last => return Read::More,
            Json::InString | Json::Not => return Read::Text,
        }
    }
    Read::whole(Some(calls), block)
}

/// The first call of a block; those that follow it unmarked are read when all is there.
pub(super) fn draft(format: &Marked, block: &Block<'_>, draft: &mut Draft) {
    if draft.is_empty()
        && let Some((name, at)) = begun(format, block)
    {
        draft.begin(name, at);
    }
    draft.copy(block.text);
}

/// The name of the first call and where its arguments begin, if they are an object.
fn begun(format: &Marked, block: &Block<'_>) -> Option<(String, usize)> {
    let (before, mut rest) = block.text.split_once(format.call)?;
    while let Some(again) = rest.trim_start().strip_prefix(format.call) {
        rest = again;
    }
    let (head, body) = rest.split_once(format.separator)?;
    let brace = body.find('{')?;
    let MarkedCall { name, arguments } = (format.call_of)(head.trim(), &body[..=brace]);
    let is_call = stripped(before, format.sections).0.is_empty()
        && arguments.trim_start() == "{"
        && is_name(name)
        && block.types.may_call(name);
    is_call.then(|| (name.to_owned(), block.text.len() - body.len() + brace))
}

fn call(format: &Marked, part: &str, end: End) -> Json<Call> {
    let Some((head, body)) = part.split_once(format.separator) else { return Json::Not };
    let MarkedCall { name, arguments } = (format.call_of)(head.trim(), body);
    if !is_name(name) {
        return Json::Not;
    }
    match json::arguments(arguments, end) {
        Json::Is(arguments) => Json::Is(Call { name: name.to_owned(), arguments }),
        Json::InString => Json::InString,
        Json::Not => Json::Not,
    }
}

/// Without white space and `marks` at both ends, and whether there was one of them at the end.
fn stripped<'a>(text: &'a str, marks: &[&str]) -> (&'a str, bool) {
    let mut text = text.trim();
    while let Some(rest) = marks.iter().find_map(|mark| text.strip_prefix(mark)) {
        text = rest.trim_start();
    }
    let mut ended = false;
    while let Some(rest) = marks.iter().find_map(|mark| text.strip_suffix(mark)) {
        (text, ended) = (rest.trim_end(), true);
    }
    (text, ended)
}
