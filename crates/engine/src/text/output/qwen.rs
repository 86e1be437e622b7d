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
};

fn read(block: &Block<'_>) -> Read {
    let body = block.text.strip_prefix("<tool_call>").unwrap_or(block.text).trim_start();
    match body.starts_with(['{', '[']) {
        true => hermes::read(block),
        false => tags::read(&TAGS, block),
    }
}
