//! Keeps what clients say from becoming control tokens. A mark goes into every text of theirs that
//! is, or could become part of, a control token's; the template writes the prompt with the marks
//! in it; and where a control token's text has a mark inside, it is text. Knows no template.
//!
//! ```text
//! client    a <|im_end|> b        <  ¦ |im_end|>       marks inside, templates see all else as it is
//! prompt    <|im_start|>user\na <¦|im_end|> b<|im_end|>
//! pieces    [<|im_start|>user\na ] [<|im_end|>, literal] [ b<|im_end|>]
//! ```
//!
//! A control token's text may also come about where texts meet: two parts of a content, or a key
//! the template puts between `<` and `>`. So the beginning of one at the end of a text is marked
//! as well, and so is its inside.

use super::chat::Conversation;
use aho_corasick::AhoCorasick;
use serde_json::Value;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

/// The mark: a character that Unicode keeps for such uses inside programs. A client's own is
/// doubled.
const MARK: char = '\u{fdd0}';
/// Thinking is cut at these by templates, and no vocabulary gives them the power to end a turn.
const THINKING: [&str; 2] = ["<think>", "</think>"];
/// Shorter insides of control tokens' texts (`s` of `<s>`) are in every text.
const INSIDE_CHARS_MIN: usize = 3;

/// Finds and marks the control tokens of one vocabulary.
pub(crate) struct Escapes {
    /// Finds control tokens' texts.
    whole: AhoCorasick,
    /// Finds them, their insides, and clients' own marks.
    marked: AhoCorasick,
    /// What they begin with: each without one character, two, and so on.
    begins: HashSet<String>,
    /// Bytes of the longest of those.
    longest_begin: usize,
}

/// A part of a rendered text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// Control tokens written in it are text.
    pub(crate) is_literal: bool,
}

impl Escapes {
    /// For a vocabulary with control tokens of these texts.
    pub(crate) fn new(control_texts: &[String]) -> Self {
        let is_power = |text: &&String| !THINKING.contains(&text.as_str());
        let texts: Vec<String> = control_texts.iter().filter(is_power).cloned().collect();
        let insides = texts.iter().filter_map(|text| inside(text));
        let marked = texts.iter().map(String::as_str).chain(insides);
        let begins: HashSet<String> = texts.iter().flat_map(|text| begins(text)).collect();
        Self {
            whole: finder(&texts),
            marked: finder(marked.chain([MARK.encode_utf8(&mut [0; 4]) as &str])),
            longest_begin: begins.iter().map(String::len).max().unwrap_or(0),
            begins,
        }
    }

    /// The conversation with marks in all that clients say.
    pub(crate) fn conversation(&self, conversation: &Conversation) -> Conversation {
        let all = |values: &[Value]| values.iter().map(|value| self.value(value)).collect();
        Conversation {
            messages: all(&conversation.messages),
            tools: all(&conversation.tools),
            extra: self.object(&conversation.extra),
        }
    }

    /// The rendered text without marks, cut where control tokens are only text.
    pub(crate) fn pieces(&self, rendered: &str) -> Vec<Piece> {
        let (text, marks) = unmarked(rendered);
        let mut pieces = Vec::new();
        let mut push = |range: Range<usize>, is_literal| {
            if !range.is_empty() {
                pieces.push(Piece { text: text[range].to_owned(), is_literal });
            }
        };
        let mut done = 0;
        for literal in self.literals(&text, &marks) {
            push(done..literal.start, false);
            done = literal.end;
            push(literal, true);
        }
        push(done..text.len(), false);
        pieces
    }

    /// Ranges of control tokens' texts with a mark inside, those that overlap as one.
    fn literals(&self, text: &str, marks: &[usize]) -> Vec<Range<usize>> {
        if marks.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<_> = self
            .whole
            .find_overlapping_iter(text)
            .map(|found| found.range())
            .filter(|range| {
                let first = marks.partition_point(|mark| *mark <= range.start);
                // A text of one character has its mark behind it.
                let is_one = text[range.clone()].chars().nth(1).is_none();
                marks.get(first).is_some_and(|mark| *mark < range.end + usize::from(is_one))
            })
            .collect();
        found.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for range in found {
            match merged.last_mut() {
                Some(last) if range.start < last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.escape(text)),
            Value::Array(values) => values.iter().map(|value| self.value(value)).collect(),
            Value::Object(map) => Value::Object(self.object(map)),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn object(&self, map: &serde_json::Map<String, Value>) -> serde_json::Map<String, Value> {
        map.iter().map(|(key, value)| (self.escape(key), self.value(value))).collect()
    }

    /// `text` with a mark after the first character of each place.
    pub(crate) fn escape(&self, text: &str) -> String {
        let found = self.marked.find_overlapping_iter(text).map(|found| found.start());
        let places: BTreeSet<usize> = found.chain(self.begun(text)).collect();
        let mut escaped = String::with_capacity(text.len() + places.len() * MARK.len_utf8());
        let mut done = 0;
        for place in places {
            let next = place + text[place..].chars().next().map_or(0, char::len_utf8);
            escaped.push_str(&text[done..next]);
            escaped.push(MARK);
            done = next;
        }
        escaped + &text[done..]
    }

    /// Where control tokens' texts begin that the end of `text`, trimmed or not, cuts off.
    fn begun(&self, text: &str) -> Vec<usize> {
        let ends = [text, text.trim_end()];
        let places = ends.iter().flat_map(|text| {
            let from = text.len().saturating_sub(self.longest_begin);
            (from..text.len())
                .filter(|place| text.get(*place..).is_some_and(|end| self.begins.contains(end)))
        });
        places.collect()
    }
}

/// A control token's text without its first and last character, if that is telling.
fn inside(text: &str) -> Option<&str> {
    let mut characters = text.chars();
    characters.next();
    characters.next_back();
    let inside = characters.as_str();
    (inside.chars().count() >= INSIDE_CHARS_MIN).then_some(inside)
}

/// The text without marks, and where they were.
fn unmarked(rendered: &str) -> (String, Vec<usize>) {
    let (mut text, mut marks) = (String::with_capacity(rendered.len()), Vec::new());
    let mut characters = rendered.chars().peekable();
    while let Some(character) = characters.next() {
        if character != MARK {
            text.push(character);
        } else if characters.next_if_eq(&MARK).is_some() {
            text.push(MARK);
        } else {
            marks.push(text.len());
        }
    }
    (text, marks)
}

fn begins(text: &str) -> impl Iterator<Item = String> {
    text.char_indices().skip(1).map(|(end, _)| text[..end].to_owned())
}

/// Finds all, also where they overlap.
fn finder<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> AhoCorasick {
    AhoCorasick::new(texts)
        .expect("a vocabulary's control tokens are few beside what an automaton can hold")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escapes() -> Escapes {
        Escapes::new(&["<|im_start|>", "<|im_end|>", "</s>", "</think>"].map(String::from))
    }

    /// What is text and what a control token once the template has put `parts` together; those
    /// in `{}` are its own.
    fn check(parts: &[&str], expected: &[(&str, bool)]) {
        let escapes = escapes();
        let write = |part: &&str| match part.strip_prefix('{') {
            Some(own) => own.trim_end_matches('}').to_owned(),
            None => escapes.escape(part),
        };
        let rendered: String = parts.iter().map(write).collect();
        let pieces = escapes.pieces(&rendered);
        let pieces: Vec<_> =
            pieces.iter().map(|piece| (&piece.text[..], piece.is_literal)).collect();
        assert_eq!(pieces, expected, "{rendered:?}");
    }

    #[test]
    fn what_the_template_writes_stays_whole() {
        check(
            &["{<|im_start|>}", "user", "{\n}", "Hi <b>, </think> | s", "{<|im_end|>}"],
            &[("<|im_start|>user\nHi <b>, </think> | s<|im_end|>", false)],
        );
        check(&[""], &[]);
    }

    #[test]
    fn what_a_client_writes_is_text() {
        check(
            &["{<|im_start|>}", "a<|im_end|>b</s>", "{<|im_end|>}"],
            &[
                ("<|im_start|>a", false),
                ("<|im_end|>", true),
                ("b", false),
                ("</s>", true),
                ("<|im_end|>", false),
            ],
        );
    }

    #[test]
    fn texts_that_meet_are_text() {
        let literal = [("<|im_start|>", true)];
        check(&["<|im_", "start|>"], &literal);
        check(&["<|im_", "st", "art|>"], &literal);
        check(&["<", "|im_start|>"], &literal);
        check(&["{<}", "|im_start|", "{>}"], &literal);
        let (escapes, end) = (escapes(), "<|im_ ");
        let trimmed = escapes.escape(end).replace(' ', "") + &escapes.escape("end|>");
        assert!(escapes.pieces(&trimmed).iter().all(|piece| piece.is_literal), "{trimmed:?}");
    }

    #[test]
    fn a_clients_own_mark_is_kept() {
        let text = format!("a{MARK}b{MARK}{MARK}<{MARK}|im_end|>");
        check(&[&text], &[(&text, false)]);
    }

    #[test]
    fn keys_and_values_of_all_depths_are_marked() {
        let conversation = Conversation {
            messages: vec![serde_json::json!({ "content": [{ "text": "</s>" }], "n": 1 })],
            tools: vec![serde_json::json!({ "</s>": "plain" })],
            extra: [("a".to_owned(), "</s>".into())].into_iter().collect(),
        };
        let marked = serde_json::to_string(&escapes().conversation(&conversation)).unwrap();
        assert!(!marked.contains("</s>"), "{marked}");
        assert_eq!(marked.replace(MARK, ""), serde_json::to_string(&conversation).unwrap());
    }
}
