//! Metadata of one architecture, looked up by the end of a key. Knows what kinds of values there are,
//! not what they mean.

use crate::error::SpecError;
use crate::gguf::{MetaValue, Metadata};

/// Metadata of one architecture: keys are looked up as `<architecture>.<key>`.
pub(crate) struct Keys<'a> {
    metadata: &'a Metadata,
    /// `general.architecture`.
    pub(crate) architecture: &'a str,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(metadata: &'a Metadata) -> Result<Self, SpecError> {
        let architecture = metadata
            .get("general.architecture")
            .and_then(MetaValue::as_str)
            .ok_or(SpecError::Missing { key: "general.architecture".into() })?;
        Ok(Self { metadata, architecture })
    }

    /// The value of `<architecture>.<key>`.
    pub(crate) fn get(&self, key: &str) -> Option<&'a MetaValue> {
        self.metadata.get(&self.full(key))
    }

    /// `<architecture>.<key>`.
    pub(crate) fn full(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    /// A count, if the file says it.
    pub(crate) fn count(&self, key: &str) -> Result<Option<u64>, SpecError> {
        self.per_layer(key, 0)
    }

    /// A count that must be there.
    pub(crate) fn required(&self, key: &str) -> Result<u64, SpecError> {
        self.count(key)?.ok_or_else(|| SpecError::Missing { key: self.full(key) })
    }

    /// A count that must be there and not exceed `limit`.
    pub(crate) fn bounded(&self, key: &str, limit: u64) -> Result<Option<u32>, SpecError> {
        match self.count(key)? {
            Some(value) if value > limit => {
                Err(SpecError::TooLarge { key: self.full(key), value, limit })
            }
            value => Ok(value.map(|value| value as u32)),
        }
    }

    /// A count that is one number for all layers or an array with one for each.
    pub(crate) fn per_layer(&self, key: &str, layer: u32) -> Result<Option<u64>, SpecError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let count = match value {
            MetaValue::Array(array) => array.get_u64(layer as usize),
            scalar => scalar.as_u64(),
        };
        // A value that must fit 32 bits in llama.cpp keeps every product below 2^64 here.
        match count.and_then(|count| u32::try_from(count).ok()) {
            Some(count) => Ok(Some(count.into())),
            None => Err(SpecError::NotACount { key: self.full(key) }),
        }
    }

    /// A real number, if the file says it.
    pub(crate) fn real(&self, key: &str) -> Option<f64> {
        self.get(key).and_then(MetaValue::as_f64)
    }

    /// A truth value, if the file says it.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        self.get(key).and_then(MetaValue::as_bool)
    }

    /// Vocabulary: the key, or the length of the token list.
    pub(crate) fn vocabulary(&self) -> Result<Option<u64>, SpecError> {
        let tokens = self.metadata.get("tokenizer.ggml.tokens").and_then(MetaValue::as_array);
        Ok(self.count("vocab_size")?.or(tokens.map(|tokens| tokens.len() as u64)))
    }
}
