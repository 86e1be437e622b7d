//! Texts that are no JSON: grammars, regular expressions, choices. Written as the one language that is
//! compiled (Lark); compiles nothing itself.

use super::error::ConstraintError;
use super::gbnf::{self, REPEATS_MAX};
use llguidance::regex_to_lark;

/// Bytes of a grammar, and of all choices together.
const GRAMMAR_BYTES_MAX: usize = 64 << 10;
/// Bytes of a regular expression.
const REGEX_BYTES_MAX: usize = 8 << 10;
const CHOICES_MAX: usize = 1000;

/// What a text must be, as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm<'a> {
    /// A grammar: GBNF as llama.cpp has it, or Lark.
    Grammar(&'a str),
    /// A regular expression, in Rust's syntax without looking around; `^` and `$` around it mean nothing.
    Regex(&'a str),
    /// One of these.
    Choice(&'a [String]),
}

impl TextForm<'_> {
    /// In Lark.
    pub(super) fn lark(self) -> Result<String, ConstraintError> {
        match self {
            Self::Grammar(text) => grammar(text),
            Self::Regex(text) => regex(text),
            Self::Choice(texts) => choice(texts),
        }
    }
}

fn grammar(text: &str) -> Result<String, ConstraintError> {
    within(text.len(), GRAMMAR_BYTES_MAX)?;
    if gbnf::is_gbnf(text) {
        return gbnf::lark(text).map_err(ConstraintError::Text);
    }
    // Schemas have their own field, and checks; options would reach beyond the grammar.
    for refused in ["%json", "%llguidance", "%lark", "%regex"] {
        if text.contains(refused) {
            return Err(ConstraintError::Text(format!("`{refused}` is not taken")));
        }
    }
    if repeats(text) {
        let words = format!("a part may be repeated at most {REPEATS_MAX} times");
        return Err(ConstraintError::Text(words));
    }
    Ok(text.to_owned())
}

/// Whether a part is repeated too often: `{2000}`, `{1,2000}`, `~ 1..2000`.
fn repeats(text: &str) -> bool {
    let too_often = |count: &str| {
        let count = count.trim();
        let is_count = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
        is_count && !count.parse::<u32>().is_ok_and(|count| count <= REPEATS_MAX)
    };
    text.match_indices(['{', '~']).any(|(at, mark)| {
        let rest = &text[at + 1..];
        let end = match mark {
            "{" => rest.find('}'),
            _ => rest.find(|c: char| !c.is_ascii_digit() && !". ".contains(c)),
        };
        rest[..end.unwrap_or(rest.len())].split([',', '.']).any(too_often)
    })
}

fn regex(text: &str) -> Result<String, ConstraintError> {
    within(text.len(), REGEX_BYTES_MAX)?;
    let text = text.strip_prefix('^').unwrap_or(text);
    let text = match text.strip_suffix('$') {
        Some(before) if !ends_escaped(before) => before,
        _ => text,
    };
    if text.is_empty() {
        return Err(ConstraintError::Text("it matches nothing but an empty text".to_owned()));
    }
    Ok(format!("start: /{}/", regex_to_lark(text, "")))
}

/// Whether the next character stands after a backslash.
fn ends_escaped(text: &str) -> bool {
    text.chars().rev().take_while(|&c| c == '\\').count() % 2 == 1
}

fn choice(texts: &[String]) -> Result<String, ConstraintError> {
    within(texts.iter().map(String::len).sum(), GRAMMAR_BYTES_MAX)?;
    if texts.is_empty() || texts.len() > CHOICES_MAX || texts.iter().any(String::is_empty) {
        let words = format!("it must be 1 to {CHOICES_MAX} texts that are not empty");
        return Err(ConstraintError::Text(words));
    }
    let quoted: Vec<String> = texts.iter().map(|text| gbnf::quoted(text)).collect();
    Ok(format!("start: {}", quoted.join(" | ")))
}

fn within(bytes: usize, limit_bytes: usize) -> Result<(), ConstraintError> {
    if bytes > limit_bytes { Err(ConstraintError::TooLong { limit_bytes }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_written_in_lark() {
        let choice = ["a\"b".to_owned(), "c".to_owned()];
        assert_eq!(TextForm::Choice(&choice).lark().unwrap(), r#"start: "a\"b" | "c""#);
        assert_eq!(TextForm::Regex(r"^a/\d+$").lark().unwrap(), r"start: /a\/\d+/");
        assert_eq!(TextForm::Regex(r"cost\$").lark().unwrap(), r"start: /cost\$/");
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let long = "a".repeat(REGEX_BYTES_MAX + 1);
        let many = vec!["a".to_owned(); CHOICES_MAX + 1];
        for form in [
            TextForm::Regex(&long),
            TextForm::Regex("^$"),
            TextForm::Choice(&many),
            TextForm::Choice(&[]),
            TextForm::Grammar("start: %json {}"),
            TextForm::Grammar("start: \"a\"{1,4000}"),
            TextForm::Grammar("start: \"a\" ~ 1..4000"),
        ] {
            assert!(form.lark().is_err(), "{form:?}");
        }
    }
}
