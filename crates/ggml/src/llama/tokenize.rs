//! Text → tokens through llama.cpp's tokenizer, within bounds: a text is refused before it can
//! overflow a stack, run into an assertion or take minutes. Knows nothing of conversations.
//!
//! Accepted texts get exactly llama.cpp's tokens: nothing is cut or changed on the way. The
//! bounds come from measurements of every pre-tokenizer of the pinned llama.cpp on runs of every
//! class of characters; `tests/tokenize.rs` repeats them.

use super::extent::{has_wide_space, longest_stretch, squared_runs};
use super::facts::VocabularyFacts;
use super::model::Model;
use super::shim::{self, Thrown};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, scope};

/// Bytes of a text.
const TEXT_BYTES_MAX: usize = 256 << 20;
/// Characters in a row without a place to cut: a line end or two blanks before a visible one.
const STRETCH_CHARS_MAX: usize = 512 << 10;
/// Control tokens parsed from one text. Each cuts it in two, and some pre-tokenizers (`gpt-4o`)
/// compile an expression for each part: 1.3 ms.
const CONTROL_TOKENS_MAX: usize = 4096;
/// Tokens cut out of one text in all, where it is known how many may be: finding them takes time
/// with the square of their number, 8 s for so many.
const CUT_TOKENS_MAX: usize = 64 << 10;
/// Sum of the squares of the lengths of runs, where a pre-tokenizer looks at all of a run from
/// each of its characters: 2 s of work, a run of 6300 characters.
const SQUARED_RUNS_MAX: u64 = 40_000_000;

/// Stack for one character of a match: `std::regex` took at most 200 bytes for every
/// pre-tokenizer (clang, optimised); five times as much for other compilers.
const STACK_CHAR_BYTES: usize = 1 << 10;
/// Stack for all else.
const STACK_BASE_BYTES: usize = 1 << 20;
/// Texts with longer stretches are tokenized one at a time, so that their stacks add up to one.
const ALONE_CHARS: usize = 32 << 10;

/// What is made of a text beside its own tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parsing {
    /// Adds the model's own beginning token if it has one.
    pub begin: bool,
    /// Control tokens written out in the text are taken as such.
    pub control: bool,
}

/// Why a text was not tokenized.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizeError {
    /// Longer than any text that fits.
    #[error("the text is too long: {bytes} bytes, at most {most} can fit")]
    Long { bytes: usize, most: usize },
    /// No place to cut for too long.
    #[error(
        "the text has {chars} characters in a row without a line end or two blanks, the most is \
         {STRETCH_CHARS_MAX}; break its longest line"
    )]
    Stretch { chars: usize },
    /// Runs that take this vocabulary's pre-tokenizer time with their square.
    #[error(
        "the text's runs of {class} are too long for the pre-tokenizer `{pre}`: the squares of \
         their lengths add up to {sum}, the most is {SQUARED_RUNS_MAX}"
    )]
    Runs { class: &'static str, pre: &'static str, sum: u64 },
    /// White space an assertion in llama.cpp forbids.
    #[error("the pre-tokenizer `{WHITESPACE}` has no tokens for a blank beside other white space")]
    WideSpace,
    /// Too many tokens that are written out in the text.
    #[error("the text has {count} tokens of the vocabulary written out, the most is {most}")]
    CutTokens { count: usize, most: usize },
    /// The system gave no thread with a stack for this text.
    #[error("no thread with a stack of {stack_bytes} bytes to tokenize on: {source}")]
    Thread { stack_bytes: usize, source: std::io::Error },
    /// llama.cpp threw an exception.
    #[error(transparent)]
    Thrown(#[from] Thrown),
}

/// A pre-tokenizer with an expression that looks at all of a run from each of its characters.
struct Squaring {
    pre: &'static str,
    class: &'static str,
    is_class: fn(char) -> bool,
}

/// All that are so.
const SQUARING: [Squaring; 3] = [
    Squaring { pre: "deepseek-llm", class: "white space", is_class: char::is_whitespace },
    Squaring { pre: "jais-2", class: "white space", is_class: char::is_whitespace },
    Squaring { pre: "superbpe", class: "digits", is_class: char::is_numeric },
];
/// The pre-tokenizer whose merges assert that there is no blank in them.
const WHITESPACE: &str = "whitespace";

impl Model {
    /// Text → tokens. With `most_tokens`, a text that cannot be that few is refused at once.
    pub fn tokenize(
        &self,
        text: &str,
        parsing: Parsing,
        most_tokens: Option<usize>,
    ) -> Result<Vec<i32>, TokenizeError> {
        // Every vocabulary has an answer to that without looking at a character.
        if text.is_empty() {
            return Ok(self.fill(text, parsing)?);
        }
        let facts = self.facts();
        check_length(text, facts, most_tokens)?;
        let stretch = longest_stretch(text);
        if stretch > STRETCH_CHARS_MAX {
            return Err(TokenizeError::Stretch { chars: stretch });
        }
        check_runs(text, facts)?;
        check_cuts(text, facts, parsing, most_tokens)?;
        static ALONE: Mutex<()> = Mutex::new(());
        let _alone =
            (stretch > ALONE_CHARS).then(|| ALONE.lock().unwrap_or_else(PoisonError::into_inner));
        self.fill_on_stack(text, parsing, STACK_BASE_BYTES + stretch * STACK_CHAR_BYTES)
    }

    /// The stack is address space until a match is really that long.
    fn fill_on_stack(
        &self,
        text: &str,
        parsing: Parsing,
        stack_bytes: usize,
    ) -> Result<Vec<i32>, TokenizeError> {
        scope(|threads| {
            let fill = || self.fill(text, parsing);
            let named = Builder::new().name("tokenize".into()).stack_size(stack_bytes);
            let thread = named
                .spawn_scoped(threads, fill)
                .map_err(|source| TokenizeError::Thread { stack_bytes, source })?;
            let filled = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok(filled?)
        })
    }

    fn fill(&self, text: &str, parsing: Parsing) -> Result<Vec<i32>, Thrown> {
        let Parsing { begin, control } = parsing;
        let mut tokens = vec![0; text.len() + 2];
        loop {
            // SAFETY: the vocabulary lives as long as the model.
            let count = unsafe { shim::tokenize(self.vocab(), text, &mut tokens, begin, control) }?;
            if let Ok(count) = usize::try_from(count) {
                tokens.truncate(count);
                return Ok(tokens);
            }
            tokens.resize(count.unsigned_abs() as usize, 0);
        }
    }
}

/// No token has more bytes than the longest, so a text of more than all of them has more tokens.
fn check_length(
    text: &str,
    facts: &VocabularyFacts,
    most_tokens: Option<usize>,
) -> Result<(), TokenizeError> {
    let fit = most_tokens.map_or(usize::MAX, |most| most.saturating_mul(facts.longest_bytes));
    let most = fit.min(TEXT_BYTES_MAX);
    if text.len() > most {
        return Err(TokenizeError::Long { bytes: text.len(), most });
    }
    Ok(())
}

fn check_runs(text: &str, facts: &VocabularyFacts) -> Result<(), TokenizeError> {
    for Squaring { pre, class, is_class } in SQUARING.iter().filter(|it| it.pre == facts.pre) {
        let sum = squared_runs(text, is_class);
        if sum > SQUARED_RUNS_MAX {
            return Err(TokenizeError::Runs { class, pre, sum });
        }
    }
    if facts.pre == WHITESPACE && has_wide_space(text) {
        return Err(TokenizeError::WideSpace);
    }
    Ok(())
}

/// Tokens written out in a text are cut from it before all else.
fn check_cuts(
    text: &str,
    facts: &VocabularyFacts,
    parsing: Parsing,
    most_tokens: Option<usize>,
) -> Result<(), TokenizeError> {
    let control = if parsing.control { facts.find_control.find_iter(text).count() } else { 0 };
    let within = |count, most| match count > most {
        true => Err(TokenizeError::CutTokens { count, most }),
        false => Ok(()),
    };
    within(control, CONTROL_TOKENS_MAX)?;
    let Some(most) = most_tokens else { return Ok(()) };
    within(control + facts.find_user_defined.find_iter(text).count(), most.min(CUT_TOKENS_MAX))
}
