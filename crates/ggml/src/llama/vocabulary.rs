//! A model's vocabulary: its tokens as bytes and texts, and which of them are marks that only a
//! template should write. Turns no text into tokens; `tokenize` does.

use super::facts::{VocabularyFacts, finder};
use super::model::Model;
use super::shim;
use llama_cpp_sys_2 as sys;
use std::ffi::CStr;

/// Bytes read of the name of a pre-tokenizer; llama.cpp's longest has 24.
const PRE_NAME_BYTES: usize = 64;

/// Tokens that mark the parts of a text with a gap: what is before it, what is after it, and where
/// what belongs into it is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InfillTokens {
    pub prefix: i32,
    pub suffix: i32,
    pub middle: i32,
}

/// Tokens around texts and between two of them, where the vocabulary puts one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextBounds {
    pub begin: Option<i32>,
    pub end: Option<i32>,
    pub separator: Option<i32>,
}

impl Model {
    /// The bytes of one token; not always whole UTF-8. Control tokens are empty
    /// unless `special`.
    pub fn token_bytes(&self, token: i32, special: bool) -> Vec<u8> {
        let mut bytes = vec![0_u8; 32];
        loop {
            // SAFETY: the vocabulary lives as long as the model.
            let written = unsafe { shim::token_to_piece(self.vocab(), token, &mut bytes, special) };
            let written = written.unwrap_or_else(|thrown| {
                tracing::warn!("token {token} counts as empty: {thrown}");
                0
            });
            if let Ok(len) = usize::try_from(written) {
                bytes.truncate(len);
                return bytes;
            }
            bytes.resize(written.unsigned_abs() as usize, 0);
        }
    }

    /// Number of tokens in the vocabulary.
    pub fn vocab_size(&self) -> usize {
        // SAFETY: the vocabulary lives as long as the model.
        unsafe { sys::llama_vocab_n_tokens(self.vocab()) as usize }
    }

    /// Whether `token` ends a generation (end of text, end of turn).
    pub fn is_end(&self, token: i32) -> bool {
        // SAFETY: the vocabulary lives as long as the model.
        unsafe { sys::llama_vocab_is_eog(self.vocab(), token) }
    }

    /// `None` when the vocabulary lacks one of them: the model has not learned to fill gaps.
    pub fn infill_tokens(&self) -> Option<InfillTokens> {
        // SAFETY: the vocabulary lives as long as the model.
        let (prefix, suffix, middle) = unsafe {
            let vocab = self.vocab();
            let (prefix, suffix) =
                (sys::llama_vocab_fim_pre(vocab), sys::llama_vocab_fim_suf(vocab));
            (prefix, suffix, sys::llama_vocab_fim_mid(vocab))
        };
        let known = prefix >= 0 && suffix >= 0 && middle >= 0;
        known.then_some(InfillTokens { prefix, suffix, middle })
    }

    /// What the vocabulary puts around texts and between them.
    pub fn text_bounds(&self) -> TextBounds {
        // SAFETY: the vocabulary lives as long as the model.
        unsafe {
            let vocab = self.vocab();
            let [begin, end, separator] = [
                sys::llama_vocab_bos(vocab),
                sys::llama_vocab_eos(vocab),
                sys::llama_vocab_sep(vocab),
            ];
            // Some end texts with what separates them.
            let end = if end >= 0 { end } else { separator };
            let put = |token: i32, puts: bool| (puts && token >= 0).then_some(token);
            TextBounds {
                begin: put(begin, sys::llama_vocab_get_add_bos(vocab)),
                end: put(end, sys::llama_vocab_get_add_eos(vocab)),
                separator: put(separator, sys::llama_vocab_get_add_sep(vocab)),
            }
        }
    }

    /// Texts that become control tokens where they are parsed. Tokens a vocabulary only defines
    /// beside the learned ones, as many do `<think>`, are not among them.
    pub fn control_texts(&self) -> &[String] {
        &self.facts().control
    }

    /// Whether texts get a space put before them, as SentencePiece does: a text cut in two then
    /// has other tokens than the whole.
    pub fn prefixes_space(&self) -> bool {
        // SAFETY: the vocabulary lives as long as the model.
        unsafe { sys::llama_vocab_type(self.vocab()) == sys::LLAMA_VOCAB_TYPE_SPM }
    }

    /// Text of the beginning-of-text token, or empty.
    pub fn begin_text(&self) -> String {
        // SAFETY: the vocabulary lives as long as the model.
        let token = unsafe { sys::llama_vocab_bos(self.vocab()) };
        self.special_text(token)
    }

    /// Text of the end-of-text token, or empty.
    pub fn end_text(&self) -> String {
        // SAFETY: the vocabulary lives as long as the model.
        let token = unsafe { sys::llama_vocab_eos(self.vocab()) };
        self.special_text(token)
    }

    pub(super) fn facts(&self) -> &VocabularyFacts {
        self.facts.get_or_init(|| self.gather())
    }

    fn gather(&self) -> VocabularyFacts {
        let tokens = 0..self.vocab_size() as i32;
        let longest = tokens.clone().map(|token| self.token_bytes(token, true).len()).max();
        let of = |attributes: u32| -> Vec<String> {
            let has = |&token: &i32| {
                // SAFETY: the token is of the vocabulary, which lives as long as the model.
                unsafe { sys::llama_vocab_get_attr(self.vocab(), token) & attributes != 0 }
            };
            let texts = tokens.clone().filter(has).map(|token| self.text(token));
            texts.filter(|text| !text.is_empty()).collect()
        };
        let control = of(sys::LLAMA_TOKEN_ATTR_CONTROL | sys::LLAMA_TOKEN_ATTR_UNKNOWN);
        VocabularyFacts {
            longest_bytes: longest.unwrap_or(0).max(1),
            pre: self.pre_tokenizer(),
            find_control: finder(&control),
            find_user_defined: finder(&of(sys::LLAMA_TOKEN_ATTR_USER_DEFINED)),
            control,
        }
    }

    fn pre_tokenizer(&self) -> String {
        let mut name = [0_u8; PRE_NAME_BYTES];
        // SAFETY: the model is live; the buffer is, with its length, and gets an end.
        let text = unsafe {
            let (key, to) = (c"tokenizer.ggml.pre".as_ptr(), name.as_mut_ptr().cast());
            sys::llama_model_meta_val_str(self.raw(), key, to, name.len());
            CStr::from_ptr(name.as_ptr().cast())
        };
        text.to_string_lossy().into_owned()
    }

    fn special_text(&self, token: i32) -> String {
        if token < 0 {
            return String::new();
        }
        String::from_utf8_lossy(&self.token_bytes(token, true)).into_owned()
    }

    /// A token's text as the vocabulary has it; llama.cpp looks for this one.
    fn text(&self, token: i32) -> String {
        // SAFETY: the token is of the vocabulary; the string lives as long as it does.
        unsafe {
            let text = sys::llama_vocab_get_text(self.vocab(), token);
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}
