//! Formats of function calls, and how a model's is found out: by the marks in its template. One format,
//! one file; `Reader` is the one that reads.

use super::bare::Bare;
use super::blocks::{Blocks, Frame};
use super::forced::Forced;
use super::harmony::Harmony;
use super::mistral::Mistral;
use super::parsed::Said;
use super::pieces::Calls;
use super::types::ArgumentTypes;
use super::{
    deepseek, dsml, gemma, glm, hermes, kimi, listed, llama, minimax, pythonic, qwen, seed,
};
use std::sync::Arc;

/// How a model writes function calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// No calls: everything is text.
    Plain,
    /// `<tool_call>{…}</tool_call>`: Hermes, Qwen 2.5 and 3, Granite 4.
    Hermes,
    /// `<function=…>` with `<parameter=…>`: Qwen3-Coder, Qwen3.5, Nemotron 3, Step 3.5.
    Qwen,
    /// `<tool_call>name` with `<arg_key>` and `<arg_value>`: GLM-4.5 and later.
    Glm,
    /// `<｜tool▁call▁begin｜>`: DeepSeek V3, R1, V3.1.
    DeepSeek,
    /// `<｜DSML｜invoke name="…">`: DeepSeek V3.2, V4.
    Dsml,
    /// `<|tool_call_begin|>`: Kimi K2.
    Kimi,
    /// `<invoke name="…">` in `<minimax:tool_call>`: MiniMax-M2.
    MiniMax,
    /// `<function=…>` in `<seed:tool_call>`: Seed-OSS.
    Seed,
    /// `<|tool_call>call:name{…}<tool_call|>`: Gemma 4.
    Gemma,
    /// `{"name": …, "parameters": …}`, alone or after `<|python_tag|>`: Llama 3.
    Llama,
    /// `[name(key="value")]`: Llama 4, Llama 3.2.
    Pythonic,
    /// `<|tool_call|>[{…}]`: Granite 3.
    Granite,
    /// `<TOOLCALL>[{…}]</TOOLCALL>`: Nemotron Nano 2.
    Nemotron,
    /// `<tool_calls>…</tool_calls>`: Apriel, MiniMax-M1.
    Plural,
    /// `[TOOL_CALLS][{…}]` or `[TOOL_CALLS]name[ARGS]{…}`: Mistral.
    Mistral,
    /// Channels between control tokens: gpt-oss.
    Harmony,
    /// The output is one call as JSON, as its schema enforces.
    Forced,
}

/// Marks in templates, those first that others are part of.
const MARKS: [(&str, Format); 17] = [
    ("<|channel|>", Format::Harmony),
    ("｜DSML｜", Format::Dsml),
    ("<｜tool▁call▁begin｜>", Format::DeepSeek),
    ("<|tool_call_begin|>", Format::Kimi),
    ("<minimax:tool_call>", Format::MiniMax),
    ("<seed:tool_call>", Format::Seed),
    ("<|tool_call>", Format::Gemma),
    ("[TOOL_CALLS]", Format::Mistral),
    ("<arg_key>", Format::Glm),
    ("<function=", Format::Qwen),
    ("<tool_calls>", Format::Plural),
    ("<tool_call>", Format::Hermes),
    ("<|tool_call|>", Format::Granite),
    ("<TOOLCALL>", Format::Nemotron),
    ("[func_name1(", Format::Pythonic),
    ("<|python_tag|>", Format::Llama),
    ("{\"name\": function name, \"parameters\":", Format::Llama),
];

impl Format {
    /// Recognised by the markers in the model's template.
    pub(super) fn of_template(template: &str) -> Self {
        let found = MARKS.iter().find(|(mark, _)| template.contains(mark));
        found.map_or(Self::Plain, |(_, format)| *format)
    }

    /// Whether its markers may be control tokens, which are hidden by default.
    pub(super) fn control_tokens(self) -> bool {
        match self {
            Self::DeepSeek | Self::Dsml | Self::Kimi | Self::Gemma => true,
            Self::Llama | Self::Pythonic | Self::Granite | Self::Mistral | Self::Harmony => true,
            Self::MiniMax | Self::Seed | Self::Nemotron | Self::Plural => true,
            Self::Plain | Self::Hermes | Self::Qwen | Self::Glm | Self::Forced => false,
        }
    }

    /// Its marks, where calls stand between marks.
    fn frame(self) -> Option<&'static Frame> {
        match self {
            Self::Hermes => Some(&hermes::FRAME),
            Self::Qwen => Some(&qwen::FRAME),
            Self::Glm => Some(&glm::FRAME),
            Self::DeepSeek => Some(&deepseek::FRAME),
            Self::Dsml => Some(&dsml::FRAME),
            Self::Kimi => Some(&kimi::FRAME),
            Self::MiniMax => Some(&minimax::FRAME),
            Self::Seed => Some(&seed::FRAME),
            Self::Gemma => Some(&gemma::FRAME),
            Self::Granite => Some(&listed::GRANITE),
            Self::Nemotron => Some(&listed::NEMOTRON),
            Self::Plural => Some(&listed::PLURAL),
            Self::Llama | Self::Pythonic | Self::Mistral | Self::Harmony => None,
            Self::Plain | Self::Forced => None,
        }
    }
}

/// Reads one output in one format.
#[derive(Debug)]
pub(super) enum Reader {
    Plain,
    Blocks(Blocks),
    Bare(Bare),
    Mistral(Mistral),
    Harmony(Harmony),
    Forced(Forced),
}

impl Reader {
    pub(super) fn new(format: Format, types: Arc<ArgumentTypes>, mode: Calls) -> Self {
        match (format, format.frame()) {
            (_, Some(frame)) => Self::Blocks(Blocks::new(frame, types, mode)),
            (Format::Llama, None) => Self::Bare(Bare::new(&llama::FORM, types, mode)),
            (Format::Pythonic, None) => Self::Bare(Bare::new(&pythonic::FORM, types, mode)),
            (Format::Mistral, None) => Self::Mistral(Mistral::new(types, mode)),
            (Format::Harmony, None) => Self::Harmony(Harmony::new(mode)),
            (Format::Forced, None) => Self::Forced(Forced::new(types, mode)),
            (_, None) => Self::Plain,
        }
    }

    pub(super) fn push(&mut self, text: &str) -> Vec<Said> {
        match self {
            Self::Plain if text.is_empty() => Vec::new(),
            Self::Plain => vec![Said::Text(text.to_owned())],
            Self::Blocks(reader) => reader.push(text),
            Self::Bare(reader) => reader.push(text),
            Self::Mistral(reader) => reader.push(text),
            Self::Harmony(reader) => reader.push(text),
            Self::Forced(reader) => reader.push(text),
        }
    }

    pub(super) fn finish(&mut self) -> Vec<Said> {
        match self {
            Self::Plain => Vec::new(),
            Self::Blocks(reader) => reader.finish(),
            Self::Bare(reader) => reader.finish(),
            Self::Mistral(reader) => reader.finish(),
            Self::Harmony(reader) => reader.finish(),
            Self::Forced(reader) => reader.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised_by_their_markers() {
        for (template, format) in [
            ("…<tool_call>…", Format::Hermes),
            ("<tool_call>\n<function=example>", Format::Qwen),
            ("<tool_call>{function-name}\n<arg_key>", Format::Glm),
            ("…[TOOL_CALLS]…", Format::Mistral),
            ("<|start|>…<|channel|>…<tool_call>", Format::Harmony),
            ("<|channel>thought … <|tool_call>call:", Format::Gemma),
            ("… [func_name1(params_name1=params_value1)] … <|python_tag|>", Format::Pythonic),
            ("<|tool_call|> followed by a JSON list", Format::Granite),
            ("{{ messages }}", Format::Plain),
        ] {
            assert_eq!(Format::of_template(template), format, "{template}");
        }
    }
}
