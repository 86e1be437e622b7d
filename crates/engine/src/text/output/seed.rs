//! Seed-OSS: tags as Qwen3-Coder's, in `<seed:tool_call>`; values have no lines of their own.

use super::blocks::Frame;
use super::tags::{self, Tags};

const TAGS: Tags = Tags {
    wrappers: &["<seed:tool_call>", "</seed:tool_call>"],
    call: "<function=",
    parameter: "<parameter=",
    call_end: "</function>",
    parameter_end: "</parameter>",
    lines: false,
};

pub(super) const FRAME: Frame = Frame {
    open: &["<seed:tool_call>", "<function="],
    close: &["</function>", "</seed:tool_call>"],
    after: &["</parameter>", "</function>", "</seed:tool_call>"],
    read: |block| tags::read(&TAGS, block),
    draft: |block, draft| tags::draft(&TAGS, block, draft),
};
