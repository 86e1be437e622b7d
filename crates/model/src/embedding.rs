//! How a model makes one vector, or one score, of a whole text: what files of embedding models and
//! rerankers say, in llama.cpp's numbers (`llama_pooling_type`).

use crate::keys::Keys;
use serde::Serialize;

/// Of which of a text's rows its vector is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// The mean of all.
    Mean,
    /// The first.
    First,
    /// The last.
    Last,
    /// A classifier's scores of one of them: how well a text answers a query.
    Rank,
}

impl Pooling {
    /// By llama.cpp's number; `None` of a model that was not made for it.
    fn of(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::Mean),
            2 => Some(Self::First),
            3 => Some(Self::Last),
            4 => Some(Self::Rank),
            _ => None,
        }
    }

    /// llama.cpp's number.
    pub fn number(self) -> u32 {
        match self {
            Self::Mean => 1,
            Self::First => 2,
            Self::Last => 3,
            Self::Rank => 4,
        }
    }

    /// As people know it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::First => "first",
            Self::Last => "last",
            Self::Rank => "rank",
        }
    }
}

/// What a model makes of a text in place of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Embedding {
    pub pooling: Pooling,
    /// Whether tokens see those before them only; otherwise all see all.
    pub causal: bool,
}

impl Embedding {
    /// As the file says; `None` of a model that answers. `has_classifier`: one that ranks cannot
    /// without.
    pub(crate) fn read(keys: &Keys<'_>, has_classifier: bool) -> Option<Self> {
        let number = keys.get("pooling_type").and_then(crate::gguf::MetaValue::as_u64)?;
        let pooling = Pooling::of(number)?;
        let causal = keys.flag("attention.causal").unwrap_or(true);
        (pooling != Pooling::Rank || has_classifier).then_some(Self { pooling, causal })
    }

    /// Whether a text can be computed in pieces: its vector is then that of the last piece.
    pub fn in_pieces(self) -> bool {
        self.causal && matches!(self.pooling, Pooling::Last | Pooling::Rank)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gguf::{MetaValue, Metadata};

    fn read(pooling: impl Into<MetaValue>, causal: Option<bool>) -> Option<Embedding> {
        let mut metadata = Metadata::new();
        metadata.insert("general.architecture", "qwen3moe");
        metadata.insert("qwen3moe.pooling_type", pooling);
        if let Some(causal) = causal {
            metadata.insert("qwen3moe.attention.causal", causal);
        }
        Embedding::read(&Keys::new(&metadata).unwrap(), false)
    }

    #[test]
    fn a_file_says_of_which_rows_a_vector_is_made() {
        for (number, pooling) in [(1u32, Pooling::Mean), (2, Pooling::First), (3, Pooling::Last)] {
            let embedding = read(number, None).unwrap();
            assert_eq!((embedding.pooling, embedding.pooling.number()), (pooling, number));
            assert_eq!(embedding.in_pieces(), pooling == Pooling::Last);
        }
        assert!(!read(3u32, Some(false)).unwrap().in_pieces(), "every token sees the last");
        // None, unknown, unspecified as llama.cpp writes it, and no classifier.
        for number in [0u32, 9, u32::MAX, 4] {
            assert_eq!(read(number, None), None, "{number}");
        }
        assert_eq!(read("last", None), None);
    }
}
