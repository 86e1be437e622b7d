//! Which layers look back at a window of tokens only, so that a cache need keep no more for them:
//! llama.cpp's patterns by architecture (`load_arch_hparams` of each). What is not in the table
//! counts as looking at everything, which never counts too little.

use crate::error::SpecError;
use crate::gguf::MetaValue;
use crate::keys::Keys;

/// Where windows are.
pub(crate) struct Windows {
    /// Tokens a layer with a window looks back at; 0 where no layer has one.
    pub(crate) tokens: u64,
    layers: Vec<bool>,
}

/// What an architecture's code says of its layers.
#[derive(Clone, Copy)]
enum Pattern {
    /// Of so many layers the last looks at everything, unless the file has a pattern of its own.
    LastOf(u32),
    /// The same, of which the first does.
    FirstOf(u32),
    /// As the file says.
    Named,
}

/// What an architecture's code says of its window.
#[derive(Clone, Copy)]
enum Tokens {
    /// As the file says; none without.
    Named,
    /// So many where the file has none.
    Else(u64),
    /// So many wherever the file has one.
    Always(u64),
    /// So many unless the file says 0 (`llama4`).
    Unless0(u64),
}

fn known(architecture: &str) -> Option<(Pattern, Tokens)> {
    use Pattern::{FirstOf, LastOf};
    use Tokens::{Always, Else, Unless0};
    Some(match architecture {
        "gpt-oss" => (LastOf(2), Tokens::Named),
        "gemma2" => (LastOf(2), Else(4096)),
        "gemma3" => (LastOf(6), Tokens::Named),
        "afmoe" | "cohere2" | "mellum" | "muse-glimmer" | "olmo2" => (LastOf(4), Tokens::Named),
        "exaone-moe" => (LastOf(4), Else(128)),
        "llama4" => (LastOf(4), Unless0(8192)),
        "cohere2moe" | "laguna" => (FirstOf(4), Tokens::Named),
        "smallthinker" => (FirstOf(4), Always(4096)),
        "gemma4" | "granite_swa" | "maple" | "mimo2" | "spark2_5" | "step35" => {
            (Pattern::Named, Tokens::Named)
        }
        _ => return None,
    })
}

impl Windows {
    /// Of a model with so many `layers`.
    pub(crate) fn read(keys: &Keys<'_>, layers: u32) -> Result<Self, SpecError> {
        let named = keys.count("attention.sliding_window")?;
        let none = Self { tokens: 0, layers: Vec::new() };
        let Some((pattern, tokens)) = known(keys.architecture) else { return Ok(none) };
        let tokens = match tokens {
            Tokens::Named => named.unwrap_or(0),
            Tokens::Else(tokens) => named.unwrap_or(tokens),
            Tokens::Always(tokens) => named.filter(|given| *given > 0).map_or(0, |_| tokens),
            Tokens::Unless0(tokens) => named.filter(|given| *given == 0).unwrap_or(tokens),
        };
        if tokens == 0 {
            return Ok(none);
        }
        let layers = (0..layers).map(|layer| pattern.has_window(keys, layer)).collect();
        Ok(Self { tokens, layers })
    }

    /// Whether `layer` looks at no more.
    pub(crate) fn contains(&self, layer: u32) -> bool {
        self.layers.get(layer as usize).copied().unwrap_or(false)
    }

    /// Whether any does.
    pub(crate) fn any(&self) -> bool {
        self.layers.contains(&true)
    }
}

impl Pattern {
    fn has_window(self, keys: &Keys<'_>, layer: u32) -> bool {
        let given = keys.get("attention.sliding_window_pattern");
        if let Some(MetaValue::Array(array)) = given {
            return array.get_u64(layer as usize).is_some_and(|window| window > 0);
        }
        let period = given.and_then(MetaValue::as_u64);
        let period = |usual: u32| period.unwrap_or(usual.into());
        let at = |period: u64| u64::from(layer).checked_rem(period);
        match self {
            // A period of 0: a window in every layer.
            Self::LastOf(usual) => at(period(usual)).is_none_or(|at| at + 1 < period(usual)),
            Self::FirstOf(usual) => at(period(usual)).is_none_or(|at| at != 0),
            Self::Named => false,
        }
    }
}
