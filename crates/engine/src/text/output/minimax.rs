//! MiniMax-M2: any number of calls in one wrapper.
//!
//! ```text
//! <minimax:tool_call>
//! <invoke name="name">
//! <parameter name="key">value</parameter>
//! </invoke>
//! </minimax:tool_call>
//! ```

use super::blocks::Frame;
use super::tags::{self, Tags};

const TAGS: Tags = Tags {
    wrappers: &["<minimax:tool_call>", "</minimax:tool_call>"],
    call: "<invoke name=",
    parameter: "<parameter name=",
    call_end: "</invoke>",
    parameter_end: "</parameter>",
    lines: false,
};

pub(super) const FRAME: Frame = Frame {
    open: &["<minimax:tool_call>", "<invoke name="],
    close: &["</invoke>", "</minimax:tool_call>"],
    after: &["</parameter>", "</invoke>", "</minimax:tool_call>"],
    read: |block| tags::read(&TAGS, block),
    draft: |block, draft| tags::draft(&TAGS, block, draft),
};
