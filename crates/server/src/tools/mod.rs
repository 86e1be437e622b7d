//! What a model said, taken apart: text, thoughts, calls of functions. One format, one
//! file; a format nobody knows is plain text. Text arrives in pieces, and what may be
//! the beginning of a marker is held back until it is clear.

mod forced;
mod harmony;
mod hermes;
mod marks;
mod mistral;

use serde_json::Value;

/// How a model writes calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// Not at all: all is text.
    Plain,
    /// `<tool_call>{…}</tool_call>`: Hermes, Qwen.
    Hermes,
    /// `[TOOL_CALLS][{…}]` or `[TOOL_CALLS]name[ARGS]{…}`: Mistral.
    Mistral,
    /// Channels between control tokens: gpt-oss.
    Harmony,
    /// The answer is one call, written as JSON: a grammar saw to that.
    Forced,
}

impl Format {
    /// Told from the model's own template.
    pub(crate) fn of_template(template: &str) -> Self {
        let marks = [
            ("<|channel|>", Self::Harmony),
            ("[TOOL_CALLS]", Self::Mistral),
            ("<tool_call>", Self::Hermes),
        ];
        marks.into_iter().find(|(mark, _)| template.contains(mark)).map_or(Self::Plain, |m| m.1)
    }

    /// Whether its markers are control tokens, which are not shown otherwise.
    pub(crate) fn control_tokens(self) -> bool {
        matches!(self, Self::Mistral | Self::Harmony)
    }
}

/// What is new in an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) thought: String,
    pub(crate) calls: Vec<Call>,
}

/// A call of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// JSON, as text.
    pub(crate) arguments: String,
}

impl Call {
    /// From `{"name": …, "arguments": …}`; `parameters` is understood as well.
    fn from_json(json: &Value) -> Option<Self> {
        let arguments = json.get("arguments").or_else(|| json.get("parameters"))?;
        let arguments = match arguments {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Some(Self { name: json.get("name")?.as_str()?.to_owned(), arguments })
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::from_json(&serde_json::from_str(text.trim()).ok()?)
    }
}

/// Takes an answer apart as it arrives.
#[derive(Debug)]
pub(crate) enum Parser {
    Plain,
    Hermes(hermes::Hermes),
    Mistral(mistral::Mistral),
    Harmony(harmony::Harmony),
    Forced(forced::Forced),
}

impl Parser {
    pub(crate) fn new(format: Format) -> Self {
        match format {
            Format::Plain => Self::Plain,
            Format::Hermes => Self::Hermes(hermes::Hermes::default()),
            Format::Mistral => Self::Mistral(mistral::Mistral::default()),
            Format::Harmony => Self::Harmony(harmony::Harmony::default()),
            Format::Forced => Self::Forced(forced::Forced::default()),
        }
    }

    /// Adds text; what is sure now.
    pub(crate) fn push(&mut self, text: &str) -> Said {
        match self {
            Self::Plain => Said { text: text.to_owned(), ..Said::default() },
            Self::Hermes(parser) => parser.push(text),
            Self::Mistral(parser) => parser.push(text),
            Self::Harmony(parser) => parser.push(text),
            Self::Forced(parser) => parser.push(text),
        }
    }

    /// What was held back, when no more comes.
    pub(crate) fn finish(&mut self) -> Said {
        match self {
            Self::Plain => Said::default(),
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

    /// All that is said when `text` arrives in pieces of `piece` characters.
    pub(super) fn said(format: Format, text: &str, piece: usize) -> Said {
        let mut parser = Parser::new(format);
        let mut all = Said::default();
        let mut add = |said: Said| {
            all.text.push_str(&said.text);
            all.thought.push_str(&said.thought);
            all.calls.extend(said.calls);
        };
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(piece).for_each(|part| add(parser.push(&part.iter().collect::<String>())));
        add(parser.finish());
        all
    }

    /// The same in pieces of every size.
    pub(super) fn check(format: Format, text: &str, expected: &Said) {
        for piece in 1..=text.chars().count().max(1) {
            assert_eq!(&said(format, text, piece), expected, "in pieces of {piece}");
        }
    }

    pub(super) fn call(name: &str, arguments: &str) -> Call {
        Call { name: name.into(), arguments: arguments.into() }
    }

    #[test]
    fn templates_tell_their_format() {
        assert_eq!(Format::of_template("…<tool_call>…"), Format::Hermes);
        assert_eq!(Format::of_template("…[TOOL_CALLS]…"), Format::Mistral);
        assert_eq!(Format::of_template("<|start|>…<|channel|>…<tool_call>"), Format::Harmony);
        assert_eq!(Format::of_template("{{ messages }}"), Format::Plain);
    }

    #[test]
    fn plain_text_stays() {
        let expected = Said { text: "<tool_call>{}".into(), ..Said::default() };
        check(Format::Plain, "<tool_call>{}", &expected);
    }
}
