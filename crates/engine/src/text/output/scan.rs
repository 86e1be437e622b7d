//! A JSON object, copied as it comes. What has one meaning is mended on the way, as `json` mends
//! texts that are whole; what is no JSON at all ends the copy.

/// Where in the object it is.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Brackets that are to come, the next one last.
    open: Vec<char>,
    string: bool,
    escaped: bool,
    /// A comma and the white space after it: nothing when a bracket closes next.
    comma: String,
}

/// What a character was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scanned {
    Inside,
    /// The last brace, which is not copied.
    End,
    /// Nothing that JSON has there.
    Foreign,
}

impl Scan {
    /// Adds one character, the first of which is the object's brace; writes what is certain to `out`.
    pub(super) fn push(&mut self, c: char, out: &mut String) -> Scanned {
        if self.string {
            self.in_string(c, out);
            return Scanned::Inside;
        }
        match c {
            ' ' | '\n' | '\r' | '\t' if !self.comma.is_empty() => self.comma.push(c),
            ' ' | '\n' | '\r' | '\t' => out.push(c),
            ',' if self.comma.is_empty() => self.comma.push(c),
            '}' | ']' => return self.close(c, out),
            '"' | '{' | '[' | ':' | '+' | '-' | '.' | '0'..='9' | 'a'..='z' | 'A'..='Z' => {
                self.copy(c, out);
            }
            _ => return Scanned::Foreign,
        }
        Scanned::Inside
    }

    /// Brackets that are to come.
    pub(super) fn closing(&self) -> String {
        self.open.iter().rev().collect()
    }

    fn copy(&mut self, c: char, out: &mut String) {
        match c {
            '"' => self.string = true,
            '{' => self.open.push('}'),
            '[' => self.open.push(']'),
            _ => {}
        }
        out.push_str(&std::mem::take(&mut self.comma));
        out.push(c);
    }

    fn close(&mut self, c: char, out: &mut String) -> Scanned {
        if self.open.last() != Some(&c) {
            return Scanned::Foreign;
        }
        self.comma.clear();
        if self.open.len() == 1 {
            return Scanned::End;
        }
        self.open.pop();
        out.push(c);
        Scanned::Inside
    }

    fn in_string(&mut self, c: char, out: &mut String) {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
        self.string = c != '"' || self.escaped;
        self.escaped = c == '\\' && !self.escaped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(text: &str) -> (String, Scanned, String) {
        let (mut scan, mut out) = (Scan::default(), String::new());
        for c in text.chars() {
            let scanned = scan.push(c, &mut out);
            if scanned != Scanned::Inside {
                return (out, scanned, scan.closing());
            }
        }
        (out, Scanned::Inside, scan.closing())
    }

    #[test]
    fn the_last_brace_is_held_back() {
        let (out, scanned, closing) = copied(r#"{"a": ["}", {}], "b": 1} rest"#);
        assert_eq!((out.as_str(), scanned), (r#"{"a": ["}", {}], "b": 1"#, Scanned::End));
        assert_eq!(closing, "}");
    }

    #[test]
    fn what_has_one_meaning_is_mended() {
        assert_eq!(copied("{\"a\": [1, ], \n}").0, "{\"a\": [1]");
        assert_eq!(copied("{\"a\": \"x\n\\\"y").0, "{\"a\": \"x\\n\\\"y");
        assert_eq!(copied("{\"a\": [{\"b\": 1").2, "}]}");
    }

    #[test]
    fn a_mark_between_values_is_foreign() {
        assert_eq!(copied("{\"a\": 1</tool_call>").1, Scanned::Foreign);
        assert_eq!(copied("{\"a\": 1]").1, Scanned::Foreign);
        assert_eq!(copied("{\"a\": 1,,").1, Scanned::Foreign);
    }
}
