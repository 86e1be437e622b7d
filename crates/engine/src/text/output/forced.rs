//! A call that its schema enforces: the whole output is `{"name": …, "arguments": …}`.

use super::parsed::{Call, Parsed};

#[derive(Debug, Default)]
pub(super) struct Forced {
    written: String,
}

impl Forced {
    pub(super) fn push(&mut self, text: &str) -> Parsed {
        self.written.push_str(text);
        Parsed::default()
    }

    /// Output that was cut off is not a call; it becomes text.
    pub(super) fn finish(&mut self) -> Parsed {
        let written = std::mem::take(&mut self.written);
        match Call::from_text(&written) {
            Some(call) => Parsed { calls: vec![call], ..Parsed::default() },
            None => Parsed { text: written, ..Parsed::default() },
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
        check(
            Forced,
            text,
            &Parsed { calls: vec![call("f", r#"{"a":[1]}"#)], ..Parsed::default() },
        );
        let cut = r#"{"name": "f", "argu"#;
        check(Forced, cut, &Parsed { text: cut.into(), ..Parsed::default() });
    }
}
