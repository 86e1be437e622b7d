//! Llama 3: the whole answer is a call as JSON (`{"name": …, "parameters": …}`), or calls follow
//! `<|python_tag|>`, as JSON or as `name.call(key="value")`.

use super::blocks::{Block, Blocks, Frame, Read};
use super::json::{self, End, Json};
use super::parsed::{Call, Parsed, is_name};
use super::types::ArgumentTypes;
use serde_json::{Map, Value};
use std::sync::Arc;

const TAG: &str = "<|python_tag|>";

static FRAME: Frame = Frame { open: &[TAG], close: &[], after: &[], read };

#[derive(Debug)]
pub(super) struct Llama {
    /// An answer that begins with a brace, or with white space so far.
    held: String,
    place: Place,
    tagged: Blocks,
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Before,
    Object,
    Text,
}

impl Llama {
    pub(super) fn new(types: Arc<ArgumentTypes>) -> Self {
        Self { held: String::new(), place: Place::Before, tagged: Blocks::new(&FRAME, types) }
    }

    pub(super) fn push(&mut self, text: &str) -> Parsed {
        if self.place == Place::Text {
            return self.tagged.push(text);
        }
        self.held.push_str(text);
        if self.place == Place::Before {
            self.place = match self.held.trim_start().chars().next() {
                None => Place::Before,
                Some('{') => Place::Object,
                Some(_) => Place::Text,
            };
        }
        match self.place {
            Place::Text => self.tagged.push(&std::mem::take(&mut self.held)),
            Place::Before | Place::Object => Parsed::default(),
        }
    }

    pub(super) fn finish(&mut self) -> Parsed {
        let held = std::mem::take(&mut self.held);
        match objects(&held) {
            Some(calls) => Parsed { calls, ..Parsed::default() },
            None => {
                let mut parsed = self.tagged.push(&held);
                let last = self.tagged.finish();
                parsed.text.push_str(&last.text);
                parsed.calls.extend(last.calls);
                parsed
            }
        }
    }
}

/// An answer that is nothing but calls. Without a mark each must say what it passes.
fn objects(text: &str) -> Option<Vec<Call>> {
    let mut calls = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        calls.push(Call::from_json(&values.next()?.ok()?)?);
        let past = |c: char| c.is_whitespace() || ",;".contains(c);
        rest = rest[values.byte_offset()..].trim_start_matches(past);
    }
    (!calls.is_empty()).then_some(calls)
}

fn read(block: &Block<'_>) -> Read {
    let body = block.text.strip_prefix(TAG).unwrap_or(block.text);
    let calls = match json::calls(body, &[TAG], End::Open) {
        Json::Is(calls) => Some(calls),
        Json::InString | Json::Not => spoken(body).map(|call| vec![call]),
    };
    Read::whole(calls, block)
}

/// `name.call(key="value", other=1)`.
fn spoken(text: &str) -> Option<Call> {
    let (name, inner) = text.trim().split_once(".call(")?;
    let mut rest = inner.strip_suffix(')')?.trim();
    let mut values = Map::new();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=')?;
        let mut value = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        values.insert(key.trim().to_owned(), value.next()?.ok()?);
        rest = after[value.byte_offset()..].trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    let arguments = Value::Object(values).to_string();
    is_name(name).then(|| Call { name: name.to_owned(), arguments })
}
