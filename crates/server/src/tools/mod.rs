//! A model's output, parsed: text, thoughts, function calls. One format, one file; an unknown
//! format is plain text. Text arrives in pieces, and what may be the beginning of a marker is
//! held back until it is clear. Public because whatever a model writes comes through here: it can be
//! tried without one.

mod forced;
mod harmony;
mod hermes;
mod marks;
mod mistral;
mod parsed;

pub use parsed::{Call, Parsed};

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
    pub(crate) fn of_template(template: &str) -> Self {
        let marks = [
            ("<|channel|>", Self::Harmony),
            ("[TOOL_CALLS]", Self::Mistral),
            ("<tool_call>", Self::Hermes),
        ];
        marks.into_iter().find(|(mark, _)| template.contains(mark)).map_or(Self::Plain, |m| m.1)
    }

    /// Whether its markers are control tokens, which are hidden by default.
    pub(crate) fn control_tokens(self) -> bool {
        matches!(self, Self::Mistral | Self::Harmony)
    }
}

/// Parses output as it arrives.
#[derive(Debug)]
pub struct Parser(Kind);

#[derive(Debug)]
enum Kind {
    Plain,
    Hermes(hermes::Hermes),
    Mistral(mistral::Mistral),
    Harmony(harmony::Harmony),
    Forced(forced::Forced),
}

impl Parser {
    /// One that has read nothing.
    pub fn new(format: Format) -> Self {
        Self(match format {
            Format::Plain => Kind::Plain,
            Format::Hermes => Kind::Hermes(hermes::Hermes::default()),
            Format::Mistral => Kind::Mistral(mistral::Mistral::default()),
            Format::Harmony => Kind::Harmony(harmony::Harmony::default()),
            Format::Forced => Kind::Forced(forced::Forced::default()),
        })
    }

    /// Adds text; returns what is certain now.
    pub fn push(&mut self, text: &str) -> Parsed {
        match &mut self.0 {
            Kind::Plain => Parsed { text: text.to_owned(), ..Parsed::default() },
            Kind::Hermes(parser) => parser.push(text),
            Kind::Mistral(parser) => parser.push(text),
            Kind::Harmony(parser) => parser.push(text),
            Kind::Forced(parser) => parser.push(text),
        }
    }

    /// What was held back, after the last text.
    pub fn finish(&mut self) -> Parsed {
        match &mut self.0 {
            Kind::Plain => Parsed::default(),
            Kind::Hermes(parser) => parser.finish(),
            Kind::Mistral(parser) => parser.finish(),
            Kind::Harmony(parser) => parser.finish(),
            Kind::Forced(parser) => parser.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Everything parsed when `text` arrives in pieces of `piece` characters.
    pub(super) fn parsed(format: Format, text: &str, piece: usize) -> Parsed {
        let mut parser = Parser::new(format);
        let mut all = Parsed::default();
        let mut add = |parsed: Parsed| {
            all.text.push_str(&parsed.text);
            all.thought.push_str(&parsed.thought);
            all.calls.extend(parsed.calls);
        };
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(piece).for_each(|part| add(parser.push(&part.iter().collect::<String>())));
        add(parser.finish());
        all
    }

    /// The same in pieces of every size.
    pub(super) fn check(format: Format, text: &str, expected: &Parsed) {
        for piece in 1..=text.chars().count().max(1) {
            assert_eq!(&parsed(format, text, piece), expected, "in pieces of {piece}");
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
