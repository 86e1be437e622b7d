//! A list of calls as JSON behind one mark: Granite 3 (`<|tool_call|>[…]`), Nemotron Nano 2
//! (`<TOOLCALL>[…]</TOOLCALL>`), Apriel and MiniMax-M1 (`<tool_calls>…</tool_calls>`).

use super::blocks::{Block, Frame, Read};
use super::draft::Draft;
use super::head::draft_calls;
use super::hermes::read_between;

pub(super) const GRANITE: Frame = Frame {
    open: &["<|tool_call|>"],
    close: &[],
    after: &[],
    read: read_granite,
    draft: draft_granite,
};

pub(super) const NEMOTRON: Frame = Frame {
    open: &["<TOOLCALL>"],
    close: &["</TOOLCALL>"],
    after: &["</TOOLCALL>"],
    read: read_nemotron,
    draft: draft_nemotron,
};

pub(super) const PLURAL: Frame = Frame {
    open: &["<tool_calls>"],
    close: &["</tool_calls>"],
    after: &["</tool_calls>"],
    read: read_plural,
    draft: draft_plural,
};

fn read_granite(block: &Block<'_>) -> Read {
    read_between(block, "<|tool_call|>", "<|end_of_text|>")
}

fn read_nemotron(block: &Block<'_>) -> Read {
    read_between(block, "<TOOLCALL>", "</TOOLCALL>")
}

fn read_plural(block: &Block<'_>) -> Read {
    read_between(block, "<tool_calls>", "</tool_calls>")
}

fn draft_granite(block: &Block<'_>, draft: &mut Draft) {
    draft_calls(block, &["<|tool_call|>"], draft);
}

fn draft_nemotron(block: &Block<'_>, draft: &mut Draft) {
    draft_calls(block, &["<TOOLCALL>", "</TOOLCALL>"], draft);
}

fn draft_plural(block: &Block<'_>, draft: &mut Draft) {
    draft_calls(block, &["<tool_calls>", "</tool_calls>"], draft);
}
