//! A chat: lines typed, commands that begin with a slash, until Ctrl-D or `/quit`. An error ends an
//! answer, never the chat.

use super::editor::{Editor, Typed};
use super::question::Question;
use super::saved;
use super::talk::Talk;
use super::told::Told;
use crate::args::Run;
use crate::commands::explain;
use crate::terminal::{in_words, note, print_page};
use anyhow::{Result, bail, ensure};
use console::Term;
use motley_cost::calibration::CalibrationFile;

const HELP: &str = " /clear         begin anew; what --system says stays
 /save NAME     keep this conversation
 /load [NAME]   go on with a kept one; without a name, list them
 /think         show or fold what the model thinks, from now on
 /explain       where the time went, and what would be faster
 /help          this list
 /quit          end (so does Ctrl-D)
 Ctrl-C ends an answer. A line that ends with \\ goes on in the next. A space
 before a slash makes it a question.";

/// A chat that has not begun.
pub(super) struct Chat {
    editor: Option<Editor>,
    /// What is known of this machine's speed, read before files are given up.
    calibration: Option<CalibrationFile>,
}

/// A line that is a command.
#[derive(Debug, PartialEq, Eq)]
enum Slash<'a> {
    Clear,
    Save(&'a str),
    Load(&'a str),
    Think,
    Explain,
    Help,
    Quit,
}

impl Chat {
    /// Opens what the chat needs; nothing where there is none.
    pub(super) fn prepare(
        question: &Question,
        run: &Run,
        calibration: Option<CalibrationFile>,
    ) -> Result<Self> {
        let chats = *question == Question::Chat;
        let editor = chats.then(|| Editor::open(!run.no_record)).transpose()?;
        Ok(Self { editor, calibration })
    }

    /// Whether it may write files.
    pub(super) fn saves(&self) -> bool {
        self.editor.is_some()
    }

    /// Chats to the end.
    pub(super) fn talk(self, told: &Told<'_>, talk: &mut Talk<'_>) -> Result<()> {
        let Self { editor, calibration } = self;
        let Some(mut editor) = editor else { return Ok(()) };
        ensure!(
            talk.engine.chat_template().is_some(),
            "the model has no chat template, so it cannot chat; continue a text with -p"
        );
        note("type a question; /help lists what else can be typed, Ctrl-D ends");
        loop {
            let line = match editor.read()? {
                Typed::Line(line) => line,
                Typed::Nothing => continue,
                Typed::End => break,
            };
            let done = match Slash::of(&line) {
                Ok(None) => told.answered(talk, |talk| talk.ask(&line)).map(|_| ()),
                Ok(Some(Slash::Quit)) => break,
                Ok(Some(slash)) => carry_out(&slash, talk, calibration.as_ref()),
                Err(error) => Err(error),
            };
            done.unwrap_or_else(|error| note(&in_words(&error)));
        }
        editor.keep();
        Ok(())
    }
}

impl<'a> Slash<'a> {
    /// The command in `line`; `None` where it is a question.
    fn of(line: &'a str) -> Result<Option<Self>> {
        let Some(rest) = line.strip_prefix('/') else { return Ok(None) };
        let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let argument = argument.trim();
        let slash = match name {
            "clear" => Self::Clear,
            "save" => Self::Save(argument),
            "load" => Self::Load(argument),
            "think" => Self::Think,
            "explain" => Self::Explain,
            "help" | "?" => Self::Help,
            "quit" | "exit" | "bye" => Self::Quit,
            other => bail!("there is no /{other}; /help lists what there is"),
        };
        Ok(Some(slash))
    }
}

fn carry_out(
    slash: &Slash<'_>,
    talk: &mut Talk<'_>,
    calibration: Option<&CalibrationFile>,
) -> Result<()> {
    match slash {
        Slash::Clear => {
            talk.clear();
            note("a new conversation");
        }
        Slash::Save(name) => {
            let path = saved::save(name, talk.engine.spec(), &talk.messages)?;
            note(&format!("kept in {}", path.display()));
        }
        Slash::Load("") => note(&saved::list()?),
        Slash::Load(name) => {
            talk.messages = saved::load(name)?;
            let turns = talk.messages.len();
            note(&format!("{turns} turns; the next question goes on from there"));
        }
        Slash::Think => think(talk)?,
        Slash::Explain => {
            let record = talk.engine.record(&talk.session);
            print_page(&explain::page(record, calibration, Some(Term::stdout().size().1))?)?;
        }
        Slash::Help => print_page(HELP)?,
        // The loop's own.
        Slash::Quit => {}
    }
    Ok(())
}

/// Folded thoughts are opened, the last one at once.
fn think(talk: &mut Talk<'_>) -> Result<()> {
    talk.screen.thoughts = !talk.screen.thoughts;
    if !talk.screen.thoughts {
        note("thoughts are folded to one line from now on");
        return Ok(());
    }
    match talk.last_thought() {
        Some(thought) => print_page(thought)?,
        None => note("thoughts are shown from now on"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_begin_with_a_slash_and_others_are_questions() {
        let of = |line| Slash::of(line).unwrap();
        assert_eq!(of("/save  trip "), Some(Slash::Save("trip")));
        assert_eq!(of("/load"), Some(Slash::Load("")));
        assert_eq!(of("/bye"), Some(Slash::Quit));
        assert_eq!(of("what is / for?"), None);
        assert_eq!(of(" /etc/fstab"), None);
        assert!(Slash::of("/etc/fstab").unwrap_err().to_string().contains("/help"));
    }

    #[test]
    fn every_command_is_in_the_list() {
        for name in ["clear", "save", "load", "think", "explain", "help", "quit"] {
            assert!(HELP.contains(&format!(" /{name}")), "{name}");
            assert!(Slash::of(&format!("/{name}")).is_ok(), "{name}");
        }
    }
}
