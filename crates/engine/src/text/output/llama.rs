//! Llama 3: the whole answer is a call as JSON (`{"name": …, "parameters": …}`), or calls follow
//! `<|python_tag|>`, as JSON or as `name.call(key="value")`.

use super::bare::Form;
use super::blocks::{Block, Frame, Read};
use super::draft::Draft;
use super::head;
use super::json::{self, End, Json};
use super::parsed::{Call, is_name};
use super::types::ArgumentTypes;
use serde_json::{Map, Value};

const TAG: &str = "<|python_tag|>";

pub(super) static FORM: Form = Form {
    first: '{',
    read: objects,
    draft: |block, draft| head::draft_calls(block, &[], draft),
    frame: Frame { open: &[TAG], close: &[], after: &[], read, draft },
};

/// An answer that is nothing but calls. Without a mark each must say what it passes.
fn objects(text: &str, _types: &ArgumentTypes) -> Option<Vec<Call>> {
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

fn draft(block: &Block<'_>, draft: &mut Draft) {
    head::draft_calls(block, &[TAG], draft);
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
