//! A call that its schema enforces: the whole output is `{"name": …, "arguments": …}`.

use super::blocks::Block;
use super::draft::Draft;
use super::head;
use super::parsed::{Call, Said};
use super::pieces::{Calls, Pieces};
use super::types::ArgumentTypes;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct Forced {
    written: String,
    draft: Draft,
    types: Arc<ArgumentTypes>,
    mode: Calls,
}

impl Forced {
    pub(super) fn new(types: Arc<ArgumentTypes>, mode: Calls) -> Self {
        Self { written: String::new(), draft: Draft::default(), types, mode }
    }

    pub(super) fn push(&mut self, text: &str) -> Vec<Said> {
        let mut pieces = Pieces::default();
        self.written.push_str(text);
        let block = Block { text: &self.written, types: &self.types, last: false };
        head::draft_calls(&block, &[], &mut self.draft);
        if self.mode == Calls::InPieces {
            self.draft.say(&mut pieces);
        }
        pieces.row()
    }

    /// Output that was cut off is not a call; it becomes text, but for what was said of it.
    pub(super) fn finish(&mut self) -> Vec<Said> {
        let mut pieces = Pieces::default();
        let written = std::mem::take(&mut self.written);
        let draft = std::mem::take(&mut self.draft);
        match Call::from_text(&written) {
            Some(call) => draft.confirm(&[call], &mut pieces),
            None if draft.is_said() => pieces.text(&written[draft.at..]),
            None => pieces.text(&written),
        }
        pieces.row()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format::Forced;
    use super::super::Parsed;
    use super::super::tests::{call, check};

    #[test]
    fn the_whole_answer_is_the_call() {
        let text = r#" {"name": "f", "arguments": {"a": [1]}} "#;
        check(
            Forced,
            text,
            &Parsed { calls: vec![call("f", r#"{"a": [1]}"#)], ..Parsed::default() },
        );
        let cut = r#"{"name": "f", "argu"#;
        check(Forced, cut, &Parsed { text: cut.into(), ..Parsed::default() });
    }
}
