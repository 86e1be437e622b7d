//! Grammars as llama.cpp's server takes them (GBNF), written in the language of the library that
//! enforces them (Lark). Knows the words of both and the meaning of neither: what is nested wrong, the
//! library says.
//!
//! ```text
//! root ::= "a" digit{2} | [^\n]   →   start: r0
//! digit ::= [0-9]                     r0: "a" r1{2} | /[^\x{a}]/
//!                                     r1: /[\x{30}-\x{39}]/
//! ```

use std::iter::Peekable;
use std::str::Chars;

/// Most that a part may be repeated.
pub(super) const REPEATS_MAX: u32 = 1000;

/// Whether a grammar is of this kind: it has a rule.
pub(super) fn is_gbnf(text: &str) -> bool {
    let rule = |line: &str| {
        let name = line.split_once("::=").map(|(name, _)| name.trim());
        name.is_some_and(|name| !name.is_empty() && name.chars().all(in_name))
    };
    text.lines().any(rule)
}

/// The grammar in Lark, or what is wrong with it.
pub(super) fn lark(text: &str) -> Result<String, String> {
    let words = words(text)?;
    let mut names: Vec<&str> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        if let Some(name) = defined(&words, at, word) {
            if names.contains(&name) {
                return Err(format!("rule `{name}` is defined twice"));
            }
            names.push(name);
        }
    }
    let number = |name: &str| names.iter().position(|known| *known == name);
    let root = number("root").ok_or("there is no rule `root`")?;
    let mut lark = format!("start: r{root}");
    for (at, word) in words.iter().enumerate() {
        match word {
            Word::Name(name) => {
                let number = number(name).ok_or_else(|| format!("there is no rule `{name}`"))?;
                let line = if defined(&words, at, word).is_some() { "\n" } else { " " };
                lark.push_str(&format!("{line}r{number}"));
            }
            Word::Define => lark.push(':'),
            Word::Other(written) => {
                lark.push(' ');
                lark.push_str(written);
            }
            // It belongs to the word before.
            Word::Repeat(written) => lark.push_str(written),
        }
    }
    Ok(lark + "\n")
}

/// The rule whose name this is, where its definition begins.
fn defined<'a>(words: &[Word], at: usize, word: &'a Word) -> Option<&'a str> {
    match (word, words.get(at + 1)) {
        (Word::Name(name), Some(Word::Define)) => Some(name),
        _ => None,
    }
}

/// A word of a grammar.
#[derive(Debug, PartialEq, Eq)]
enum Word {
    Name(String),
    Define,
    /// `*` and the like, in Lark.
    Repeat(String),
    /// Anything else, in Lark.
    Other(String),
}

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut chars = text.chars().peekable();
    let mut words = Vec::new();
    while let Some(c) = chars.next() {
        match c {
            c if c.is_whitespace() => {}
            '#' => drop(chars.by_ref().find(|&c| c == '\n')),
            '"' => words.push(Word::Other(quoted(&literal(&mut chars)?))),
            '[' => words.push(Word::Other(class(&mut chars)?)),
            '.' => words.push(Word::Other("/./s".to_owned())),
            '(' | ')' | '|' => words.push(Word::Other(c.to_string())),
            '*' | '+' | '?' => words.push(Word::Repeat(c.to_string())),
            '{' => words.push(Word::Repeat(repetition(&mut chars)?)),
            ':' => words.push(define(&mut chars)?),
            '<' => return Err("tokens (`<…>`) are not taken".to_owned()),
            c if in_name(c) => {
                let mut name = c.to_string();
                while let Some(c) = chars.next_if(|&c| in_name(c)) {
                    name.push(c);
                }
                words.push(Word::Name(name));
            }
            other => return Err(format!("`{other}` means nothing here")),
        }
    }
    Ok(words)
}

fn in_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

fn define(chars: &mut Peekable<Chars<'_>>) -> Result<Word, String> {
    match (chars.next(), chars.next()) {
        (Some(':'), Some('=')) => Ok(Word::Define),
        _ => Err("`:` means nothing without `:=`".to_owned()),
    }
}

/// Up to the closing quote.
fn literal(chars: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let mut text = String::new();
    loop {
        match chars.next().ok_or("a text has no end")? {
            '"' => return Ok(text),
            '\\' => text.push(escaped(chars)?),
            c => text.push(c),
        }
    }
}

/// A text as Lark writes it: as JSON does, without control characters.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Up to the closing bracket.
fn class(chars: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let mut written = "/[".to_owned();
    if chars.next_if_eq(&'^').is_some() {
        written.push('^');
    }
    let before = written.len();
    loop {
        match chars.next().ok_or("a class has no end")? {
            ']' if written.len() == before => return Err("a class is empty".to_owned()),
            ']' => return Ok(written + "]/"),
            '\\' => push_code(escaped(chars)?, &mut written),
            '-' if written.len() > before && chars.peek() != Some(&']') => written.push('-'),
            c => push_code(c, &mut written),
        }
    }
}

fn push_code(c: char, written: &mut String) {
    written.push_str(&format!("\\x{{{:x}}}", u32::from(c)));
}

/// What follows a backslash.
fn escaped(chars: &mut Peekable<Chars<'_>>) -> Result<char, String> {
    let digits = match chars.next() {
        Some('n') => return Ok('\n'),
        Some('r') => return Ok('\r'),
        Some('t') => return Ok('\t'),
        Some(c @ ('\\' | '"' | '[' | ']' | '-' | '^' | '/')) => return Ok(c),
        Some('x') => 2,
        Some('u') => 4,
        Some('U') => 8,
        _ => return Err("an escape is unknown".to_owned()),
    };
    let code: String = chars.by_ref().take(digits).collect();
    let code = u32::from_str_radix(&code, 16).ok().filter(|_| code.len() == digits);
    code.and_then(char::from_u32).ok_or_else(|| "an escape is no character".to_owned())
}

/// `{2}`, `{2,}` or `{2,3}`, up to the closing brace.
fn repetition(chars: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let written: String = chars.by_ref().take_while(|&c| c != '}').collect();
    let count = |text: &str| text.trim().parse::<u32>().ok().filter(|&count| count <= REPEATS_MAX);
    let (least, most) = written.split_once(',').unwrap_or((&written, &written));
    let limit = || format!("a repetition is `{{m,n}}`, of at most {REPEATS_MAX}");
    let least = if least.trim().is_empty() { Some(0) } else { count(least) };
    let least = least.ok_or_else(limit)?;
    match most.trim() {
        "" => Ok(format!("{{{least},}}")),
        most => Ok(format!("{{{least},{}}}", count(most).ok_or_else(limit)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grammar_is_written_in_lark() {
        let gbnf =
            "root ::= \"a\\\"\" my-Digit{2} (\n  | .)? # rest\n\nmy-Digit ::= [0-9_] | [^\\n-]+";
        let expected = "start: r0\nr0: \"a\\\"\" r1{2,2} ( | /./s)?\n\
            r1: /[\\x{30}-\\x{39}\\x{5f}]/ | /[^\\x{a}\\x{2d}]/+\n";
        assert!(is_gbnf(gbnf));
        let written = lark(gbnf).unwrap();
        assert_eq!(written.replace(" )", ")"), expected);
        assert!(!is_gbnf("start: \"::=\""));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (gbnf, words) in [
            ("rood ::= \"a\"", "no rule `root`"),
            ("root ::= b", "no rule `b`"),
            ("root ::= \"a\"\nroot ::= \"b\"", "twice"),
            ("root ::= \"a", "no end"),
            ("root ::= [a", "no end"),
            ("root ::= \"a\"{5000}", "at most"),
            ("root ::= <think>", "tokens"),
            ("root ::= \"\\q\"", "escape"),
        ] {
            assert!(lark(gbnf).unwrap_err().contains(words), "{gbnf}");
        }
    }
}
