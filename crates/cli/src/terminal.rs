//! What people read on a terminal: pages, notes, answers and the log. Names, keys, templates and
//! answers come from files and models of strangers; characters that steer a terminal (clipboard,
//! title, colours, direction of writing) are shown as `\u{1b}`, never sent. Layout is `page`'s.

use anyhow::Result;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// The only sequences a page itself has, around labels on a terminal: bold, and its end.
const OWN: [&str; 2] = ["\u{1b}[1m", "\u{1b}[0m"];

/// Whether a character steers a terminal instead of being shown. Line ends and tabs do not count.
fn steers(c: char) -> bool {
    let control = c.is_control() && !matches!(c, '\n' | '\t');
    control || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text with every character that could steer a terminal written out.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let shown = text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        match steers(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
        shown
    });
    Cow::Owned(shown)
}

/// Writes an answer to a command: JSON or a page, and the end of its last line.
pub(crate) fn print(is_json: bool, text: &str) -> Result<()> {
    if is_json { print_json(text) } else { print_page(text) }
}

/// Writes a page for people.
pub(crate) fn print_page(text: &str) -> Result<()> {
    let mut output = io::stdout().lock();
    let own = if output.is_terminal() { &OWN[..] } else { &[] };
    Ok(writeln!(output, "{}", escaped_but(text, own))?)
}

/// Writes a page for people to stderr: beside an answer that is not one.
pub(crate) fn print_aside(text: &str) {
    let own = if io::stderr().is_terminal() { &OWN[..] } else { &[] };
    eprintln!("{}", escaped_but(text, own));
}

/// [`escaped`], except for what is one of `own`.
fn escaped_but(text: &str, own: &[&str]) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    let first = |rest: &str| own.iter().filter_map(|own| Some((rest.find(own)?, own.len()))).min();
    while let Some((at, len)) = first(rest) {
        shown += &escaped(&rest[..at]);
        shown += &rest[at..at + len];
        rest = &rest[at + len..];
    }
    shown + &escaped(rest)
}

/// Writes JSON for programs. Characters beyond ASCII are only inside its strings, where they may be escaped.
pub(crate) fn print_json(text: &str) -> Result<()> {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match steers(c) {
            true => shown += &format!("\\u{:04x}", u32::from(c)),
            false => shown.push(c),
        }
    }
    Ok(writeln!(io::stdout(), "{shown}")?)
}

/// One line on stderr, which a program that reads stdout never sees.
pub(crate) fn note(text: &str) {
    eprintln!("motley: {}", escaped(text));
}

/// The error and its causes, but none that the text before it holds already.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |said, cause| {
        if said.contains(&cause) { said } else { format!("{said}: {cause}") }
    })
}

/// Writes text of a model at once: as it is into a pipe, escaped on a terminal.
pub(crate) fn answer(output: &mut impl Write, is_terminal: bool, text: &str) -> io::Result<()> {
    let text = if is_terminal { escaped(text) } else { Cow::Borrowed(text) };
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// Where the log goes: stderr, escaped line by line.
pub(crate) struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(escaped(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_left() {
        let hostile = "a\u{1b}]52;c;eHg=\u{7}b\u{9b}31m\u{7f}\r\u{202e}c\u{2066}\n\tü";
        let shown = escaped(hostile);
        assert!(!shown.contains(steers), "{shown}");
        assert!(shown.starts_with(r"a\u{1b}]52;c;eHg=\u{7}b\u{9b}31m\u{7f}\u{d}\u{202e}c"));
        assert!(shown.ends_with("\n\tü"));
        assert!(matches!(escaped("plain ×\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn an_answer_is_escaped_on_a_terminal_only() {
        let clipboard = "take \u{1b}]52;c;eHg=\u{7}";
        let shown = |is_terminal| {
            let mut output = Vec::new();
            answer(&mut output, is_terminal, clipboard).unwrap();
            String::from_utf8(output).unwrap()
        };
        assert_eq!(shown(false), clipboard);
        assert_eq!(shown(true), r"take \u{1b}]52;c;eHg=\u{7}");
    }

    #[test]
    fn a_page_keeps_its_own_bold_and_nothing_else() {
        let page = "\u{1b}[1mName\u{1b}[0m \u{1b}[31mred\u{1b}[2J";
        let shown = escaped_but(page, &OWN);
        assert_eq!(shown, "\u{1b}[1mName\u{1b}[0m \\u{1b}[31mred\\u{1b}[2J");
        assert!(!escaped_but(page, &[]).contains('\u{1b}'));
    }
}
