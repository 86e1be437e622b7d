//! Texts that become vectors or scores, as tokens. Control tokens written in them are text: they are
//! data of others.

use super::literal::Escapes;
use crate::engine::Engine;
use motley_ggml::{Parsing, TextBounds, TokenizeError};

/// Where a template for ranking has the query and the text.
const QUERY: &str = "{query}";
const DOCUMENT: &str = "{document}";

impl Engine {
    /// A text between what the vocabulary puts around one. One that cannot be of at most
    /// `most_tokens` is refused before any work.
    pub fn text_tokens(&self, text: &str, most_tokens: usize) -> Result<Vec<i32>, TokenizeError> {
        self.model().tokenize(text, Parsing { begin: true, control: false }, Some(most_tokens))
    }

    /// Tokens a vocabulary puts around texts, and between two of them.
    pub fn text_bounds(&self) -> TextBounds {
        self.model().text_bounds()
    }

    /// A query and a text that may answer it: by the model's own template for that, or one after
    /// the other with what the vocabulary puts between them.
    pub fn ranking_tokens(
        &self,
        query: &str,
        text: &str,
        most_tokens: usize,
    ) -> Result<Vec<i32>, TokenizeError> {
        match &self.spec().rerank_template {
            Some(template) => {
                let escapes = Escapes::new(self.model().control_texts());
                let parts = template.split_inclusive('}').map(|part| match part {
                    part if part.ends_with(QUERY) => filled(part, QUERY, &escapes.escape(query)),
                    part if part.ends_with(DOCUMENT) => {
                        filled(part, DOCUMENT, &escapes.escape(text))
                    }
                    part => part.to_owned(),
                });
                self.marked_tokens(&escapes, &parts.collect::<String>(), Some(most_tokens))
            }
            None => {
                let TextBounds { begin, end, separator } = self.text_bounds();
                let plain = Parsing { begin: false, control: false };
                let tokens = |text| self.model().tokenize(text, plain, Some(most_tokens));
                let (query, text) = (tokens(query)?, tokens(text)?);
                let query = begin.into_iter().chain(query).chain(end).chain(separator);
                Ok(query.chain(text).chain(end).collect())
            }
        }
    }
}

/// A part of a template that ends with `place`, with `text` there.
fn filled(part: &str, place: &str, text: &str) -> String {
    part.strip_suffix(place).unwrap_or(part).to_owned() + text
}
