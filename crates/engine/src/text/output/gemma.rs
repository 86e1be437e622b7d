//! Gemma 4: `<|tool_call>call:name{key:<|"|>text<|"|>,other:[1,true]}<tool_call|>`. Values are as in
//! JSON but for their quotes; keys have none, or the same.

use super::blocks::{Block, Frame, Read};
use super::parsed::{Call, is_name};
use serde_json::{Map, Value};

const OPEN: &str = "<|tool_call>";
const CLOSE: &str = "<tool_call|>";
const QUOTE: &str = "<|\"|>";

/// Lists and objects inside one another.
const DEPTH_MAX: usize = 64;

pub(super) const FRAME: Frame = Frame { open: &[OPEN], close: &[CLOSE], after: &[CLOSE], read };

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
    let text = text.trim().strip_prefix("call:")?;
    let (name, _) = text.split_once('{')?;
    let mut reader = Reader { rest: &text[name.len()..] };
    let arguments = reader.value(0)?;
    let name = name.trim();
    let whole = reader.rest.trim_matches([' ', '\n', '}']).is_empty() && is_name(name);
    whole.then(|| Call { name: name.to_owned(), arguments: arguments.to_string() })
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
        let mut values = Map::new();
        loop {
            if self.takes("}") {
                return Some(values.into());
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
            values.insert(key.to_owned(), value);
            if !self.takes(",") && !self.rest.trim_start().starts_with('}') {
                return None;
            }
        }
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
