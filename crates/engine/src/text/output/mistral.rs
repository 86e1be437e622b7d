//! Mistral: after `[TOOL_CALLS]` either a JSON list of calls or `name[ARGS]{…}`.

use super::blocks::Block;
use super::draft::Draft;
use super::head;
use super::json::{self, End, Json};
use super::marks::{Found, Marks};
use super::parsed::{Call, Said, is_name};
use super::pieces::{Calls, Pieces};
use super::types::ArgumentTypes;
use std::sync::Arc;

const OPEN: &str = "[TOOL_CALLS]";
const ARGUMENTS: &str = "[ARGS]";
/// Some models write an identifier between name and arguments.
const CALL_ID: &str = "[CALL_ID]";

#[derive(Debug)]
pub(super) struct Mistral {
    marks: Marks,
    types: Arc<ArgumentTypes>,
    mode: Calls,
    /// What followed the last mark, and what is certain of it; none yet while text comes.
    written: Option<(String, Draft)>,
}

impl Mistral {
    pub(super) fn new(types: Arc<ArgumentTypes>, mode: Calls) -> Self {
        Self { marks: Marks::default(), types, mode, written: None }
    }

    pub(super) fn push(&mut self, text: &str) -> Vec<Said> {
        self.marks.push(text);
        let mut pieces = Pieces::default();
        loop {
            match self.marks.next(&[OPEN]) {
                Found::Mark(text, _) => {
                    self.add(&text, &mut pieces);
                    self.close(&mut pieces);
                    self.written = Some(Default::default());
                }
                Found::Text(text) => {
                    self.add(&text, &mut pieces);
                    return pieces.row();
                }
            }
        }
    }

    pub(super) fn finish(&mut self) -> Vec<Said> {
        let mut pieces = Pieces::default();
        let rest = self.marks.rest();
        self.add(&rest, &mut pieces);
        self.close(&mut pieces);
        pieces.row()
    }

    fn add(&mut self, text: &str, pieces: &mut Pieces) {
        let Some((written, draft)) = &mut self.written else { return pieces.text(text) };
        written.push_str(text);
        draft_calls(&Block { text: written, types: &self.types, last: false }, draft);
        if self.mode == Calls::InPieces {
            draft.say(pieces);
        }
    }

    fn close(&mut self, pieces: &mut Pieces) {
        let Some((written, draft)) = self.written.take() else { return };
        match calls(&written) {
            Some(calls) => draft.confirm(&calls, pieces),
            None if draft.is_said() => pieces.text(&written[draft.at..]),
            None => pieces.text(&format!("{OPEN}{written}")),
        }
    }
}

fn draft_calls(block: &Block<'_>, draft: &mut Draft) {
    if block.text.trim_start().starts_with(['[', '{']) {
        return head::draft_calls(block, &[], draft);
    }
    if draft.is_empty()
        && let Some((head, arguments)) = block.text.split_once(ARGUMENTS)
        && arguments.trim_start().starts_with('{')
    {
        let brace = block.text.len() - arguments.trim_start().len();
        let name = name(head);
        if is_name(name) && block.types.may_call(name) {
            draft.begin(name.to_owned(), brace);
        }
    }
    draft.copy(block.text);
}

fn name(head: &str) -> &str {
    head.split_once(CALL_ID).map_or(head, |(name, _)| name).trim()
}

fn calls(written: &str) -> Option<Vec<Call>> {
    let Some((head, arguments)) = written.split_once(ARGUMENTS) else {
        let Json::Is(calls) = json::calls(written, &[], End::Open) else { return None };
        return Some(calls);
    };
    let name = name(head);
    let Json::Is(arguments) = json::arguments(arguments, End::Open) else { return None };
    is_name(name).then(|| vec![Call { name: name.into(), arguments }])
}

#[cfg(test)]
mod tests {
    use super::super::Format::Mistral;
    use super::super::Parsed;
    use super::super::tests::{call, check};

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
