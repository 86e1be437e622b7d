//! llama.cpp's grammars: what a sampler may say next, as GBNF or made from a JSON
//! schema. A grammar that cannot be had is an error, never an exception or an abort.

use super::model::Model;
use llama_cpp_sys_2 as sys;
use std::ffi::{CStr, CString};
use std::ptr::NonNull;
use std::sync::Arc;

/// Why there is no grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrammarError {
    /// The schema says something grammars cannot.
    #[error("the JSON schema cannot be turned into a grammar")]
    Schema,
    /// The GBNF is malformed, or larger than llama.cpp takes.
    #[error("the grammar is malformed or too large")]
    Grammar,
}

/// llama.cpp's own limit. It writes grammars beyond it to stderr, whole; they are found
/// here first, because a grammar may hold what a user wrote.
const REPEATS_MAX: u64 = 2000;

/// The GBNF of every JSON text that `schema` allows.
pub fn schema_grammar(schema: &str) -> Result<String, GrammarError> {
    let schema = CString::new(schema).map_err(|_| GrammarError::Schema)?;
    let mut text = std::ptr::null_mut();
    // SAFETY: the schema is live, `text` receives an owned string or stays null; C++
    // exceptions end inside the call.
    let status =
        unsafe { sys::llama_rs_json_schema_to_grammar(schema.as_ptr(), true, &raw mut text) };
    if text.is_null() || status != sys::LLAMA_RS_STATUS_OK {
        return Err(GrammarError::Schema);
    }
    // SAFETY: the string is ours and ends with NUL; it is freed once, here.
    unsafe {
        let grammar = CStr::from_ptr(text).to_string_lossy().into_owned();
        sys::llama_rs_string_free(text);
        Ok(grammar)
    }
}

/// A grammar with its state: how much of it has been said.
pub struct Grammar {
    raw: NonNull<sys::llama_sampler>,
    /// The sampler points at the model's vocabulary.
    _model: Arc<Model>,
}

// SAFETY: owned state; what is reached through `&self` only reads it.
unsafe impl Send for Grammar {}

impl Grammar {
    /// Reads GBNF whose first rule is `root`.
    pub fn new(model: &Arc<Model>, gbnf: &str) -> Result<Self, GrammarError> {
        let gbnf = CString::new(gbnf).map_err(|_| GrammarError::Grammar)?;
        // An empty text would make a sampler without a grammar.
        if gbnf.is_empty() || repeats_more_than(REPEATS_MAX, gbnf.as_bytes()) {
            return Err(GrammarError::Grammar);
        }
        // SAFETY: the vocabulary lives as long as the model, which is kept; exceptions
        // end inside the call.
        let raw = unsafe {
            sys::llama_rs_sampler_init_grammar(model.vocab(), gbnf.as_ptr(), c"root".as_ptr())
        };
        let raw = NonNull::new(raw).ok_or(GrammarError::Grammar)?;
        Ok(Self { raw, _model: Arc::clone(model) })
    }

    /// Whether `token` may come next.
    pub(crate) fn allows(&mut self, token: i32) -> bool {
        let mut one = [sys::llama_token_data { id: token, logit: 1.0, p: 0.0 }];
        self.mask(&mut one);
        one[0].logit > f32::NEG_INFINITY
    }

    /// Makes what may not come next impossible.
    pub(crate) fn mask(&mut self, tokens: &mut [sys::llama_token_data]) {
        let mut array = sys::llama_token_data_array {
            data: tokens.as_mut_ptr(),
            size: tokens.len(),
            selected: -1,
            sorted: false,
        };
        // SAFETY: the array describes live memory for the length of the call.
        unsafe { sys::llama_sampler_apply(self.raw.as_ptr(), &raw mut array) }
    }

    /// `token` was said; `false` when the grammar does not know it.
    pub(crate) fn accept(&mut self, token: i32) -> bool {
        // SAFETY: the sampler is live; exceptions end inside the call.
        unsafe { sys::llama_rs_sampler_accept(self.raw.as_ptr(), token) == sys::LLAMA_RS_STATUS_OK }
    }
}

impl Drop for Grammar {
    fn drop(&mut self) {
        // SAFETY: made once, freed once.
        unsafe { sys::llama_sampler_free(self.raw.as_ptr()) }
    }
}

/// Whether a `{n}` or `{n,m}` outside of literals and classes is larger than `most`.
fn repeats_more_than(most: u64, gbnf: &[u8]) -> bool {
    let mut closing = None;
    let mut bytes = gbnf.iter().copied();
    let mut number = 0_u64;
    while let Some(byte) = bytes.next() {
        match (closing, byte) {
            (Some(_), b'\\') => drop(bytes.next()),
            (Some(close), byte) if byte == close => closing = None,
            (Some(b'}'), b'0'..=b'9') => {
                number = number.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
                if number > most {
                    return true;
                }
            }
            (Some(b'}'), _) => number = 0,
            (Some(_), _) => {}
            (None, b'"') => closing = Some(b'"'),
            (None, b'[') => closing = Some(b']'),
            (None, b'{') => (closing, number) = (Some(b'}'), 0),
            (None, _) => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_repetitions_count() {
        for fine in ["a{3,2000}", "\"{9999}\"", "[{9999}]", "\"\\\"{9999}\"", "a{,}", "9999"] {
            assert!(!repeats_more_than(2000, fine.as_bytes()), "{fine}");
        }
        for large in ["a{2001}", "a{0,2001}", "\"a\" [b] ( c ){99999999999999999999999,}"] {
            assert!(repeats_more_than(2000, large.as_bytes()), "{large}");
        }
    }

    #[test]
    fn a_schema_becomes_a_grammar() {
        let schema =
            r#"{"type":"object","properties":{"age":{"type":"integer"}},"required":["age"]}"#;
        let grammar = schema_grammar(schema).unwrap();
        assert!(grammar.contains("root ::="), "{grammar}");
        assert!(grammar.contains("age"), "{grammar}");
    }

    #[test]
    fn what_is_no_schema_is_an_error() {
        for schema in ["", "{", "[1,", r##"{"$ref":"#/nowhere"}"##, "{\"type\":\"elephant\"}"] {
            assert_eq!(schema_grammar(schema), Err(GrammarError::Schema), "{schema:?}");
        }
        assert_eq!(schema_grammar("{}\0"), Err(GrammarError::Schema));
    }
}
