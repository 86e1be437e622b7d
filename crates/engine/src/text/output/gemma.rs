//! Gemma 4: `<|tool_call>call:name{key:<|"|>text<|"|>,other:[1,true]}<tool_call|>`. Values are as in
//! JSON but for their quotes; keys have none, or the same.

use super::blocks::{Block, Frame, Read};
use super::draft::{Draft, Drafted};
use super::parsed::{Call, is_name, object, unclosed_object};
use serde_json::Value;

const OPEN: &str = "<|tool_call>";
const CLOSE: &str = "<tool_call|>";
const QUOTE: &str = "<|\"|>";

/// Lists and objects inside one another.
const DEPTH_MAX: usize = 64;

pub(super) const FRAME: Frame =
    Frame { open: &[OPEN], close: &[CLOSE], after: &[CLOSE], read, draft };

fn read(block: &Block<'_>) -> Read {
    let body = block.text.strip_suffix(CLOSE).unwrap_or(block.text);
    if body.matches(QUOTE).count() % 2 == 1 {
        // The mark is part of a text that goes on.
        return if block.last { Read::Text } else { Read::More };
    }
    let mut calls = Vec::new();
    for part in body.split(OPEN).map(str::trim).filter(|part| !part.is_empty()) {
        match call(part.strip_suffix(CLOSE).unwrap_or(part)) {
            Some(call) => calls.push(call),
            None => return Read::Text,
        }
    }
    Read::whole(Some(calls), block)
}

fn call(text: &str) -> Option<Call> {
    let (name, rest) = named(text.trim())?;
    let mut reader = Reader { rest };
    let mut values = Vec::new();
    while reader.pair(0, &mut values)? {}
    let whole = reader.rest.trim_matches([' ', '\n', '}']).is_empty();
    whole.then(|| Call { name: name.to_owned(), arguments: object(&values) })
}

/// The first call of a block, each value when another or the end follows.
fn draft(block: &Block<'_>, draft: &mut Draft) {
    let mut text = block.text;
    while let Some(rest) = text.trim_start().strip_prefix(OPEN) {
        text = rest;
    }
    let Some((name, rest)) = named(text) else { return };
    let mut reader = Reader { rest };
    let (mut values, mut at) = (Vec::new(), rest.len());
    while reader.pair(0, &mut values) == Some(true) {
        at = reader.rest.len();
    }
    let drafted = Drafted { name: name.to_owned(), arguments: unclosed_object(&values) };
    draft.set(vec![drafted], block.text.len() - at);
}

/// A function's name, and what follows the brace after it.
fn named(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.trim_start().strip_prefix("call:")?.split_once('{')?;
    let name = name.trim();
    is_name(name).then_some((name, rest))
}

/// What is left to read.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        if let Some(text) = self.quoted() {
            return Some(text.into());
        }
        if self.takes("{") {
            return self.object(depth);
        }
        if self.takes("[") {
            return self.list(depth);
        }
        let end = self.rest.find([',', '}', ']']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        let word = word.trim();
        // A string whose quotes were forgotten is JSON's, or a word.
        let plain = |c: char| c.is_alphanumeric() || " _-./:+".contains(c);
        serde_json::from_str(word)
            .ok()
            .or_else(|| (!word.is_empty() && word.chars().all(plain)).then(|| Value::from(word)))
    }

    fn object(&mut self, depth: usize) -> Option<Value> {
        let mut values = Vec::new();
        while self.pair(depth, &mut values)? {}
        Some(Value::Object(values.into_iter().collect()))
    }

    /// A key and its value; `false` at the brace after the last.
    fn pair(&mut self, depth: usize, values: &mut Vec<(String, Value)>) -> Option<bool> {
        if self.takes("}") {
            return Some(false);
        }
        let key = match self.quoted() {
            Some(key) => key,
            None => {
                let (key, _) = self.rest.split_once(':')?;
                self.rest = &self.rest[key.len()..];
                key.trim().trim_matches('"')
            }
        };
        if !is_name(key) || !self.takes(":") {
            return None;
        }
        let value = self.value(depth + 1)?;
        if !self.takes(",") && !self.rest.trim_start().starts_with('}') {
            return None;
        }
        values.push((key.to_owned(), value));
        Some(true)
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        let mut values = Vec::new();
        loop {
            if self.takes("]") {
                return Some(values.into());
            }
            values.push(self.value(depth + 1)?);
            if !self.takes(",") && !self.rest.trim_start().starts_with(']') {
                return None;
            }
        }
    }

    fn quoted(&mut self) -> Option<&'a str> {
        let (text, rest) = self.rest.trim_start().strip_prefix(QUOTE)?.split_once(QUOTE)?;
        self.rest = rest;
        Some(text)
    }

    fn takes(&mut self, mark: &str) -> bool {
        match self.rest.trim_start().strip_prefix(mark) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}
