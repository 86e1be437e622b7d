//! Where a model's experts live on a machine. A word that plans, schedulers and reports share;
//! `motley-plan` finds it by placing a model.

use serde::{Deserialize, Serialize};

/// Where experts live and who computes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regime {
    /// Everything is in the memory of one unit.
    OneMemory,
    /// Experts in RAM beside a GPU that holds some of them; both compute.
    Hybrid,
    /// Experts in memory modules that compute, beside a GPU.
    NearData,
    /// All experts on disk, some of them in memory.
    BeyondRam,
}

impl Regime {
    /// As files and flags write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::OneMemory => "one-memory",
            Self::Hybrid => "hybrid",
            Self::NearData => "near-data",
            Self::BeyondRam => "beyond-ram",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_files() {
        #[derive(Serialize, Deserialize)]
        struct File {
            regime: Regime,
        }
        for regime in [Regime::OneMemory, Regime::Hybrid, Regime::NearData, Regime::BeyondRam] {
            let text = toml::to_string(&File { regime }).unwrap();
            assert_eq!(text.trim(), format!("regime = \"{}\"", regime.name()));
            assert_eq!(toml::from_str::<File>(&text).unwrap().regime, regime);
        }
    }
}
