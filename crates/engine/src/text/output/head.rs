//! The beginning of a call as JSON, up to the brace of its arguments, when not all of it may be there:
//! `{"name": "…", "arguments": {`. Other forms are read when they are whole.

use super::blocks::Block;
use super::draft::Draft;
use super::parsed::is_name;

/// Bytes up to the arguments; what takes more is read when it is whole.
const HEAD_BYTES_MAX: usize = 1 << 10;

/// Drafts calls as JSON objects, one after the other or in a list, `between` them.
pub(super) fn draft_calls(block: &Block<'_>, between: &[&str], draft: &mut Draft) {
    while draft.goes_on() {
        if draft.is_copying() {
            draft.copy(block.text);
            if draft.is_copying() {
                return;
            }
        }
        match head(&block.text[draft.at..], between, draft.is_empty()) {
            Head::Later => return,
            Head::Call(name, bytes) if block.types.may_call(&name) => {
                draft.begin(name, draft.at + bytes);
            }
            Head::Call(..) | Head::Other => draft.stop(),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Head {
    /// A call of this function; its arguments begin after so many bytes.
    Call(String, usize),
    /// Not clear before more is there.
    Later,
    Other,
}

/// Why reading ends.
enum Stop {
    Later,
    Other,
}

fn head(text: &str, between: &[&str], first: bool) -> Head {
    let within = text.floor_char_boundary(HEAD_BYTES_MAX);
    let mut cursor = Cursor { rest: &text[..within] };
    match cursor.call(between, first) {
        Ok(name) => Head::Call(name, within - cursor.rest.len()),
        Err(Stop::Later) if text.len() <= HEAD_BYTES_MAX => Head::Later,
        Err(Stop::Later | Stop::Other) => Head::Other,
    }
}

struct Cursor<'a> {
    rest: &'a str,
}

impl Cursor<'_> {
    /// The name, before the brace of the arguments.
    fn call(&mut self, between: &[&str], first: bool) -> Result<String, Stop> {
        self.skip(between, first)?;
        self.takes('{')?;
        let mut name = None;
        loop {
            let key = self.string()?;
            self.takes(':')?;
            match (key.as_str(), name.take()) {
                ("arguments" | "parameters", Some(name)) => {
                    self.blank();
                    return self.rest.starts_with('{').then_some(name).ok_or_else(|| self.stop());
                }
                ("name", None) => name = Some(self.string()?).filter(|name| is_name(name)),
                ("name" | "arguments" | "parameters" | "function", _) => return Err(Stop::Other),
                // An identifier or a type.
                (_, before) => {
                    self.string()?;
                    name = before;
                }
            }
            self.takes(',')?;
        }
    }

    /// Past what may stand before a call.
    fn skip(&mut self, between: &[&str], first: bool) -> Result<(), Stop> {
        let separators = if first { "[" } else { "[]},;" };
        loop {
            let past = |c: char| c.is_whitespace() || separators.contains(c);
            self.rest = self.rest.trim_start_matches(past);
            match between.iter().find_map(|mark| self.rest.strip_prefix(mark)) {
                Some(rest) => self.rest = rest,
                None if between.iter().any(|mark| mark.starts_with(self.rest)) => {
                    return Err(Stop::Later);
                }
                None => return Ok(()),
            }
        }
    }

    fn string(&mut self) -> Result<String, Stop> {
        self.blank();
        if !self.rest.starts_with('"') {
            return Err(self.stop());
        }
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find(|&(_, c)| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let (written, rest) = self.rest.split_at(end.ok_or(Stop::Later)?.0 + 1);
        self.rest = rest;
        serde_json::from_str(written).map_err(|_| Stop::Other)
    }

    fn takes(&mut self, mark: char) -> Result<(), Stop> {
        self.blank();
        self.rest = self.rest.strip_prefix(mark).ok_or_else(|| self.stop())?;
        Ok(())
    }

    fn blank(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Nothing more, or something else.
    fn stop(&self) -> Stop {
        if self.rest.is_empty() { Stop::Later } else { Stop::Other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_certain_once_its_arguments_begin() {
        let text = r#" <c> [{"id": "\"7", "name": "f", "arguments": {"#;
        let found = |text: &str| head(text, &["<c>"], true);
        for (at, _) in text.char_indices() {
            assert_eq!(found(&text[..at]), Head::Later, "{}", &text[..at]);
        }
        assert_eq!(found(text), Head::Call("f".into(), text.len() - 1));
    }

    #[test]
    fn other_forms_wait() {
        for text in [
            r#"{"arguments": {"#,
            r#"{"name": "f", "arguments": "{"#,
            r#"{"function": {"#,
            r#"{"name": "f g", "arguments": {"#,
            "{'name'",
            "marks",
        ] {
            assert_eq!(head(text, &[], true), Head::Other, "{text}");
        }
        assert_eq!(head(r#"}, {"name""#, &[], false), Head::Later);
    }
}
