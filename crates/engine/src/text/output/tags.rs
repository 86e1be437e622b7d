//! Calls as tags: one around each call with the function's name, one around each parameter with its
//! own. Values are not escaped, so a value may look like a tag; it ends at the first tag that ends
//! parameters, or, when that is missing, where another parameter of the function or another call begins on
//! a new line.

use super::blocks::{Block, Read};
use super::draft::{Draft, Drafted};
use super::json::{self, End, Json};
use super::parsed::{Call, is_name, object, unclosed_object};
use serde_json::{Map, Value};

/// Tags in a block; with more of them it is text.
const TAGS_MAX: usize = 1000;

/// The tags of one format.
#[derive(Debug)]
pub(super) struct Tags {
    /// Tags around calls, opening and closing; they say nothing by themselves.
    pub(super) wrappers: &'static [&'static str],
    /// The beginning of the tags that have a name; `>` ends them.
    pub(super) call: &'static str,
    pub(super) parameter: &'static str,
    pub(super) call_end: &'static str,
    pub(super) parameter_end: &'static str,
    /// Whether values stand on lines of their own.
    pub(super) lines: bool,
}

/// Calls in a block.
pub(super) fn read(tags: &Tags, block: &Block<'_>) -> Read {
    let mut reader = Reader::new(tags, block);
    match reader.steps() {
        Step::Wait => Read::More,
        Step::Went | Step::Lost => Read::Text,
        Step::Done(bytes) => reader.end(bytes),
    }
}

/// Parameters that have ended, each when it has.
pub(super) fn draft(tags: &Tags, block: &Block<'_>, draft: &mut Draft) {
    let mut reader = Reader::new(tags, block);
    reader.steps();
    // Without a parameter a call may yet have its arguments as JSON.
    let (certain, at) = match reader.has_parameters {
        true => (reader.calls.len(), reader.at),
        false => (reader.calls.len() - 1, reader.call_at),
    };
    let drafted =
        |(name, values): (String, Values)| Drafted { name, arguments: unclosed_object(&values) };
    let calls = reader.calls.into_iter().take(certain).map(drafted);
    draft.set(calls.collect(), at);
}

/// A value, and where it ends.
pub(super) enum Ended<'a> {
    At(&'a str, usize),
    /// Not before more is there.
    Later,
    Never,
}

/// The value `text` begins with, up to `end`. Without that it ends before what `following` finds, or at
/// one of `closing` when nothing follows.
pub(super) fn value<'a>(
    text: &'a str,
    end: &str,
    following: impl Fn(&str) -> Option<usize>,
    (closing, last): (&[&str], bool),
) -> Ended<'a> {
    let ended = text.find(end);
    let before = &text[..ended.unwrap_or(text.len())];
    let closed = |within: &str| closing.iter().filter_map(|mark| within.find(mark)).min();
    let cut = match (ended, following(before)) {
        (Some(at), None) => return Ended::At(before, at + end.len()),
        (_, Some(at)) => closed(&before[..at]).unwrap_or(at),
        (None, None) if !last => return Ended::Later,
        (None, None) => match closed(before) {
            Some(at) => at,
            None => return Ended::Never,
        },
    };
    let written = &text[..cut];
    Ended::At(written.strip_suffix('\n').unwrap_or(written), cut)
}

/// A name in a tag that begins with `start`, what else the tag has, and where it ends.
fn named<'a>(text: &'a str, start: &str) -> Option<(&'a str, &'a str, usize)> {
    let inner = text.strip_prefix(start)?;
    let end = inner.find('>')?;
    let (name, more) = match inner[..end].trim().strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => (inner[..end].trim(), ""),
    };
    is_name(name).then_some((name, more, start.len() + end + 1))
}

/// Where in a block it is, and the calls so far.
struct Reader<'a> {
    tags: &'a Tags,
    block: &'a Block<'a>,
    at: usize,
    /// Past the last tag that ends a call, if nothing followed it.
    closed: Option<usize>,
    calls: Vec<(String, Values)>,
    /// Where the last call begins.
    call_at: usize,
    /// Whether a parameter of the last call has begun; so too before there is any call.
    has_parameters: bool,
}

/// Arguments in the order they were written.
type Values = Vec<(String, Value)>;

enum Step {
    Went,
    Wait,
    /// Something that no call has.
    Lost,
    /// The calls are so many bytes.
    Done(usize),
}

impl<'a> Reader<'a> {
    fn new(tags: &'a Tags, block: &'a Block<'a>) -> Self {
        let (closed, calls) = (None, Vec::new());
        Self { tags, block, at: 0, closed, calls, call_at: 0, has_parameters: true }
    }

    /// Steps as far as it goes.
    fn steps(&mut self) -> Step {
        for _ in 0..TAGS_MAX {
            match self.step() {
                Step::Went => {}
                other => return other,
            }
        }
        Step::Lost
    }

    fn step(&mut self) -> Step {
        let (block, tags) = (self.block, self.tags);
        let text = block.text[self.at..].trim_start();
        self.at = block.text.len() - text.len();
        if text.is_empty() {
            return Step::Done(self.at);
        }
        let skipped = [tags.call_end, tags.parameter_end];
        let skipped = skipped.iter().chain(tags.wrappers).find(|tag| text.starts_with(**tag));
        if let Some(tag) = skipped {
            self.at += tag.len();
            if *tag != tags.parameter_end {
                self.closed = Some(self.at);
            }
            return Step::Went;
        }
        if let Some((name, _, bytes)) = named(text, tags.call) {
            self.call_at = self.at;
            self.at += bytes;
            self.closed = None;
            self.calls.push((name.to_owned(), Values::new()));
            self.has_parameters = false;
            return Step::Went;
        }
        match self.closed {
            Some(bytes) if !text.starts_with(tags.parameter) => Step::Done(bytes),
            _ if text.starts_with(tags.parameter) => self.parameter(text),
            _ if text.starts_with('{') => self.object(text),
            _ => Step::Lost,
        }
    }

    fn parameter(&mut self, text: &'a str) -> Step {
        let tags = self.tags;
        let (Some((key, more, bytes)), Some((name, values))) =
            (named(text, tags.parameter), self.calls.last_mut())
        else {
            return Step::Lost;
        };
        let closing: Vec<&str> = tags.wrappers.iter().copied().chain([tags.call_end]).collect();
        let types = self.block.types;
        let begins = |tag: &str| match named(tag, tags.parameter) {
            Some((next, ..)) => {
                let has = |name: &str| values.iter().any(|(key, _)| key == name);
                next != key && !has(next) && types.may_have(name, next)
            }
            None => named(tag, tags.call).is_some_and(|(next, ..)| types.may_call(next)),
        };
        let following = |text: &str| lines(text).find(|&at| begins(&text[at..]));
        self.has_parameters = true;
        let written = &text[bytes..];
        match value(written, tags.parameter_end, following, (&closing, self.block.last)) {
            Ended::At(written, end) => {
                let written = if tags.lines { line(written) } else { written };
                let value = match more.contains("string=\"true\"") {
                    true => written.into(),
                    false => types.value(name, key, written),
                };
                values.push((key.to_owned(), value));
                self.at += bytes + end;
                self.closed = None;
                Step::Went
            }
            Ended::Later => Step::Wait,
            Ended::Never => Step::Lost,
        }
    }

    /// Arguments as JSON instead of parameters.
    fn object(&mut self, text: &str) -> Step {
        let end = text.find(self.tags.call_end);
        let (written, how) = match end {
            Some(end) => (&text[..end], End::Marked),
            None => (text, End::Open),
        };
        let Some((_, values)) = self.calls.last_mut().filter(|call| call.1.is_empty()) else {
            return Step::Lost;
        };
        match json::arguments(written, how) {
            Json::Is(arguments) => {
                let object: Map<String, Value> =
                    serde_json::from_str(&arguments).unwrap_or_default();
                values.extend(object);
                self.at += written.len();
                Step::Went
            }
            Json::InString if !self.block.last => Step::Wait,
            _ => Step::Lost,
        }
    }

    /// A call counts when it is closed, or when something was passed.
    fn end(self, bytes: usize) -> Read {
        let unfinished = self.closed.is_none();
        match self.calls.last() {
            None => Read::Text,
            Some((_, values)) if unfinished && values.is_empty() => Read::Text,
            Some(_) => {
                let call =
                    |(name, values): (String, Values)| Call { name, arguments: object(&values) };
                Read::Calls(self.calls.into_iter().map(call).collect(), bytes)
            }
        }
    }
}

/// Without the line breaks that set a value apart.
fn line(written: &str) -> &str {
    let written = written.strip_prefix('\n').unwrap_or(written);
    written.strip_suffix('\n').unwrap_or(written)
}

/// Where lines after the first begin, past what they are indented by.
fn lines(text: &str) -> impl Iterator<Item = usize> {
    text.match_indices('\n').map(|(at, _)| {
        let line = &text[at + 1..];
        text.len() - line.trim_start_matches([' ', '\t']).len()
    })
}
