//! Hermes, Qwen 2.5 and 3, Granite 4: `<tool_call>{"name": …, "arguments": …}</tool_call>`.

use super::blocks::{Block, Frame, Read};
use super::draft::Draft;
use super::head;
use super::json::{self, End, Json};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

pub(super) const FRAME: Frame =
    Frame { open: &[OPEN], close: &[CLOSE], after: &[CLOSE], read, draft };

/// Also for models that write such a block where they should write tags.
pub(super) fn read(block: &Block<'_>) -> Read {
    read_between(block, OPEN, CLOSE)
}

pub(super) fn draft(block: &Block<'_>, draft: &mut Draft) {
    head::draft_calls(block, &[OPEN, CLOSE], draft);
}

/// Calls as JSON between any two marks.
pub(super) fn read_between(block: &Block<'_>, open: &str, close: &str) -> Read {
    let body = block.text.strip_suffix(close);
    let end = if body.is_some() { End::Marked } else { End::Open };
    match json::calls(body.unwrap_or(block.text), &[open, close], end) {
        Json::Is(calls) => Read::whole(Some(calls), block),
        Json::InString if !block.last => Read::More,
        Json::InString | Json::Not => Read::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format::Hermes;
    use super::super::Parsed;
    use super::super::tests::{call, check};

    #[test]
    fn calls_and_the_text_before_them() {
        let text = "Let me see.\n<tool_call>\n{\"name\": \"now\", \"arguments\": {\"zone\": \"UTC\"}}\n</tool_call>\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
        let expected = Parsed {
            text: "Let me see.\n".into(),
            calls: vec![call("now", r#"{"zone": "UTC"}"#), call("f", "{}")],
            ..Parsed::default()
        };
        check(Hermes, text, &expected);
    }

    #[test]
    fn a_call_cut_off_or_malformed_is_text() {
        for text in ["a <tool_call>{\"name\": \"no", "<tool_call>nonsense</tool_call> b", "1 <tool"]
        {
            check(Hermes, text, &Parsed { text: text.into(), ..Parsed::default() });
        }
    }

    /// What the fuzz target `tool_calls` asks for: a blank that came alone was lost before more text.
    #[test]
    fn white_space_after_a_call_is_text_when_text_follows() {
        let call_and =
            |rest: &str| format!(r#"<tool_call>{{"name":"f","arguments":{{}}}}</tool_call>{rest}"#);
        let expected = |text: &str, calls: usize| Parsed {
            text: text.into(),
            calls: vec![call("f", "{}"); calls],
            ..Parsed::default()
        };
        check(Hermes, &call_and("\n\n Done. \n"), &expected("\n\n Done. \n", 1));
        check(Hermes, &call_and(" <tool"), &expected(" <tool", 1));
        check(Hermes, &call_and(&format!(" \n{}\n", call_and(" "))), &expected("", 2));
    }

    #[test]
    fn a_call_that_is_whole_but_not_closed_counts() {
        let text = r#"<tool_call>{"name":"f","arguments":"{}"}"#;
        check(Hermes, text, &Parsed { calls: vec![call("f", "{}")], ..Parsed::default() });
    }

    #[test]
    fn a_mark_in_a_string_closes_nothing() {
        let text = r#"<tool_call>{"name":"f","arguments":{"a":"</tool_call>"}}</tool_call>"#;
        let calls = vec![call("f", r#"{"a":"</tool_call>"}"#)];
        check(Hermes, text, &Parsed { calls, ..Parsed::default() });
    }

    #[test]
    fn a_mark_in_prose_opens_nothing() {
        let text = r#"In <tool_call> marks: <tool_call>{"name":"f"}</tool_call>"#;
        let text_before = "In <tool_call> marks: ".to_owned();
        let calls = vec![call("f", "{}")];
        check(Hermes, text, &Parsed { text: text_before, calls, ..Parsed::default() });
    }
}
