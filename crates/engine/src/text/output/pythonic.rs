//! Llama 4 and Llama 3.2: the whole answer is a list of calls as Python writes them,
//! `[name(key="value", other=3), second()]`, or such a list stands between `<|python_start|>` and
//! `<|python_end|>`.

use super::bare::Form;
use super::blocks::{Block, Frame, Read};
use super::draft::{Draft, Drafted};
use super::literal::Literals;
use super::parsed::{Call, is_name, object, unclosed_object};
use super::types::ArgumentTypes;
use serde_json::Value;

const START: &str = "<|python_start|>";
const END: &str = "<|python_end|>";

pub(super) static FORM: Form = Form {
    first: '[',
    read: |text, types| {
        let mut reader = Reader::new(text, types);
        reader.list().filter(|()| reader.text.rest.trim().is_empty())?;
        reader.calls()
    },
    draft,
    frame: Frame { open: &[START], close: &[END], after: &[END], read, draft },
};

fn read(block: &Block<'_>) -> Read {
    let body = block.text.strip_suffix(END).unwrap_or(block.text);
    let mut reader = Reader::new(body, block.types);
    match reader.list() {
        Some(()) if reader.text.rest.trim().is_empty() => Read::whole(reader.calls(), block),
        None if reader.text.in_string && !block.last => Read::More,
        _ => Read::Text,
    }
}

/// Values that have ended, each when a comma or bracket follows it.
fn draft(block: &Block<'_>, draft: &mut Draft) {
    let mut reader = Reader::new(block.text, block.types);
    reader.list();
    // Nothing says that this is a call before something is passed.
    let certain = reader.calls.len() - usize::from(!reader.passes);
    let at = block.text.len() - reader.certain_bytes;
    let drafted =
        |(name, values): (String, Values)| Drafted { name, arguments: unclosed_object(&values) };
    draft.set(reader.calls.into_iter().take(certain).map(drafted).collect(), at);
}

/// Arguments in the order they were written.
type Values = Vec<(String, Value)>;

/// What is left to read, and the calls so far.
struct Reader<'a> {
    text: Literals<'a>,
    types: &'a ArgumentTypes,
    calls: Vec<(String, Values)>,
    /// Whether something is passed to the last call; so too before there is any call.
    passes: bool,
    /// Bytes that were left after the last value.
    certain_bytes: usize,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, types: &'a ArgumentTypes) -> Self {
        let mut rest = text;
        while let Some(past) = rest.trim_start().strip_prefix(START) {
            rest = past;
        }
        let text = Literals { rest, in_string: false };
        Self { certain_bytes: rest.len(), text, types, calls: Vec::new(), passes: true }
    }

    /// A list of calls; `None` where it is none, or not whole.
    fn list(&mut self) -> Option<()> {
        self.text.takes('[').then_some(())?;
        while !self.text.takes(']') {
            self.call()?;
            self.text.separates(']').then_some(())?;
        }
        Some(())
    }

    fn call(&mut self) -> Option<()> {
        let (name, rest) = self.text.rest.split_once('(')?;
        let name = name.trim();
        (is_name(name) && self.types.may_call(name)).then_some(())?;
        self.text.rest = rest;
        self.calls.push((name.to_owned(), Values::new()));
        self.passes = false;
        while !self.text.takes(')') {
            self.argument(name, rest.len())?;
        }
        Some(())
    }

    /// `key=value`, and what separates it from the next; the first is at `first_bytes` before the end.
    fn argument(&mut self, function: &str, first_bytes: usize) -> Option<()> {
        let (key, rest) = self.text.rest.split_once('=')?;
        let key = key.trim();
        is_name(key).then_some(())?;
        if !std::mem::replace(&mut self.passes, true) {
            self.certain_bytes = first_bytes;
        }
        self.text.rest = rest.trim_start();
        let written = self.text.rest;
        let value = self.text.value(0)?;
        let written = &written[..written.len() - self.text.rest.len()];
        self.text.separates(')').then_some(())?;
        let value = self.types.fitted(function, key, value, written);
        self.calls.last_mut()?.1.push((key.to_owned(), value));
        self.certain_bytes = self.text.rest.len();
        Some(())
    }

    fn calls(self) -> Option<Vec<Call>> {
        let call = |(name, values): (String, Values)| Call { name, arguments: object(&values) };
        let calls: Vec<Call> = self.calls.into_iter().map(call).collect();
        (!calls.is_empty()).then_some(calls)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format::Pythonic;
    use super::super::Parsed;
    use super::super::tests::{call, check};

    #[test]
    fn calls_in_a_list() {
        let text = r#" [f(a=1, b='x"y', c=[True, None]), g(), h(d={"k": -2.5})] "#;
        let calls = vec![
            call("f", r#"{"a":1,"b":"x\"y","c":[true,null]}"#),
            call("g", "{}"),
            call("h", r#"{"d":{"k":-2.5}}"#),
        ];
        check(Pythonic, text, &Parsed { calls, ..Parsed::default() });
    }

    #[test]
    fn a_list_behind_a_mark() {
        let text = "I look. <|python_start|>[f(a='<|python_end|>')]<|python_end|>";
        let calls = vec![call("f", r#"{"a":"<|python_end|>"}"#)];
        check(Pythonic, text, &Parsed { text: "I look. ".into(), calls, ..Parsed::default() });
    }

    #[test]
    fn other_lists_are_text() {
        for text in
            ["[1, 2]", "[a link](http://x)", "[f(x)]", "[f(a=b)]", "[f(a=1)] and", "[]", "f(a=1)"]
        {
            check(Pythonic, text, &Parsed { text: text.into(), ..Parsed::default() });
        }
    }
}
