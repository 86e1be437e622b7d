//! What tokenizing asks of a vocabulary, gathered once per model. Gathers nothing itself.

use aho_corasick::{AhoCorasick, MatchKind};

/// What tokenizing asks of a vocabulary, gathered once.
#[derive(Debug)]
pub(super) struct VocabularyFacts {
    /// Bytes of the longest token.
    pub longest_bytes: usize,
    /// How texts are cut before tokens are looked for (`tokenizer.ggml.pre`).
    pub pre: String,
    /// Texts of control tokens.
    pub control: Vec<String>,
    /// Finds control tokens in a text.
    pub find_control: AhoCorasick,
    /// Finds the tokens that are cut out of every text, control token or not.
    pub find_user_defined: AhoCorasick,
}

/// Finds `texts`, of those that begin at one place the longest.
pub(super) fn finder(texts: &[String]) -> AhoCorasick {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .build(texts)
        .expect("a vocabulary's marks are few beside what an automaton can hold")
}
