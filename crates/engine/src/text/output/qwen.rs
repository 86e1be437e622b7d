//! Qwen3-Coder, Qwen3.5, Nemotron 3, Step 3.5:
//!
//! ```text
//! <tool_call>
//! <function=name>
//! <parameter=key>
//! value
//! </parameter>
//! </function>
//! </tool_call>
//! ```
//!
//! They leave out the outer tags at times, or write JSON between them. `<function=name>{…}</function>`
//! is Functionary's form, and Llama 3's other one.

use super::blocks::{Block, Frame, Read};
use super::draft::Draft;
use super::hermes;
use super::tags::{self, Tags};

const TAGS: Tags = Tags {
    wrappers: &["<tool_call>", "</tool_call>"],
    call: "<function=",
    parameter: "<parameter=",
    call_end: "</function>",
    parameter_end: "</parameter>",
    lines: true,
};

pub(super) const FRAME: Frame = Frame {
    open: &["<tool_call>", "<function="],
    close: &["</function>", "</tool_call>"],
    after: &["</parameter>", "</function>", "</tool_call>"],
    read,
    draft,
};

fn read(block: &Block<'_>) -> Read {
    match is_json(block) {
        true => hermes::read(block),
        false => tags::read(&TAGS, block),
    }
}

fn draft(block: &Block<'_>, draft: &mut Draft) {
    match is_json(block) {
        true => hermes::draft(block, draft),
        false => tags::draft(&TAGS, block, draft),
    }
}

fn is_json(block: &Block<'_>) -> bool {
    let body = block.text.strip_prefix("<tool_call>").unwrap_or(block.text).trim_start();
    body.starts_with(['{', '['])
}
