//! Values as Python writes them: strings in either quotes, numbers, `True`, lists, tuples and
//! dictionaries. Evaluates nothing.

use serde_json::{Map, Value};

/// Lists and dictionaries inside one another.
const DEPTH_MAX: usize = 64;

/// What is left to read.
pub(super) struct Literals<'a> {
    pub(super) rest: &'a str,
    /// Whether the text ended inside a string.
    pub(super) in_string: bool,
}

impl Literals<'_> {
    /// The next value; `None` where there is none, or it may go on.
    pub(super) fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.rest = self.rest.trim_start();
        match self.rest.chars().next()? {
            '"' | '\'' => self.string().map(Value::String),
            '[' => self.list('[', ']', depth),
            '(' => self.list('(', ')', depth),
            '{' => self.dictionary(depth),
            _ => self.word(),
        }
    }

    /// Past `mark`, if that comes next.
    pub(super) fn takes(&mut self, mark: char) -> bool {
        let rest = self.rest.trim_start().strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Past a comma, unless `closing` comes next; `false` where neither does.
    pub(super) fn separates(&mut self, closing: char) -> bool {
        self.takes(',') || self.rest.trim_start().starts_with(closing)
    }

    fn list(&mut self, open: char, close: char, depth: usize) -> Option<Value> {
        let mut values = Vec::new();
        self.takes(open);
        while !self.takes(close) {
            values.push(self.value(depth + 1)?);
            self.separates(close).then_some(())?;
        }
        Some(values.into())
    }

    fn dictionary(&mut self, depth: usize) -> Option<Value> {
        let mut values = Map::new();
        self.takes('{');
        while !self.takes('}') {
            let key = match self.value(depth + 1)? {
                Value::String(key) => key,
                other => other.to_string(),
            };
            self.takes(':').then_some(())?;
            values.insert(key, self.value(depth + 1)?);
            self.separates('}').then_some(())?;
        }
        Some(values.into())
    }

    /// A number or a constant, up to what may follow it.
    fn word(&mut self) -> Option<Value> {
        let ends = |c: char| c.is_whitespace() || ",:)]}".contains(c);
        let (word, rest) = self.rest.split_at(self.rest.find(ends)?);
        self.rest = rest;
        match word {
            "True" => Some(true.into()),
            "False" => Some(false.into()),
            "None" => Some(Value::Null),
            word => serde_json::from_str(word).ok(),
        }
    }

    fn string(&mut self) -> Option<String> {
        let quote = &self.rest[..1];
        let triple = quote.repeat(3);
        let quote = if self.rest.starts_with(&triple) { triple.as_str() } else { quote };
        let mut text = &self.rest[quote.len()..];
        let mut value = String::new();
        loop {
            if let Some(rest) = text.strip_prefix(quote) {
                self.rest = rest;
                return Some(value);
            }
            let Some(c) = text.chars().next() else {
                self.in_string = true;
                return None;
            };
            text = &text[c.len_utf8()..];
            match c {
                '\\' => text = escaped(text, &mut value),
                c => value.push(c),
            }
        }
    }
}

/// What a backslash before `text` means; returns what follows. One that means nothing is itself.
fn escaped<'a>(text: &'a str, value: &mut String) -> &'a str {
    let Some(c) = text.chars().next() else { return text };
    let rest = &text[c.len_utf8()..];
    let digits = match c {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => 0,
    };
    let code = rest.get(..digits).filter(|_| digits > 0);
    let code = code.and_then(|code| char::from_u32(u32::from_str_radix(code, 16).ok()?));
    if let Some(code) = code {
        value.push(code);
        return &rest[digits..];
    }
    match c {
        'n' => value.push('\n'),
        'r' => value.push('\r'),
        't' => value.push('\t'),
        '\n' => {}
        '\\' | '\'' | '"' => value.push(c),
        _ => value.extend(['\\', c]),
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(text: &str) -> Option<Value> {
        Literals { rest: text, in_string: false }.value(0)
    }

    #[test]
    fn literals_are_values() {
        for (text, expected) in [
            (r#"'it\'s "so"\n\x41\u00e9\d'"#, json!("it's \"so\"\nAé\\d")),
            (
                r#""""a "b"
c""""#,
                json!("a \"b\"\nc"),
            ),
            ("-12,", json!(-12)),
            ("(1, True, [None],)", json!([1, true, [null]])),
            ("{'a': {1: ''}}", json!({ "a": { "1": "" } })),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_may_go_on_or_is_a_name_is_none() {
        for text in ["12", "'a", "[1", "name,", "f(1),", ""] {
            assert_eq!(value(text), None, "{text}");
        }
    }
}
