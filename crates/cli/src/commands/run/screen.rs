//! An answer on stdout as it arrives: text as it is, thoughts dim or as one line. Into a pipe goes
//! the answer alone. Parses nothing.

use crate::terminal;
use motley_engine::text::output::Parsed;
use std::io::{IsTerminal, Write, stdout};
use std::time::Instant;

/// Around thoughts on a terminal with colours: dim, and its end.
const DIM: [&str; 2] = ["\u{1b}[2m", "\u{1b}[0m\n\n"];
/// Around thoughts on a terminal without.
const PLAIN: [&str; 2] = ["[thinking]\n", "\n[end of thinking]\n\n"];

/// Where answers are shown, and how much of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Screen {
    pub(super) answers: bool,
    pub(super) thoughts: bool,
    colours: bool,
    terminal: bool,
}

impl Screen {
    /// Stdout. Thoughts are shown to people only.
    pub(super) fn stdout(answers: bool, thoughts: bool) -> Self {
        let terminal = stdout().is_terminal();
        Self { answers, thoughts, colours: console::colors_enabled(), terminal }
    }

    /// Begins an answer.
    pub(super) fn begin(self) -> Page<std::io::Stdout> {
        Page { screen: self, output: stdout(), thinking: None }
    }
}

/// One answer being shown.
pub(super) struct Page<W> {
    screen: Screen,
    output: W,
    /// Since when thoughts come; `None` before and after.
    thinking: Option<Instant>,
}

impl<W: Write> Page<W> {
    /// Shows what is new, at once.
    pub(super) fn show(&mut self, parsed: &Parsed) -> std::io::Result<()> {
        let Screen { answers, terminal, .. } = self.screen;
        if !answers {
            return Ok(());
        }
        if !parsed.thought.is_empty() && terminal {
            self.think(&parsed.thought)?;
        }
        if parsed.text.is_empty() {
            return Ok(());
        }
        self.end_thought()?;
        terminal::answer(&mut self.output, terminal, &parsed.text)
    }

    /// Ends the answer, and the line it is on.
    pub(super) fn end(&mut self) -> std::io::Result<()> {
        self.end_thought()?;
        if self.screen.answers { writeln!(self.output) } else { Ok(()) }
    }

    fn think(&mut self, text: &str) -> std::io::Result<()> {
        let first = self.thinking.is_none();
        self.thinking.get_or_insert_with(Instant::now);
        match (self.screen.thoughts, first) {
            (true, true) => self.output.write_all(self.frame()[0].as_bytes())?,
            (true, false) => {}
            (false, true) => return terminal::answer(&mut self.output, true, "(thinking …"),
            (false, false) => return Ok(()),
        }
        terminal::answer(&mut self.output, true, text)
    }

    fn end_thought(&mut self) -> std::io::Result<()> {
        let Some(since) = self.thinking.take() else { return Ok(()) };
        let end = match self.screen.thoughts {
            true => self.frame()[1].to_owned(),
            false => format!(" {:.0} s; /think shows it)\n\n", since.elapsed().as_secs_f64()),
        };
        self.output.write_all(end.as_bytes())?;
        self.output.flush()
    }

    fn frame(&self) -> [&'static str; 2] {
        if self.screen.colours { DIM } else { PLAIN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(screen: Screen) -> String {
        let mut page = Page { screen, output: Vec::new(), thinking: None };
        let parsed = |thought: &str, text: &str| Parsed {
            thought: thought.into(),
            text: text.into(),
            calls: Vec::new(),
        };
        page.show(&parsed("Hm", "")).unwrap();
        page.show(&parsed(".\u{1b}[2J", "Four")).unwrap();
        page.end().unwrap();
        String::from_utf8(page.output).unwrap()
    }

    #[test]
    fn thoughts_are_dim_on_a_terminal_and_absent_in_a_pipe() {
        let people = Screen { answers: true, thoughts: true, colours: true, terminal: true };
        assert_eq!(shown(people), "\u{1b}[2mHm.\\u{1b}[2J\u{1b}[0m\n\nFour\n");
        let dumb = Screen { colours: false, ..people };
        assert_eq!(shown(dumb), "[thinking]\nHm.\\u{1b}[2J\n[end of thinking]\n\nFour\n");
        let folded = Screen { thoughts: false, ..people };
        assert_eq!(shown(folded), "(thinking … 0 s; /think shows it)\n\nFour\n");
        assert_eq!(shown(Screen { terminal: false, ..people }), "Four\n");
        assert_eq!(shown(Screen { answers: false, ..people }), "");
    }
}
