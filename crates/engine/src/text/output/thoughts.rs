//! Thoughts before an answer: `<think>…</think>` and its like. They come first or not at all; marks
//! later in an answer are text, as in an answer about such marks. Knows no function calls.

use super::marks::{Found, Marks};

/// Marks around thoughts, as templates write them.
const MARKS: [(&str, &str); 5] = [
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    // Gemma 4, Seed-OSS, MiniMax-M3.
    ("<|channel>thought", "<channel|>"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
];

/// How a model writes its thoughts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thoughts {
    open: &'static str,
    close: &'static str,
    /// Whether the prompt opened them already, as some templates do.
    begun: bool,
    /// Whether the marks are control tokens, which are hidden by default.
    pub(super) control: bool,
}

impl Thoughts {
    /// Recognised by the closing mark in the model's template: some never write the opening one.
    /// `control_texts` are the texts of control tokens.
    pub(super) fn of(template: &str, control_texts: &[String]) -> Option<Self> {
        let (open, close) = MARKS.into_iter().find(|(_, close)| template.contains(close))?;
        let control = control_texts.iter().any(|text| text == close);
        Some(Self { open, close, begun: false, control })
    }

    /// After a prompt that ends with `text`.
    pub(super) fn after(self, text: &str) -> Self {
        Self { begun: text.trim_end().ends_with(self.open), ..self }
    }
}

/// Takes thoughts from the beginning of an output as it arrives.
#[derive(Debug)]
pub(super) struct ThoughtReader {
    thoughts: Thoughts,
    place: Place,
    marks: Marks,
    /// White space that is part of the thought when more of it follows.
    blank: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Only white space came, or the beginning of the opening mark.
    Before,
    /// In the thought; `true` once it has any text.
    Inside(bool),
    /// Past the closing mark, where white space is no part of the answer.
    Closed,
    /// In the answer.
    After,
}

/// What a piece of output adds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) thought: String,
    /// Output that is no thought, marks of calls included.
    pub(super) rest: String,
}

impl ThoughtReader {
    pub(super) fn new(thoughts: Thoughts) -> Self {
        let place = if thoughts.begun { Place::Inside(false) } else { Place::Before };
        Self { thoughts, place, marks: Marks::default(), blank: String::new() }
    }

    pub(super) fn push(&mut self, text: &str) -> Split {
        self.marks.push(text);
        let mut split = Split::default();
        if self.place == Place::Before {
            self.begin(&mut split);
        }
        if let Place::Inside(_) = self.place {
            self.think(&mut split);
        }
        if self.place == Place::Closed {
            let rest = self.marks.rest();
            self.marks.push(rest.trim_start());
            self.place = if rest.trim().is_empty() { Place::Closed } else { Place::After };
        }
        if self.place == Place::After {
            split.rest.push_str(&self.marks.rest());
        }
        split
    }

    /// What was held back, after the last text.
    pub(super) fn finish(&mut self) -> Split {
        let rest = self.marks.rest();
        match self.place {
            Place::Inside(_) => Split { thought: self.thought(&rest), ..Split::default() },
            _ => Split { rest, ..Split::default() },
        }
    }

    /// Whether the output begins with a thought, if that is clear by now.
    fn begin(&mut self, split: &mut Split) {
        let held = self.marks.rest();
        let said = held.trim_start();
        if let Some(thought) = said.strip_prefix(self.thoughts.open) {
            self.place = Place::Inside(false);
            self.marks.push(thought);
        } else if self.thoughts.open.starts_with(said) {
            self.marks.push(&held);
        } else {
            self.place = Place::After;
            split.rest.push_str(&held);
        }
    }

    fn think(&mut self, split: &mut Split) {
        let (text, closed) = match self.marks.next(&[self.thoughts.close]) {
            Found::Mark(text, _) => (text, true),
            Found::Text(text) => (text, false),
        };
        split.thought.push_str(&self.thought(&text));
        if closed {
            self.place = Place::Closed;
            self.blank.clear();
        }
    }

    /// Text of a thought without white space at its ends, in whatever pieces it comes.
    fn thought(&mut self, text: &str) -> String {
        let begun = self.place == Place::Inside(true);
        let text = if begun { text } else { text.trim_start() };
        let said = text.trim_end();
        let blank = &text[said.len()..];
        if said.is_empty() {
            self.blank.push_str(blank);
            return String::new();
        }
        self.place = Place::Inside(true);
        std::mem::replace(&mut self.blank, blank.to_owned()) + said
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check_with;
    use super::super::{Format, Parsed};
    use super::*;

    fn think() -> Thoughts {
        Thoughts::of("… </think> …", &[]).unwrap()
    }

    fn thought(thought: &str, text: &str) -> Parsed {
        Parsed { text: text.into(), thought: thought.into(), calls: Vec::new() }
    }

    #[test]
    fn a_thought_comes_first_and_loses_the_white_space_around_it() {
        let text = "\n<think>\nTwo and\n two.\n</think>\n\nFour. </think> is a mark.\n";
        let expected = thought("Two and\n two.", "Four. </think> is a mark.\n");
        check_with(Format::Plain, Some(think()), text, &expected);
    }

    #[test]
    fn a_prompt_may_have_opened_it() {
        let begun = think().after("<|im_start|>assistant\n<think>\n");
        let expected = thought("Hm.", "Yes.");
        check_with(Format::Plain, Some(begun), "Hm.\n</think>\n\nYes.", &expected);
        check_with(Format::Plain, Some(begun), " cut off ", &thought("cut off", ""));
    }

    #[test]
    fn an_answer_without_one_is_text_to_the_letter() {
        for text in ["Plain.", " \n <thin", "A <think> later.", "<thinking>"] {
            check_with(Format::Plain, Some(think()), text, &thought("", text));
        }
        check_with(Format::Plain, Some(think()), "<think>\n\n</think>\n\nNo.", &thought("", "No."));
    }

    #[test]
    fn calls_follow_a_thought() {
        let text = "<think>Ask.</think>\n<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
        let calls = vec![super::super::tests::call("f", "{}")];
        let expected = Parsed { calls, ..thought("Ask.", "") };
        check_with(Format::Hermes, Some(think()), text, &expected);
    }

    #[test]
    fn marks_are_found_in_templates() {
        let control = ["[/THINK]".to_owned()];
        let found = Thoughts::of("… [/THINK]", &control).unwrap();
        assert_eq!((found.open, found.control), ("[THINK]", true));
        assert!(!think().control);
        assert_eq!(Thoughts::of("<think>", &control), None);
    }
}
