//! A model's output, parsed: text, thoughts, function calls. Text arrives in pieces, and what may be the
//! beginning of a marker is held back until it is clear; in which pieces it came changes nothing.
//! Public because whatever a model writes comes through here: it can be tried without one.
//!
//! * `thoughts`: taken from the beginning, before anything else.
//! * `format`: which formats of calls there are, and how a model's is found. One format, one file.
//! * `blocks`: calls between marks, which most formats are; `tags` and `marked` are what those share
//!   that write tags, and those that write JSON between control tokens; `bare`: calls without marks.
//! * `json`, `literal`, `types`: arguments, mended and typed.
//! * `draft`: calls that are not whole yet, as `head` and `scan` read them; `pieces`: what is said of them.

mod bare;
mod blocks;
mod deepseek;
mod draft;
mod dsml;
mod forced;
mod format;
mod gemma;
mod glm;
mod harmony;
mod head;
mod hermes;
mod json;
mod kimi;
mod listed;
mod literal;
mod llama;
mod marked;
mod marks;
mod minimax;
mod mistral;
mod parsed;
mod pieces;
mod pythonic;
mod qwen;
mod scan;
mod seed;
mod tags;
mod thoughts;
mod types;

pub use format::Format;
pub use parsed::{Call, Parsed, Said};
pub use pieces::Calls;
pub use thoughts::Thoughts;
pub use types::ArgumentTypes;

use format::Reader;
use std::sync::Arc;
use thoughts::{Split, ThoughtReader};

/// How what a model writes is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputFormat {
    pub calls: Format,
    /// `None` where there are none, or none are possible.
    pub thoughts: Option<Thoughts>,
}

impl OutputFormat {
    /// Nothing is read: all is text.
    pub const PLAIN: Self = Self { calls: Format::Plain, thoughts: None };

    /// Recognised by the model's template; `control_texts` are the texts of its control tokens.
    pub fn of(template: &str, control_texts: &[String]) -> Self {
        let thoughts = Thoughts::of(template, control_texts);
        Self { calls: Format::of_template(template), thoughts }
    }

    /// Where no functions are offered: only what a model writes in channels all the same is read.
    pub fn without_calls(self) -> Self {
        let calls = if self.calls == Format::Harmony { Format::Harmony } else { Format::Plain };
        Self { calls, ..self }
    }

    /// For an output that follows a prompt that ends with `text`.
    pub fn after(self, text: &str) -> Self {
        Self { thoughts: self.thoughts.map(|thoughts| thoughts.after(text)), ..self }
    }

    /// Whether marks are control tokens, which are hidden by default.
    pub fn control_tokens(self) -> bool {
        self.calls.control_tokens() || self.thoughts.is_some_and(|thoughts| thoughts.control)
    }
}

/// Parses output as it arrives.
#[derive(Debug)]
pub struct Parser {
    thoughts: Option<ThoughtReader>,
    reader: Reader,
}

impl Parser {
    /// One that has read nothing. Harmony has its own way of thoughts.
    pub fn new(format: OutputFormat) -> Self {
        Self::with_types(format, Arc::default(), Calls::Whole)
    }

    /// The same with functions whose parameters' types are known.
    pub fn with_types(format: OutputFormat, types: Arc<ArgumentTypes>, mode: Calls) -> Self {
        let thoughts = format.thoughts.filter(|_| format.calls != Format::Harmony);
        Self {
            thoughts: thoughts.map(ThoughtReader::new),
            reader: Reader::new(format.calls, types, mode),
        }
    }

    /// Adds text; returns what is certain now.
    pub fn push(&mut self, text: &str) -> Vec<Said> {
        let Some(reader) = &mut self.thoughts else { return self.reader.push(text) };
        let split = reader.push(text);
        self.split(split)
    }

    /// What was held back, after the last text.
    pub fn finish(&mut self) -> Vec<Said> {
        let Some(reader) = &mut self.thoughts else { return self.reader.finish() };
        let split = reader.finish();
        let mut said = self.split(split);
        said.extend(self.reader.finish());
        said
    }

    fn split(&mut self, Split { thought, rest }: Split) -> Vec<Said> {
        let thought = Some(thought).filter(|thought| !thought.is_empty()).map(Said::Thought);
        thought.into_iter().chain(self.reader.push(&rest)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything parsed when `text` arrives in pieces of `piece` characters.
    fn parsed(parser: &mut Parser, text: &str, piece: usize) -> Parsed {
        let mut all = Parsed::default();
        let chars: Vec<char> = text.chars().collect();
        for part in chars.chunks(piece) {
            all.extend(parser.push(&part.iter().collect::<String>()));
        }
        all.extend(parser.finish());
        all
    }

    /// The same in pieces of every size.
    pub(super) fn check(format: Format, text: &str, expected: &Parsed) {
        check_with(format, None, text, expected);
    }

    pub(super) fn check_with(
        calls: Format,
        thoughts: Option<Thoughts>,
        text: &str,
        expected: &Parsed,
    ) {
        for piece in 1..=text.chars().count().max(1) {
            let parser = &mut Parser::new(OutputFormat { calls, thoughts });
            assert_eq!(&parsed(parser, text, piece), expected, "in pieces of {piece}");
        }
    }

    pub(super) fn call(name: &str, arguments: &str) -> Call {
        Call { name: name.into(), arguments: arguments.into() }
    }

    #[test]
    fn plain_text_stays() {
        let expected = Parsed { text: "<tool_call>{}".into(), ..Parsed::default() };
        check(Format::Plain, "<tool_call>{}", &expected);
    }
}
