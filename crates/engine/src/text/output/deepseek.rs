//! DeepSeek V3 and R1, and V3.1 in a shorter form:
//!
//! ````text
//! <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>name
//! ```json
//! {…}
//! ```<｜tool▁call▁end｜><｜tool▁calls▁end｜>
//!
//! <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>name<｜tool▁sep｜>{…}<｜tool▁call▁end｜><｜tool▁calls▁end｜>
//! ````

use super::blocks::Frame;
use super::marked::{self, MarkedCall};

const SECTION: &str = "<｜tool▁calls▁begin｜>";
const SECTION_END: &str = "<｜tool▁calls▁end｜>";
const CALL: &str = "<｜tool▁call▁begin｜>";
const CALL_END: &str = "<｜tool▁call▁end｜>";

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
    separator: "<｜tool▁sep｜>",
    ends: &[CALL_END, SECTION_END],
    call_of,
};

fn call_of<'a>(head: &'a str, body: &'a str) -> MarkedCall<'a> {
    match body.split_once("```json") {
        Some((name, fenced)) if !body.trim_start().starts_with('{') => {
            let fenced = fenced.trim_end();
            let arguments = fenced.strip_suffix("```").unwrap_or(fenced);
            MarkedCall { name: name.trim(), arguments }
        }
        _ => MarkedCall { name: head, arguments: body },
    }
}
