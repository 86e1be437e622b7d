//! Kimi K2: calls in a section, each with the function and a number, then the arguments.
//!
//! ```text
//! <|tool_calls_section_begin|><|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}
//! <|tool_call_end|><|tool_calls_section_end|>
//! ```

use super::blocks::Frame;
use super::marked::{self, MarkedCall};

const SECTION: &str = "<|tool_calls_section_begin|>";
const SECTION_END: &str = "<|tool_calls_section_end|>";
const CALL: &str = "<|tool_call_begin|>";
const CALL_END: &str = "<|tool_call_end|>";

pub(super) const FRAME: Frame = Frame {
    open: &[SECTION, CALL],
    close: &[CALL_END, SECTION_END],
    after: &[CALL_END, SECTION_END],
    read: |block| marked::read(&MARKED, block),
    draft: |block, draft| marked::draft(&MARKED, block, draft),
};

const MARKED: marked::Marked = marked::Marked {
    sections: &[SECTION],
    call: CALL,
    separator: "<|tool_call_argument_begin|>",
    ends: &[CALL_END, SECTION_END],
    call_of,
};

/// `functions.name:0`: the number counts the conversation's calls.
fn call_of<'a>(head: &'a str, arguments: &'a str) -> MarkedCall<'a> {
    let name = head.strip_prefix("functions.").unwrap_or(head);
    let name = match name.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    };
    MarkedCall { name, arguments }
}
