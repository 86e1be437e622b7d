//! Mistral: after `[TOOL_CALLS]` either a JSON list of calls or `name[ARGS]{…}`.

use super::json::{self, End, Json};
use super::marks::{Found, Marks};
use super::parsed::{Call, Parsed, is_name};

const OPEN: &str = "[TOOL_CALLS]";
const ARGUMENTS: &str = "[ARGS]";
/// Some models write an identifier between name and arguments.
const CALL_ID: &str = "[CALL_ID]";

#[derive(Debug, Default)]
pub(super) struct Mistral {
    marks: Marks,
    /// Calls, each as written; none yet while text comes.
    calls: Vec<String>,
}

impl Mistral {
    pub(super) fn push(&mut self, text: &str) -> Parsed {
        self.marks.push(text);
        let mut parsed = Parsed::default();
        loop {
            let (text, opened) = match self.marks.next(&[OPEN]) {
                Found::Mark(text, _) => (text, true),
                Found::Text(text) => (text, false),
            };
            match self.calls.last_mut() {
                Some(call) => call.push_str(&text),
                None => parsed.text.push_str(&text),
            }
            if !opened {
                return parsed;
            }
            self.calls.push(String::new());
        }
    }

    pub(super) fn finish(&mut self) -> Parsed {
        let mut parsed = Parsed::default();
        let rest = self.marks.rest();
        match self.calls.last_mut() {
            Some(call) => call.push_str(&rest),
            None => parsed.text.push_str(&rest),
        }
        for written in std::mem::take(&mut self.calls) {
            match calls(&written) {
                Some(calls) => parsed.calls.extend(calls),
                None => parsed.text.push_str(&format!("{OPEN}{written}")),
            }
        }
        parsed
    }
}

fn calls(written: &str) -> Option<Vec<Call>> {
    let Some((head, arguments)) = written.split_once(ARGUMENTS) else {
        let Json::Is(calls) = json::calls(written, &[], End::Open) else { return None };
        return Some(calls);
    };
    let name = head.split_once(CALL_ID).map_or(head, |(name, _)| name).trim();
    let Json::Is(arguments) = json::arguments(arguments, End::Open) else { return None };
    is_name(name).then(|| vec![Call { name: name.into(), arguments }])
}

#[cfg(test)]
mod tests {
    use super::super::Format::Mistral;
    use super::super::tests::{call, check};
    use super::*;

    #[test]
    fn a_list_of_calls() {
        let text = r#"[TOOL_CALLS][{"name":"f","arguments":{"a":1}},{"name":"g","arguments":{}}]"#;
        let calls = vec![call("f", r#"{"a":1}"#), call("g", "{}")];
        check(Mistral, text, &Parsed { calls, ..Parsed::default() });
    }

    #[test]
    fn names_with_arguments() {
        let text = r#"Hm. [TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{}"#;
        let calls = vec![call("f", r#"{"a": 1}"#), call("g", "{}")];
        check(Mistral, text, &Parsed { text: "Hm. ".into(), calls, ..Parsed::default() });
    }

    #[test]
    fn anything_else_is_text() {
        for text in ["[TOOL", "[TOOL_CALLS]sorry", "plain"] {
            check(Mistral, text, &Parsed { text: text.into(), ..Parsed::default() });
        }
    }
}
