//! gpt-oss: messages in channels, between control tokens.
//!
//! ```text
//! <|channel|>analysis<|message|>…<|end|>          thought
//! <|start|>assistant<|channel|>final<|message|>…  text
//! <|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>
//! ```

use super::marks::{Found, Marks};
use super::parsed::{Call, Parsed};

const MARKS: [&str; 7] = [
    "<|start|>",
    "<|channel|>",
    "<|constrain|>",
    "<|message|>",
    "<|end|>",
    "<|call|>",
    "<|return|>",
];

/// Where in a message the text is.
#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before any marker: plain text, in case the model does not keep to the format.
    #[default]
    Outside,
    /// Role, channel and recipient so far.
    Header(String),
    Thought,
    Text,
    /// Function and arguments so far.
    Call(String, String),
}

#[derive(Debug, Default)]
pub(super) struct Harmony {
    marks: Marks,
    place: Place,
}

impl Harmony {
    pub(super) fn push(&mut self, text: &str) -> Parsed {
        self.marks.push(text);
        let mut parsed = Parsed::default();
        loop {
            match self.marks.next(&MARKS) {
                Found::Mark(text, mark) => {
                    self.text(&text, &mut parsed);
                    self.mark(mark, &mut parsed);
                }
                Found::Text(text) => {
                    self.text(&text, &mut parsed);
                    return parsed;
                }
            }
        }
    }

    pub(super) fn finish(&mut self) -> Parsed {
        let mut parsed = Parsed::default();
        let rest = self.marks.rest();
        self.text(&rest, &mut parsed);
        self.mark("<|end|>", &mut parsed);
        parsed
    }

    fn text(&mut self, text: &str, parsed: &mut Parsed) {
        match &mut self.place {
            Place::Header(header) => header.push_str(text),
            Place::Thought => parsed.thought.push_str(text),
            Place::Text | Place::Outside => parsed.text.push_str(text),
            Place::Call(_, arguments) => arguments.push_str(text),
        }
    }

    fn mark(&mut self, mark: &str, parsed: &mut Parsed) {
        let place = std::mem::take(&mut self.place);
        self.place = match (mark, place) {
            ("<|message|>", Place::Header(header)) => body(&header),
            ("<|channel|>" | "<|constrain|>", Place::Header(header)) => Place::Header(header + " "),
            (_, Place::Call(name, arguments)) => {
                parsed.calls.push(Call { name, arguments });
                after(mark)
            }
            (mark, _) => after(mark),
        };
    }
}

fn after(mark: &str) -> Place {
    match mark {
        "<|start|>" | "<|channel|>" => Place::Header(String::new()),
        // Between messages only whitespace or the next header comes.
        _ => Place::Outside,
    }
}

fn body(header: &str) -> Place {
    let recipient = header.split_whitespace().find_map(|word| word.strip_prefix("to="));
    match recipient {
        Some(name) => {
            let name = name.strip_prefix("functions.").unwrap_or(name);
            Place::Call(name.to_owned(), String::new())
        }
        None if header.contains("analysis") => Place::Thought,
        None => Place::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format::Harmony;
    use super::super::tests::{call, check};
    use super::*;

    #[test]
    fn thoughts_and_the_answer() {
        let text = "<|channel|>analysis<|message|>Simple.<|end|><|start|>assistant<|channel|>final<|message|>4";
        let expected = Parsed { text: "4".into(), thought: "Simple.".into(), calls: Vec::new() };
        check(Harmony, text, &expected);
    }

    #[test]
    fn a_call() {
        let text = "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{\"zone\":\"UTC\"}<|call|>";
        check(
            Harmony,
            text,
            &Parsed { calls: vec![call("now", r#"{"zone":"UTC"}"#)], ..Parsed::default() },
        );
        let role = "<|start|>assistant to=functions.f<|channel|>commentary<|message|>{}";
        check(Harmony, role, &Parsed { calls: vec![call("f", "{}")], ..Parsed::default() });
    }

    #[test]
    fn text_without_channels_is_text() {
        check(
            Harmony,
            "Hello <|there",
            &Parsed { text: "Hello <|there".into(), ..Parsed::default() },
        );
    }
}
