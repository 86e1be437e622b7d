//! A call the grammar forced: the whole answer is `{"name": …, "arguments": …}`.

use super::{Call, Said};

#[derive(Debug, Default)]
pub(crate) struct Forced {
    written: String,
}

impl Forced {
    pub(super) fn push(&mut self, text: &str) -> Said {
        self.written.push_str(text);
        Said::default()
    }

    /// An answer cut off in the middle is no call; it is given as the text it is.
    pub(super) fn finish(&mut self) -> Said {
        let written = std::mem::take(&mut self.written);
        match Call::from_text(&written) {
            Some(call) => Said { calls: vec![call], ..Said::default() },
            None => Said { text: written, ..Said::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format::Forced;
    use super::super::tests::{call, check};
    use super::*;

    #[test]
    fn the_whole_answer_is_the_call() {
        let text = r#" {"name": "f", "arguments": {"a": [1]}} "#;
        check(Forced, text, &Said { calls: vec![call("f", r#"{"a":[1]}"#)], ..Said::default() });
        let cut = r#"{"name": "f", "argu"#;
        check(Forced, cut, &Said { text: cut.into(), ..Said::default() });
    }
}
