//! DeepSeek V3.2 (`function_calls`) and V4 (`tool_calls`): tags with a mark of their own. A parameter
//! says whether it is a string.
//!
//! ```text
//! <｜DSML｜function_calls>
//! <｜DSML｜invoke name="name">
//! <｜DSML｜parameter name="key" string="true">value</｜DSML｜parameter>
//! </｜DSML｜invoke>
//! </｜DSML｜function_calls>
//! ```

use super::blocks::Frame;
use super::tags::{self, Tags};

const TAGS: Tags = Tags {
    wrappers: &[
        "<｜DSML｜function_calls>",
        "</｜DSML｜function_calls>",
        "<｜DSML｜tool_calls>",
        "</｜DSML｜tool_calls>",
    ],
    call: "<｜DSML｜invoke name=",
    parameter: "<｜DSML｜parameter name=",
    call_end: "</｜DSML｜invoke>",
    parameter_end: "</｜DSML｜parameter>",
    lines: false,
};

pub(super) const FRAME: Frame = Frame {
    open: &["<｜DSML｜function_calls>", "<｜DSML｜tool_calls>", "<｜DSML｜invoke name="],
    close: &["</｜DSML｜invoke>", "</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"],
    after: &[
        "</｜DSML｜parameter>",
        "</｜DSML｜invoke>",
        "</｜DSML｜function_calls>",
        "</｜DSML｜tool_calls>",
    ],
    read: |block| tags::read(&TAGS, block),
    draft: |block, draft| tags::draft(&TAGS, block, draft),
};
