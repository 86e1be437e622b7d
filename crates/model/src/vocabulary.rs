//! Whether two models have one vocabulary, so that the tokens of one are those of the other. Compares
//! headers; how texts become tokens is somebody else's.

use crate::gguf::{MetaArray, MetaValue, Metadata, StringArray};

const TOKENS: &str = "tokenizer.ggml.tokens";
const TYPES: &str = "tokenizer.ggml.token_type";
/// Tokens that begin and end texts and turns, by the keys that name them.
const SPECIAL: [&str; 3] =
    ["tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"];
/// Most characters of a token that a message shows.
const SHOWN_CHARS: usize = 24;

/// The first difference between two vocabularies; `one` and `other` in the order they were given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OtherVocabulary {
    #[error("{one} tokens and {other}")]
    Count { one: usize, other: usize },
    #[error("token {token} is {one:?} and {other:?}")]
    Text { token: usize, one: String, other: String },
    /// Written by people, by a template, a byte…
    #[error("token {token} is of type {one} and {other}")]
    Type { token: usize, one: String, other: String },
    #[error("{key} is {one} and {other}")]
    Special { key: &'static str, one: String, other: String },
}

/// Whether the metadata `one` and `other` say the same of every token.
pub fn same_vocabulary(one: &Metadata, other: &Metadata) -> Result<(), OtherVocabulary> {
    let empty = StringArray::new();
    let [ours, theirs] = [one, other].map(|metadata| texts(metadata).unwrap_or(&empty));
    if ours.len() != theirs.len() {
        return Err(OtherVocabulary::Count { one: ours.len(), other: theirs.len() });
    }
    if let Some(token) = ours.iter().zip(theirs.iter()).position(|(a, b)| a != b) {
        let [one, other] = [ours, theirs].map(|texts| shown(texts.get(token).unwrap_or(&[])));
        return Err(OtherVocabulary::Text { token, one, other });
    }
    for token in 0..ours.len() {
        let [one, other] = [one, other].map(|metadata| type_of(metadata, token));
        if one != other {
            let [one, other] = [one, other].map(number);
            return Err(OtherVocabulary::Type { token, one, other });
        }
    }
    for key in SPECIAL {
        let [one, other] = [one, other].map(|data| data.get(key).and_then(MetaValue::as_u64));
        if one != other {
            let [one, other] = [one, other].map(number);
            return Err(OtherVocabulary::Special { key, one, other });
        }
    }
    Ok(())
}

fn texts(metadata: &Metadata) -> Option<&StringArray> {
    match metadata.get(TOKENS)? {
        MetaValue::Array(MetaArray::String(texts)) => Some(texts),
        _ => None,
    }
}

fn type_of(metadata: &Metadata, token: usize) -> Option<u64> {
    metadata.get(TYPES)?.as_array()?.get_u64(token)
}

fn number(number: Option<u64>) -> String {
    number.map_or("not given".into(), |number| number.to_string())
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).chars().take(SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(tokens: &[&str]) -> Metadata {
        let mut metadata = Metadata::new();
        metadata.insert(TOKENS, tokens.iter().collect::<StringArray>());
        metadata.insert(TYPES, vec![1i32; tokens.len()]);
        metadata.insert(SPECIAL[0], 1u32);
        metadata
    }

    fn difference(change: impl FnOnce(&mut Metadata)) -> String {
        let mut other = metadata(&["a", "b", "c"]);
        change(&mut other);
        let found = same_vocabulary(&metadata(&["a", "b", "c"]), &other);
        found.map_or_else(|error| error.to_string(), |()| "none".into())
    }

    #[test]
    fn the_first_difference_is_named() {
        assert_eq!(difference(|_| ()), "none");
        assert_eq!(difference(|other| *other = metadata(&["a", "b"])), "3 tokens and 2");
        let texts = |other: &mut Metadata| *other = metadata(&["a", "x", "c"]);
        assert_eq!(difference(texts), r#"token 1 is "b" and "x""#);
        let types = |other: &mut Metadata| drop(other.insert(TYPES, vec![1i32, 1, 3]));
        assert_eq!(difference(types), "token 2 is of type 1 and 3");
        let special = |other: &mut Metadata| drop(other.insert(SPECIAL[1], 2u32));
        assert_eq!(difference(special), "tokenizer.ggml.eos_token_id is not given and 2");
        assert_eq!(difference(|other| drop(other.remove(TOKENS))), "3 tokens and 0");
    }
}
