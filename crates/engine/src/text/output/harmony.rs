//! gpt-oss: messages in channels, between control tokens.
//!
//! ```text
//! <|channel|>analysis<|message|>…<|end|>          thought
//! <|start|>assistant<|channel|>final<|message|>…  text
//! <|channel|>commentary to=functions.f <|constrain|>json<|message|>{…}<|call|>
//! ```

use super::marks::{Found, Marks};
use super::parsed::Said;
use super::pieces::{Calls, Pieces};

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
    Call(Called),
}

/// A call's function, and arguments that were not said yet.
#[derive(Debug, Default, PartialEq, Eq)]
struct Called {
    name: String,
    arguments: String,
    /// Whether the function was said.
    begun: bool,
}

#[derive(Debug)]
pub(super) struct Harmony {
    marks: Marks,
    place: Place,
    mode: Calls,
}

impl Harmony {
    pub(super) fn new(mode: Calls) -> Self {
        Self { marks: Marks::default(), place: Place::default(), mode }
    }

    pub(super) fn push(&mut self, text: &str) -> Vec<Said> {
        self.marks.push(text);
        let mut pieces = Pieces::default();
        loop {
            match self.marks.next(&MARKS) {
                Found::Mark(text, mark) => {
                    self.text(&text, &mut pieces);
                    self.mark(mark, &mut pieces);
                }
                Found::Text(text) => {
                    self.text(&text, &mut pieces);
                    return pieces.row();
                }
            }
        }
    }

    pub(super) fn finish(&mut self) -> Vec<Said> {
        let mut pieces = Pieces::default();
        let rest = self.marks.rest();
        self.text(&rest, &mut pieces);
        self.mark("<|end|>", &mut pieces);
        pieces.row()
    }

    fn text(&mut self, text: &str, pieces: &mut Pieces) {
        match &mut self.place {
            Place::Header(header) => header.push_str(text),
            Place::Thought => pieces.thought(text),
            Place::Text | Place::Outside => pieces.text(text),
            Place::Call(called) => {
                called.arguments.push_str(text);
                if self.mode == Calls::InPieces {
                    called.say(pieces);
                }
            }
        }
    }

    fn mark(&mut self, mark: &str, pieces: &mut Pieces) {
        let place = std::mem::take(&mut self.place);
        self.place = match (mark, place) {
            ("<|message|>", Place::Header(header)) => body(&header),
            ("<|channel|>" | "<|constrain|>", Place::Header(header)) => Place::Header(header + " "),
            (_, Place::Call(mut called)) => {
                called.say(pieces);
                pieces.end();
                after(mark)
            }
            (mark, _) => after(mark),
        };
    }
}

impl Called {
    fn say(&mut self, pieces: &mut Pieces) {
        if !std::mem::replace(&mut self.begun, true) {
            pieces.begin(&self.name);
        }
        pieces.arguments(&std::mem::take(&mut self.arguments));
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
            Place::Call(Called { name: name.to_owned(), ..Called::default() })
        }
        None if header.contains("analysis") => Place::Thought,
        None => Place::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format::Harmony;
    use super::super::Parsed;
    use super::super::tests::{call, check};

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
