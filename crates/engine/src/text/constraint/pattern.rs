//! Regular expressions as JSON Schema has them (ECMA-262), written for the engine that enforces
//! them, which reads them as Rust does. Where the two languages differ the narrower reading is
//! written; what only one of them knows is refused. Does not match anything itself.

use std::iter::Peekable;
use std::str::Chars;

/// Why a pattern cannot be enforced.
pub(super) type Unsupported = &'static str;

/// `.`: anything but the ends of lines of ECMA-262.
const DOT: &str = r"[^\n\r\x{2028}\x{2029}\x00]";
/// White space in both languages, as far as a string may hold it.
const SPACE: &str = r" \t\n\r\x0C";
/// White space in either language.
const ANY_SPACE: &str = r"\s\x{85}\x{FEFF}";

/// The pattern with the same meaning, or a narrower one, in Rust's syntax.
pub(super) fn translated(pattern: &str) -> Result<String, Unsupported> {
    let mut chars = pattern.chars().peekable();
    let mut written = String::with_capacity(pattern.len() + 16);
    if !pattern.chars().all(is_writable) {
        return Err("a control character");
    }
    while let Some(c) = chars.next() {
        match c {
            '\\' => escape(&mut chars, &mut written, Place::Outside)?,
            '[' => class(&mut chars, &mut written)?,
            '(' => group(&mut chars, &mut written)?,
            '.' => written.push_str(DOT),
            '{' if !matches!(chars.peek(), Some('0'..='9')) => {
                return Err("`{` that is no repetition (write `\\{`)");
            }
            '}' if !repeats(&written) => return Err("`}` that is no repetition (write `\\}`)"),
            ']' => return Err("`]` outside of a class (write `\\]`)"),
            _ => written.push(c),
        }
    }
    Ok(written)
}

/// Whether a string of an answer may hold `c`: control characters have no escape but these.
pub(super) fn is_writable(c: char) -> bool {
    c >= ' ' || "\u{8}\t\n\u{C}\r".contains(c)
}

/// Where an escape stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    Class,
    NegatedClass,
}

/// Whether a repetition has been opened: `{` is written plain for nothing else.
fn repeats(written: &str) -> bool {
    let tail = written.rsplit('{').next().unwrap_or_default();
    tail.len() < written.len() && tail.chars().all(|c| c.is_ascii_digit() || c == ',')
}

fn group(chars: &mut Peekable<Chars<'_>>, written: &mut String) -> Result<(), Unsupported> {
    written.push('(');
    if chars.peek() != Some(&'?') {
        return Ok(());
    }
    chars.next();
    match chars.next() {
        Some(':') => written.push_str("?:"),
        Some('<') if chars.peek().is_some_and(|c| c.is_ascii_alphabetic()) => {
            // A name changes nothing about what is matched.
            written.push_str("?:");
            let named = chars.by_ref().any(|c| c == '>');
            return if named { Ok(()) } else { Err("a group whose name does not end") };
        }
        _ => return Err("looking ahead or behind, or flags in a group"),
    }
    Ok(())
}

fn class(chars: &mut Peekable<Chars<'_>>, written: &mut String) -> Result<(), Unsupported> {
    written.push('[');
    let mut place = Place::Class;
    if chars.peek() == Some(&'^') {
        chars.next();
        // A class of every control character would be taken for one that has quotes, too.
        written.push_str(r"^\x00");
        place = Place::NegatedClass;
    }
    if chars.peek() == Some(&']') {
        return Err("an empty class");
    }
    let opened = written.len();
    while let Some(c) = chars.next() {
        match c {
            ']' => {
                written.push(']');
                return Ok(());
            }
            '\\' => escape(chars, written, place)?,
            '-' => dash(chars, written, written.len() == opened)?,
            // Rust reads these as classes within classes and as operators.
            '[' | '&' | '~' => {
                written.push('\\');
                written.push(c);
            }
            _ => written.push(c),
        }
    }
    Err("a class that does not end")
}

/// A range's dash, or one that stands for itself at either end of a class.
fn dash(
    chars: &mut Peekable<Chars<'_>>,
    written: &mut String,
    begins: bool,
) -> Result<(), Unsupported> {
    if begins || chars.peek() == Some(&']') {
        written.push_str("\\-");
        return Ok(());
    }
    // A range begins and ends with a character, not with a class.
    if written.ends_with(']') || chars.peek() == Some(&'-') {
        return Err("a `-` in a class that is no range (write `\\-`)");
    }
    written.push('-');
    Ok(())
}

fn escape(
    chars: &mut Peekable<Chars<'_>>,
    written: &mut String,
    place: Place,
) -> Result<(), Unsupported> {
    let Some(c) = chars.next() else { return Err("a backslash at the end") };
    let negated = place == Place::NegatedClass;
    match c {
        'd' => written.push_str("[0-9]"),
        'D' => written.push_str(r"[^0-9\x00]"),
        'w' => written.push_str("[0-9A-Za-z_]"),
        'W' => written.push_str(r"[^0-9A-Za-z_\x00]"),
        // What is taken away is taken away in both readings.
        's' => bracketed(written, "", if negated { ANY_SPACE } else { SPACE }),
        'S' => bracketed(written, r"^\x00", if negated { SPACE } else { ANY_SPACE }),
        't' | 'n' | 'r' => written.extend(['\\', c]),
        'f' => written.push_str("\\x0C"),
        'x' => code(chars, written, 2, negated)?,
        'u' => code(chars, written, 4, negated)?,
        '/' | '"' | '\'' | ',' | ':' | ';' | '<' | '>' | '=' | '!' | '@' | '%' | '`' | '_' => {
            written.push(c);
        }
        _ if c.is_ascii_punctuation() => written.extend(['\\', c]),
        _ => return Err("such an escape (`\\b`, `\\1`, `\\p`, …)"),
    }
    Ok(())
}

fn bracketed(written: &mut String, sign: &str, class: &str) {
    written.extend(["[", sign, class, "]"]);
}

/// `\xHH` and `\uHHHH`; half of a pair of surrogates is no character, and a control character
/// can only be kept out.
fn code(
    chars: &mut Peekable<Chars<'_>>,
    written: &mut String,
    digits: usize,
    negated: bool,
) -> Result<(), Unsupported> {
    let hex: String = chars.by_ref().take(digits).collect();
    let value = match hex.len() == digits && hex.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        true => u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32),
        false => None,
    };
    let value = value.ok_or("an escaped code that is no character")?;
    if !negated && !is_writable(value) {
        return Err("a control character");
    }
    written.push_str(&format!("\\x{{{:X}}}", u32::from(value)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_the_languages_is_written_out() {
        for (pattern, expected) in [
            (r"^\d{4}-\d{2}$", "^[0-9]{4}-[0-9]{2}$"),
            (r"^\w+$", "^[0-9A-Za-z_]+$"),
            (r"^foo$|^bar$", "^foo$|^bar$"),
            (r"a\/b", "a/b"),
            (r"[[a]", r"[\[a]"),
            (r"[a&&b]", r"[a\&\&b]"),
            (r"[-a]", r"[\-a]"),
            (r"[^-a]", r"[^\x00\-a]"),
            (r"\\[-a]", r"\\[\-a]"),
            (r"[a[-c]", r"[a\[-c]"),
            (r"[a-]", r"[a\-]"),
            (r"[^\d]", r"[^\x00[0-9]]"),
            (r#"[^"\x01-\x1f]"#, r#"[^\x00"\x{1}-\x{1F}]"#),
            (r"\u00e9\x41", r"\x{E9}\x{41}"),
            (r"(?<year>\d)(?:a|b)", "(?:[0-9])(?:a|b)"),
            (r"a{2,}?", "a{2,}?"),
        ] {
            assert_eq!(translated(pattern).as_deref(), Ok(expected), "{pattern}");
        }
    }

    #[test]
    fn space_is_read_narrowly_on_either_side() {
        assert_eq!(translated(r"\s").unwrap(), format!("[{SPACE}]"));
        assert_eq!(translated(r"[^\s]").unwrap(), format!(r"[^\x00[{ANY_SPACE}]]"));
        assert_eq!(translated(r"\S").unwrap(), format!(r"[^\x00{ANY_SPACE}]"));
        assert_eq!(translated(r"[^\S]").unwrap(), format!(r"[^\x00[^\x00{SPACE}]]"));
        assert_eq!(translated(".").unwrap(), DOT);
    }

    #[test]
    fn what_only_one_language_knows_is_refused() {
        for pattern in [
            r"\bword",
            r"(?=a)",
            r"(?!a)",
            r"(?<=a)b",
            r"(?i)a",
            r"(a)\1",
            r"\p{L}",
            r"\cA",
            r"\0",
            r"a{,3}",
            r"a{",
            r"a}",
            r"]",
            r"[]",
            r"[^]",
            r"[a",
            r"\",
            r"\A",
            r"\ud83d",
            r"\xZ1",
            r"[\d-z]",
            r"[a--b]",
            r"(?<name",
            r"(?P<n>a)",
            r"\x01",
            r"[\x01-\x1f]",
            r"\v",
            "a\u{1}",
        ] {
            assert!(translated(pattern).is_err(), "{pattern}");
        }
    }
}
