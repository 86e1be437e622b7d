//! Hermes and Qwen: `<tool_call>{"name": …, "arguments": …}</tool_call>`, any number of
//! times, text before and between.

use super::marks::{Found, Marks};
use super::parsed::{Call, Parsed};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

#[derive(Debug, Default)]
pub(super) struct Hermes {
    marks: Marks,
    /// The call so far, inside one.
    inside: Option<String>,
    called: bool,
    /// White space after a call: text when other text follows, nothing before the next call.
    blank: String,
    /// Whether other text came since the last marker.
    said: bool,
}

impl Hermes {
    pub(super) fn push(&mut self, text: &str) -> Parsed {
        self.marks.push(text);
        let mut parsed = Parsed::default();
        loop {
            let wanted = if self.inside.is_some() { [CLOSE] } else { [OPEN] };
            match (self.marks.next(&wanted), &mut self.inside) {
                (Found::Mark(text, _), None) => {
                    self.text(&text, &mut parsed);
                    self.blank.clear();
                    self.said = false;
                    self.inside = Some(String::new());
                }
                (Found::Mark(text, _), Some(call)) => {
                    call.push_str(&text);
                    self.close(&mut parsed, CLOSE);
                }
                (Found::Text(text), None) => {
                    self.text(&text, &mut parsed);
                    return parsed;
                }
                (Found::Text(text), Some(call)) => {
                    call.push_str(&text);
                    return parsed;
                }
            }
        }
    }

    pub(super) fn finish(&mut self) -> Parsed {
        let mut parsed = Parsed::default();
        let rest = self.marks.rest();
        match &mut self.inside {
            Some(call) => {
                call.push_str(&rest);
                self.close(&mut parsed, "");
            }
            None => self.text(&rest, &mut parsed),
        }
        parsed
    }

    /// Ends the current call; what cannot be parsed as one becomes text.
    fn close(&mut self, parsed: &mut Parsed, end: &str) {
        let Some(text) = self.inside.take() else { return };
        match Call::from_text(&text) {
            Some(call) => {
                parsed.calls.push(call);
                self.called = true;
            }
            None => parsed.text.push_str(&format!("{OPEN}{text}{end}")),
        }
    }

    /// Blank lines around calls are not text, in whatever pieces they come.
    fn text(&mut self, text: &str, parsed: &mut Parsed) {
        self.said |= !self.called || !text.trim().is_empty();
        self.blank.push_str(text);
        if self.said {
            parsed.text.push_str(&std::mem::take(&mut self.blank));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format::Hermes;
    use super::super::tests::{call, check};
    use super::*;

    #[test]
    fn calls_and_the_text_before_them() {
        let text = "Let me see.\n<tool_call>\n{\"name\": \"now\", \"arguments\": {\"zone\": \"UTC\"}}\n</tool_call>\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
        let expected = Parsed {
            text: "Let me see.\n".into(),
            calls: vec![call("now", r#"{"zone":"UTC"}"#), call("f", "{}")],
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
}
