//! GLM-4.5 to 4.7, Laguna: the name, then keys and values in tags. 4.7 writes no line breaks.
//!
//! ```text
//! <tool_call>name
//! <arg_key>key</arg_key>
//! <arg_value>value</arg_value>
//! </tool_call>
//! ```

use super::blocks::{Block, Frame, Read};
use super::draft::{Draft, Drafted};
use super::parsed::{Call, is_name, object, unclosed_object};
use super::tags::{Ended, value};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
const KEY: &str = "<arg_key>";
const KEY_END: &str = "</arg_key>";
const VALUE: &str = "<arg_value>";
const VALUE_END: &str = "</arg_value>";

pub(super) const FRAME: Frame =
    Frame { open: &[OPEN], close: &[CLOSE], after: &[VALUE_END, CLOSE], read, draft };

fn read(block: &Block<'_>) -> Read {
    let mut rest = block.text;
    let mut calls = Vec::new();
    while let Some(inner) = strip(rest, OPEN) {
        rest = inner;
        if rest.trim_start().starts_with(OPEN) {
            continue;
        }
        let end = rest.find(['\n', '<']).unwrap_or(rest.len());
        let name = rest[..end].trim();
        rest = &rest[end..];
        let mut values = Vec::new();
        loop {
            match pair(rest, name, block) {
                Pair::Is(key, written, after) => {
                    values.push((key.to_owned(), block.types.value(name, key, written)));
                    rest = after;
                }
                Pair::Later => return Read::More,
                Pair::Broken => return Read::Text,
                Pair::None => break,
            }
        }
        let closed = strip(rest, CLOSE);
        if !is_name(name) || (closed.is_none() && values.is_empty()) {
            return Read::Text;
        }
        rest = closed.unwrap_or(rest);
        calls.push(Call { name: name.to_owned(), arguments: object(&values) });
    }
    let bytes = block.text.len() - rest.len();
    let whole = rest.trim().is_empty() || block.text[..bytes].ends_with(CLOSE);
    if calls.is_empty() || !whole { Read::Text } else { Read::Calls(calls, bytes) }
}

/// The first call of a block, each value when it has ended.
fn draft(block: &Block<'_>, draft: &mut Draft) {
    let mut rest = block.text;
    while let Some(inner) = strip(rest, OPEN) {
        rest = inner;
    }
    let Some(end) = rest.find(['\n', '<']) else { return };
    let name = rest[..end].trim();
    rest = &rest[end..];
    let mut values = Vec::new();
    let has_parameters = loop {
        match pair(rest, name, block) {
            Pair::Is(key, written, after) => {
                values.push((key.to_owned(), block.types.value(name, key, written)));
                rest = after;
            }
            Pair::Later => break true,
            Pair::Broken | Pair::None => break !values.is_empty(),
        }
    };
    if has_parameters && is_name(name) {
        let drafted = Drafted { name: name.to_owned(), arguments: unclosed_object(&values) };
        draft.set(vec![drafted], block.text.len() - rest.len());
    }
}

fn strip<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.trim_start().strip_prefix(mark)
}

/// A key with its value, and what follows.
enum Pair<'a> {
    Is(&'a str, &'a str, &'a str),
    None,
    Later,
    Broken,
}

fn pair<'a>(text: &'a str, function: &str, block: &Block<'_>) -> Pair<'a> {
    let mut text = text;
    // A value closed twice.
    while let Some(rest) = strip(text, VALUE_END) {
        text = rest;
    }
    let Some(inner) = strip(text, KEY) else { return Pair::None };
    let Some((head, written)) = inner.split_once(VALUE) else { return Pair::Broken };
    let head = head.trim();
    let key = head.strip_suffix(KEY_END).unwrap_or(head).trim_end();
    if !is_name(key) {
        return Pair::Broken;
    }
    let begins = |text: &str| {
        let next = text.strip_prefix(KEY).and_then(|inner| inner.split_once(KEY_END));
        next.is_some_and(|(next, after)| {
            next != key && strip(after, VALUE).is_some() && block.types.may_have(function, next)
        })
    };
    let following = |text: &str| {
        let mut found = text.match_indices(KEY).map(|(at, _)| at);
        found.find(|&at| begins(&text[at..]))
    };
    match value(written, VALUE_END, following, (&[CLOSE], block.last)) {
        Ended::At(value, end) => Pair::Is(key, value, &written[end..]),
        Ended::Later => Pair::Later,
        Ended::Never => Pair::Broken,
    }
}
