//! What approximations of one model were measured to cost and to give (`motley eval --compare`), and
//! which of them is the strongest whose price is accepted. Chooses among measurements; makes none up.

use motley_sched::SkipCold;
use serde::{Deserialize, Serialize};

/// Version of the format.
pub const PRICES_VERSION: u32 = 1;

/// Of one model, by one evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// [`PRICES_VERSION`].
    pub motley_prices: u32,
    /// As people know it.
    pub model: String,
    /// All its tensors: tells models of one name apart.
    pub total_bytes: u64,
    /// File name of the text, and tokens of it that were computed.
    pub text: String,
    pub tokens: u64,
    /// Of the model as it is.
    pub decode_per_s: f64,
    pub prices: Vec<Price>,
}

/// Of one setting.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    pub approximation: Approximation,
    /// Part of the experts that memory had room for; what is left out hangs on it.
    pub held: f64,
    /// Divergence from the model as it is, nats per token, and its 95 % interval.
    pub kl: f64,
    pub kl_low: f64,
    pub kl_high: f64,
    /// Perplexity over that of the model as it is.
    pub perplexity_ratio: f64,
    pub decode_per_s: f64,
}

/// How a model is computed otherwise than it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approximation {
    /// Experts per token, where fewer than its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experts_used: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_cold: Option<SkipCold>,
}

impl Approximation {
    /// Whether the model is computed as it says.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// A file of prices that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PricesError {
    #[error("not a file of prices")]
    Json(#[from] serde_json::Error),
    #[error("version {found}; this program reads {PRICES_VERSION}")]
    Version { found: u32 },
}

impl Prices {
    /// Reads what [`Self::to_json`] writes.
    pub fn from_json(text: &str) -> Result<Self, PricesError> {
        let prices: Self = serde_json::from_str(text)?;
        match prices.motley_prices {
            PRICES_VERSION => Ok(prices),
            found => Err(PricesError::Version { found }),
        }
    }

    /// The file.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// The fastest setting whose price is surely at most `accept_kl`: the end of its interval is.
    /// One that is no faster than the model as it is is not worth any price. `held` is the part of
    /// the experts that memory will have room for: with less than where it was measured, more would
    /// be left out than was paid for. `None` where all will be: then nothing is left out.
    pub fn strongest(&self, accept_kl: f64, held: Option<f64>) -> Option<&Price> {
        let is_paid_for = |price: &&Price| match (price.approximation.skip_cold, held) {
            (None, _) => true,
            (Some(_), Some(held)) => held >= price.held * HELD_SLACK,
            (Some(_), None) => false,
        };
        let accepted = self.prices.iter().filter(|price| price.kl_high <= accept_kl);
        let faster = accepted.filter(|price| price.decode_per_s > self.decode_per_s);
        let faster = faster.filter(is_paid_for);
        faster.max_by(|a, b| a.decode_per_s.total_cmp(&b.decode_per_s))
    }

    /// What `approximation` was measured to cost.
    pub fn of(&self, approximation: Approximation) -> Option<&Price> {
        self.prices.iter().find(|price| price.approximation == approximation)
    }
}

/// Rounding of budgets to slots.
const HELD_SLACK: f64 = 0.98;

impl Price {
    /// In words, measured on `text`.
    pub fn said(&self, text: &str) -> String {
        format!(
            "KL {:.4} nats per token ({:.4} to {:.4}), perplexity × {:.4}, as measured on {text}",
            self.kl, self.kl_low, self.kl_high, self.perplexity_ratio
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(experts_used: Option<u32>, skip: Option<&str>, kl: f64, decode_per_s: f64) -> Price {
        let skip_cold = skip.map(|part| part.parse().unwrap());
        Price {
            approximation: Approximation { experts_used, skip_cold },
            held: 0.3,
            kl,
            kl_low: kl * 0.9,
            kl_high: kl * 1.1,
            perplexity_ratio: 1.0 + kl,
            decode_per_s,
        }
    }

    fn prices() -> Prices {
        Prices {
            motley_prices: PRICES_VERSION,
            model: "m".into(),
            total_bytes: 7,
            text: "val.txt".into(),
            tokens: 512,
            decode_per_s: 10.0,
            prices: vec![
                price(Some(3), None, 0.05, 12.0),
                price(None, Some("0.5"), 0.01, 14.0),
                price(None, Some("1"), 0.04, 20.0),
                price(Some(2), None, 0.03, 9.0),
            ],
        }
    }

    #[test]
    fn the_fastest_is_chosen_whose_price_is_accepted_as_a_whole() {
        let prices = prices();
        let chosen = |kl, held| prices.strongest(kl, held).map(|price| price.decode_per_s);
        assert_eq!(chosen(0.1, Some(0.3)), Some(20.0));
        assert_eq!(chosen(0.0405, Some(0.3)), Some(14.0), "the end of the interval counts");
        assert_eq!(chosen(0.1, Some(0.2)), Some(12.0), "with less memory more would be left out");
        assert_eq!(chosen(0.1, Some(0.9)), Some(20.0));
        assert_eq!(chosen(0.1, None), Some(12.0), "in memory nothing is left out");
        assert_eq!(chosen(0.001, Some(0.3)), None);
        assert_eq!(chosen(0.035, None), None, "what is slower is worth nothing");
    }

    #[test]
    fn a_file_comes_back_and_another_version_is_refused() {
        let prices = prices();
        let text = prices.to_json().unwrap();
        assert_eq!(Prices::from_json(&text).unwrap(), prices);
        let other = text.replace("\"motley_prices\": 1", "\"motley_prices\": 9");
        assert!(matches!(Prices::from_json(&other), Err(PricesError::Version { found: 9 })));
        let wanted = Approximation { experts_used: Some(3), skip_cold: None };
        assert_eq!(prices.of(wanted).unwrap().kl, 0.05);
        assert!(prices.of(Approximation::default()).is_none());
        assert!(Approximation::default().is_none());
    }
}
