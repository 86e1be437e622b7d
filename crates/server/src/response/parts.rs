//! An answer as a row of parts, one after the other: thoughts, texts, calls. Anthropic's blocks
//! and the items of `/v1/responses` are such rows. Knows the JSON of neither.

use super::formatter::random_id;
use motley_engine::text::output::{Parser, Said};
use serde_json::{Map, Value};

/// An answer that is being read.
pub(super) struct Parts {
    parser: Parser,
    row: Vec<Part>,
    /// Whether the last part may grow.
    is_open: bool,
    /// White space that becomes text if text follows: models put it around thoughts and calls.
    space: String,
}

/// One part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// Of its own in the whole world.
    pub(super) id: String,
    pub(super) kind: PartKind,
    /// Its text; arguments of a call as JSON.
    pub(super) text: String,
    /// Whether it is not a call that broke off.
    pub(super) is_whole: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PartKind {
    Thought,
    Text,
    /// A call of the function with this name.
    Call(String),
}

/// What happens to the part at an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Begin(usize),
    More(usize, String),
    End(usize),
}

impl Parts {
    pub(super) fn new(parser: Parser) -> Self {
        Self { parser, row: Vec::new(), is_open: false, space: String::new() }
    }

    /// Adds what the model wrote.
    pub(super) fn push(&mut self, text: &str) -> Vec<Step> {
        let said = self.parser.push(text);
        self.steps(said)
    }

    /// After the last text.
    pub(super) fn finish(&mut self) -> Vec<Step> {
        let said = self.parser.finish();
        let mut steps = self.steps(said);
        self.close(&mut steps);
        steps
    }

    /// All parts so far.
    pub(super) fn row(&self) -> &[Part] {
        &self.row
    }

    /// Whether a function is called.
    pub(super) fn calls(&self) -> bool {
        self.row.iter().any(|part| part.is_whole && matches!(part.kind, PartKind::Call(_)))
    }

    fn steps(&mut self, said: Vec<Said>) -> Vec<Step> {
        let mut steps = Vec::new();
        for piece in said {
            match piece {
                Said::Thought(thought) => self.add(PartKind::Thought, thought, &mut steps),
                Said::Text(text) => self.add(PartKind::Text, text, &mut steps),
                Said::Call(name) => self.begin(PartKind::Call(name), &mut steps),
                Said::Arguments(more) => self.grow(more, &mut steps),
                Said::CallEnd => {
                    if let Some(call) = self.row.last_mut() {
                        call.is_whole = true;
                    }
                    self.close(&mut steps);
                }
            }
        }
        steps
    }

    fn add(&mut self, kind: PartKind, mut text: String, steps: &mut Vec<Step>) {
        let is_same = self.is_open && self.row.last().is_some_and(|part| part.kind == kind);
        if kind == PartKind::Text && !is_same {
            self.space.push_str(&text);
            if self.space.trim().is_empty() {
                return;
            }
            text = std::mem::take(&mut self.space);
        }
        if text.is_empty() {
            return;
        }
        if !is_same {
            self.begin(kind, steps);
        }
        self.grow(text, steps);
    }

    fn begin(&mut self, kind: PartKind, steps: &mut Vec<Step>) {
        self.close(steps);
        let is_whole = !matches!(kind, PartKind::Call(_));
        self.row.push(Part { id: random_id(""), kind, text: String::new(), is_whole });
        self.is_open = true;
        steps.push(Step::Begin(self.row.len() - 1));
    }

    fn grow(&mut self, text: String, steps: &mut Vec<Step>) {
        if let Some(part) = self.row.last_mut() {
            part.text.push_str(&text);
            steps.push(Step::More(self.row.len() - 1, text));
        }
    }

    fn close(&mut self, steps: &mut Vec<Step>) {
        if std::mem::take(&mut self.is_open) {
            steps.push(Step::End(self.row.len() - 1));
        }
        self.space.clear();
    }
}

/// Arguments of a call as the object that functions take; what is none, as an empty one.
pub(super) fn arguments_object(arguments: &str) -> Map<String, Value> {
    serde_json::from_str(arguments).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_engine::text::output::{Calls, Format, OutputFormat};
    use std::sync::Arc;

    fn read(calls: Format, pieces: &[&str]) -> (Vec<Step>, Vec<(PartKind, String)>) {
        let mut parts = Parts::new(Parser::new(OutputFormat { calls, thoughts: None }));
        let mut steps: Vec<Step> = pieces.iter().flat_map(|piece| parts.push(piece)).collect();
        steps.extend(parts.finish());
        let row = parts.row().iter().map(|part| (part.kind.clone(), part.text.clone()));
        (steps, row.collect())
    }

    #[test]
    fn text_grows_and_a_call_is_a_part_of_its_own() {
        let call = "\n<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":1}}</tool_call>\n";
        let (steps, row) = read(Format::Hermes, &["Let", " me", call]);
        let expected = [
            Step::Begin(0),
            Step::More(0, "Let".into()),
            Step::More(0, " me".into()),
            Step::More(0, "\n".into()),
            Step::End(0),
            Step::Begin(1),
            Step::More(1, "{\"a\":1}".into()),
            Step::End(1),
        ];
        assert_eq!(steps, expected);
        assert_eq!(row[1], (PartKind::Call("f".into()), "{\"a\":1}".into()));
    }

    #[test]
    fn a_call_that_broke_off_is_a_part_that_is_not_whole() {
        let format = OutputFormat { calls: Format::Hermes, thoughts: None };
        let parser = Parser::with_types(format, Arc::default(), Calls::InPieces);
        let mut parts = Parts::new(parser);
        let mut steps = parts.push("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": [1");
        steps.extend(parts.finish());
        let more = Step::More(0, "{\"a\": [1".into());
        assert_eq!(steps, [Step::Begin(0), more, Step::End(0)]);
        assert!(!parts.row()[0].is_whole && !parts.calls());
    }

    #[test]
    fn white_space_alone_is_no_part() {
        assert_eq!(read(Format::Plain, &["\n", " "]).1, []);
        let row = read(Format::Plain, &["\n", " a", "b"]).1;
        assert_eq!(row, [(PartKind::Text, "\n ab".into())]);
    }

    #[test]
    fn arguments_that_are_no_object_are_an_empty_one() {
        assert_eq!(arguments_object("{\"a\":1}").len(), 1);
        assert!(arguments_object("7").is_empty() && arguments_object("{").is_empty());
    }
}
