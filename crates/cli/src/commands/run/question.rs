//! What is asked, from flags, files and pipes. Asks nothing.

use crate::args::Run;
use anyhow::{Context, Result, bail};
use motley_plan::decide::asked::ANSWER_TOKENS;
use std::fs::File;
use std::io::{IsTerminal, Read, stdin};
use std::path::Path;

/// Bytes of a text from a file or a pipe; more than any context holds.
const TEXT_BYTES_MAX: u64 = 64 << 20;
/// Bytes of a token, on the low side: English has 4 to 5, program text about 3.
const TOKEN_BYTES: usize = 3;

/// What a run is for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// One question, or one text to continue.
    Once(String),
    /// What somebody types.
    Chat,
}

impl Question {
    /// How long the prompt is, about: no tokeniser is there yet. With an answer at most the `trained`
    /// tokens of the model: no cache is made for more than it understands.
    pub(super) fn tokens_about(&self, trained: u64) -> Option<u32> {
        let Self::Once(text) = self else { return None };
        let most = trained.saturating_sub(ANSWER_TOKENS as u64);
        u32::try_from(((text.len() / TOKEN_BYTES) as u64).min(most)).ok()
    }

    /// Reads it before the model is loaded, so that a wrong name costs no time.
    pub(super) fn read(run: &Run) -> Result<Self> {
        let file = run.file.as_deref().map(read_file).transpose()?;
        match (&run.prompt, file) {
            (Some(text), Some(file)) => Ok(Self::Once(format!("{text}\n\n{file}"))),
            (Some(text), None) => Ok(Self::Once(text.clone())),
            (None, Some(file)) => Ok(Self::Once(file)),
            (None, None) if !stdin().is_terminal() => {
                Ok(Self::Once(read_text("stdin", stdin().lock())?))
            }
            (None, None) if run.raw => {
                bail!("--raw continues a text: give it with -p, with -f or through a pipe")
            }
            (None, None) => Ok(Self::Chat),
        }
    }
}

fn read_file(path: &Path) -> Result<String> {
    if path == Path::new("-") {
        return read_text("stdin", stdin().lock());
    }
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    read_text(&name, file)
}

fn read_text(name: &str, source: impl Read) -> Result<String> {
    let mut bytes = Vec::new();
    source
        .take(TEXT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > TEXT_BYTES_MAX {
        bail!(
            "{name} has more than {} MB of text, more than any model reads",
            TEXT_BYTES_MAX >> 20
        );
    }
    let text = String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("{name} is no text: it has bytes that are not UTF-8"))?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.trim().is_empty() {
        bail!("{name} has no text to ask about; -p gives a question");
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_about_as_long_as_its_bytes_say_and_never_longer_than_the_model_knows() {
        let asked = Question::Once("x".repeat(30_000));
        assert_eq!(asked.tokens_about(32_768), Some(10_000));
        assert_eq!(asked.tokens_about(8192), Some(8192 - 256));
        assert_eq!(Question::Chat.tokens_about(8192), None);
    }

    #[test]
    fn text_is_read_to_its_end_and_loses_the_last_line_end() {
        assert_eq!(read_text("x", &b"a\n\nb\n"[..]).unwrap(), "a\n\nb");
    }

    #[test]
    fn what_is_no_text_is_refused_by_name() {
        let error = |bytes: &[u8]| read_text("notes.txt", bytes).unwrap_err().to_string();
        assert!(error(&[0xff, 0xfe]).contains("notes.txt is no text"));
        assert!(error(b" \n").contains("notes.txt has no text"));
        let endless = std::io::repeat(b'a');
        assert!(read_text("pipe", endless).unwrap_err().to_string().contains("64 MB"));
    }
}
