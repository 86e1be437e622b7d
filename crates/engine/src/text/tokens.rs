//! What an [`Engine`] does with text: tokens of it, bytes of them, and conversations by the
//! model's own template. Generates nothing.

use super::chat::{ChatError, ChatMessage, Conversation, render_chat};
use super::literal::{Escapes, Piece};
use super::output::OutputFormat;
use crate::engine::Engine;
use motley_ggml::{InfillTokens, Parsing, TokenizeError};

/// A text that keeps no company with what follows it, in vocabularies that put a space before
/// texts.
const FORERUNNER: &str = "\n";

/// Tokens at the end of a prompt in which the mark of a thought is looked for.
const MARK_TOKENS: usize = 16;

impl Engine {
    /// Text → tokens, with the model's beginning token. Control tokens written in the text are
    /// taken as such: whoever gives the text writes the whole prompt, turns and roles included.
    /// Text of others goes through [`Engine::conversation_tokens`].
    pub fn tokenize(&self, text: &str) -> Result<Vec<i32>, TokenizeError> {
        self.model().tokenize(text, Parsing { begin: true, control: true }, None)
    }

    /// As [`Engine::tokenize`], for a text of at most `most_tokens`: one that cannot be so short
    /// is refused before any work.
    pub fn tokenize_within(
        &self,
        text: &str,
        most_tokens: usize,
    ) -> Result<Vec<i32>, TokenizeError> {
        self.model().tokenize(text, Parsing { begin: true, control: true }, Some(most_tokens))
    }

    /// Text → tokens as plain text: no beginning token, and control tokens written in the
    /// text are text.
    pub fn tokenize_plain(&self, text: &str) -> Result<Vec<i32>, TokenizeError> {
        self.model().tokenize(text, Parsing { begin: false, control: false }, None)
    }

    /// Tokens around the parts of a text with a gap; `None` for models that have not learned to fill one.
    pub fn infill_tokens(&self) -> Option<InfillTokens> {
        self.model().infill_tokens()
    }

    /// A prompt for what belongs between two texts, each of at most `most_tokens`. Control tokens written
    /// in them are text.
    pub fn infill_prompt(
        &self,
        marks: InfillTokens,
        [before, after]: [&str; 2],
        most_tokens: usize,
    ) -> Result<Vec<i32>, TokenizeError> {
        let parsing = Parsing { begin: false, control: false };
        let tokens = |text| self.model().tokenize(text, parsing, Some(most_tokens));
        let mut prompt = self.begin_tokens()?;
        prompt.push(marks.prefix);
        prompt.extend(tokens(before)?);
        prompt.push(marks.suffix);
        prompt.extend(tokens(after)?);
        prompt.push(marks.middle);
        Ok(prompt)
    }

    /// What the model wants before a text: its beginning token, or nothing.
    pub fn begin_tokens(&self) -> Result<Vec<i32>, TokenizeError> {
        self.model().tokenize("", Parsing { begin: true, control: false }, None)
    }

    /// The bytes of one token; not always whole UTF-8 (see [`crate::TextStream`]).
    pub fn token_bytes(&self, token: i32) -> Vec<u8> {
        self.model().token_bytes(token, false)
    }

    /// As [`Engine::token_bytes`], control tokens written out as well.
    pub fn token_bytes_with_control(&self, token: i32) -> Vec<u8> {
        self.model().token_bytes(token, true)
    }

    /// How what the model writes is read, by its template and vocabulary.
    pub fn output_format(&self) -> OutputFormat {
        let template = self.chat_template().unwrap_or_default();
        OutputFormat::of(&template, self.model().control_texts())
    }

    /// The last tokens of a prompt as text, enough of them for any mark a template may end with.
    pub fn end_of(&self, tokens: &[i32]) -> String {
        let last = &tokens[tokens.len().saturating_sub(MARK_TOKENS)..];
        let bytes: Vec<u8> =
            last.iter().flat_map(|&token| self.token_bytes_with_control(token)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Number of tokens in the vocabulary.
    pub fn vocab_size(&self) -> usize {
        self.model().vocab_size()
    }

    /// The conversation as tokens, by the model's own template. Only what the template itself
    /// writes becomes control tokens; those written in messages stay text.
    pub fn chat_tokens(&self, messages: &[ChatMessage]) -> Result<Vec<i32>, ChatError> {
        self.conversation_tokens(&messages.into(), None)
    }

    /// As [`Engine::chat_tokens`], with tools and all else a template may look at. With
    /// `most_tokens`, a conversation that cannot be so short is refused before any work.
    pub fn conversation_tokens(
        &self,
        conversation: &Conversation,
        most_tokens: Option<usize>,
    ) -> Result<Vec<i32>, ChatError> {
        let template = self.chat_template().ok_or(ChatError::NoTemplate)?;
        let (begin, end) = (self.model().begin_text(), self.model().end_text());
        let escapes = Escapes::new(self.model().control_texts());
        let text = render_chat(&template, &escapes.conversation(conversation), &begin, &end)?;
        Ok(self.marked_tokens(&escapes, &text, most_tokens)?)
    }

    /// Tokens of a text with marks in it, which keep what is between them from being control tokens.
    pub(super) fn marked_tokens(
        &self,
        escapes: &Escapes,
        text: &str,
        most_tokens: Option<usize>,
    ) -> Result<Vec<i32>, TokenizeError> {
        let mut tokens = Vec::new();
        for piece in &escapes.pieces(text) {
            tokens.extend(self.piece_tokens(piece, tokens.is_empty(), most_tokens)?);
        }
        Ok(tokens)
    }

    /// The model's own chat template, if it carries one.
    pub fn chat_template(&self) -> Option<String> {
        self.model().chat_template()
    }

    /// Tokens of a part of a text as they are amid the text.
    fn piece_tokens(
        &self,
        piece: &Piece,
        is_first: bool,
        most_tokens: Option<usize>,
    ) -> Result<Vec<i32>, TokenizeError> {
        let parsing = Parsing { begin: false, control: !piece.is_literal };
        let tokens = |text: &str| self.model().tokenize(text, parsing, most_tokens);
        if !is_first && self.model().prefixes_space() {
            let (before, both) =
                (tokens(FORERUNNER)?, tokens(&format!("{FORERUNNER}{}", piece.text))?);
            if let Some(after) = both.strip_prefix(&before[..]) {
                return Ok(after.to_vec());
            }
        }
        tokens(&piece.text)
    }
}
