//! A model's output, parsed: text, thoughts, function calls. One format of calls, one file; an
//! unknown format is plain text. `thoughts` come before any of them. Text arrives in pieces, and what may be the beginning of a marker is
//! held back until it is clear. Public because whatever a model writes comes through here: it can be
//! tried without one.

mod forced;
mod harmony;
mod hermes;
mod marks;
mod mistral;
mod parsed;
mod thoughts;

pub use parsed::{Call, Parsed};
pub use thoughts::Thoughts;

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

/// How a model writes function calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// No calls: everything is text.
    Plain,
    /// `<tool_call>{…}</tool_call>`: Hermes, Qwen.
    Hermes,
    /// `[TOOL_CALLS][{…}]` or `[TOOL_CALLS]name[ARGS]{…}`: Mistral.
    Mistral,
    /// Channels between control tokens: gpt-oss.
    Harmony,
    /// The output is one call as JSON, as its schema enforces.
    Forced,
}

impl Format {
    /// Recognised by the markers in the model's template.
    fn of_template(template: &str) -> Self {
        let marks = [
            ("<|channel|>", Self::Harmony),
            ("[TOOL_CALLS]", Self::Mistral),
            ("<tool_call>", Self::Hermes),
        ];
        marks.into_iter().find(|(mark, _)| template.contains(mark)).map_or(Self::Plain, |m| m.1)
    }

    /// Whether its markers are control tokens, which are hidden by default.
    fn control_tokens(self) -> bool {
        matches!(self, Self::Mistral | Self::Harmony)
    }
}

/// Parses output as it arrives.
#[derive(Debug)]
pub struct Parser {
    thoughts: Option<ThoughtReader>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Plain,
    Hermes(hermes::Hermes),
    Mistral(mistral::Mistral),
    Harmony(harmony::Harmony),
    Forced(forced::Forced),
}

impl Parser {
    /// One that has read nothing. Harmony has its own way of thoughts.
    pub fn new(format: OutputFormat) -> Self {
        let thoughts = format.thoughts.filter(|_| format.calls != Format::Harmony);
        Self { thoughts: thoughts.map(ThoughtReader::new), kind: Kind::new(format.calls) }
    }

    /// Adds text; returns what is certain now.
    pub fn push(&mut self, text: &str) -> Parsed {
        match &mut self.thoughts {
            None => self.kind.push(text),
            Some(reader) => {
                let Split { thought, rest } = reader.push(text);
                Parsed { thought, ..self.kind.push(&rest) }
            }
        }
    }

    /// What was held back, after the last text.
    pub fn finish(&mut self) -> Parsed {
        let Some(reader) = &mut self.thoughts else { return self.kind.finish() };
        let Split { thought, rest } = reader.finish();
        let mut parsed = Parsed { thought, ..self.kind.push(&rest) };
        let last = self.kind.finish();
        parsed.text.push_str(&last.text);
        parsed.calls.extend(last.calls);
        parsed
    }
}

impl Kind {
    fn new(format: Format) -> Self {
        match format {
            Format::Plain => Self::Plain,
            Format::Hermes => Self::Hermes(hermes::Hermes::default()),
            Format::Mistral => Self::Mistral(mistral::Mistral::default()),
            Format::Harmony => Self::Harmony(harmony::Harmony::default()),
            Format::Forced => Self::Forced(forced::Forced::default()),
        }
    }

    fn push(&mut self, text: &str) -> Parsed {
        match self {
            Self::Plain => Parsed { text: text.to_owned(), ..Parsed::default() },
            Self::Hermes(parser) => parser.push(text),
            Self::Mistral(parser) => parser.push(text),
            Self::Harmony(parser) => parser.push(text),
            Self::Forced(parser) => parser.push(text),
        }
    }

    fn finish(&mut self) -> Parsed {
        match self {
            Self::Plain => Parsed::default(),
            Self::Hermes(parser) => parser.finish(),
            Self::Mistral(parser) => parser.finish(),
            Self::Harmony(parser) => parser.finish(),
            Self::Forced(parser) => parser.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything parsed when `text` arrives in pieces of `piece` characters.
    fn parsed(parser: &mut Parser, text: &str, piece: usize) -> Parsed {
        let mut all = Parsed::default();
        let mut add = |parsed: Parsed| {
            all.text.push_str(&parsed.text);
            all.thought.push_str(&parsed.thought);
            all.calls.extend(parsed.calls);
        };
        let chars: Vec<char> = text.chars().collect();
        for part in chars.chunks(piece) {
            add(parser.push(&part.iter().collect::<String>()));
        }
        add(parser.finish());
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
    fn formats_are_recognised_by_their_markers() {
        assert_eq!(Format::of_template("…<tool_call>…"), Format::Hermes);
        assert_eq!(Format::of_template("…[TOOL_CALLS]…"), Format::Mistral);
        assert_eq!(Format::of_template("<|start|>…<|channel|>…<tool_call>"), Format::Harmony);
        assert_eq!(Format::of_template("{{ messages }}"), Format::Plain);
    }

    #[test]
    fn plain_text_stays() {
        let expected = Parsed { text: "<tool_call>{}".into(), ..Parsed::default() };
        check(Format::Plain, "<tool_call>{}", &expected);
    }
}
