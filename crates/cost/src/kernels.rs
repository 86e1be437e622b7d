//! How the CPU computes experts, as far as costs differ: where weights lie, and what multiplies
//! them.

use serde::{Deserialize, Serialize};

/// How weights lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WeightLayout {
    /// In the file's own order: experts streamed into an arena.
    Plain,
    /// Rows interleaved for the CPU's vector instructions.
    Repacked,
    /// In tiles for the CPU's matrix instructions; every expert by itself.
    Amx,
}

impl WeightLayout {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Repacked => "repacked",
            Self::Amx => "amx",
        }
    }

    /// Whether blocks of one expert are the only way to compute with it.
    pub fn is_apart(self) -> bool {
        self == Self::Amx
    }
}

/// How the rows of a block are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelWay {
    /// One `MUL_MAT_ID` over all of them.
    Whole,
    /// One `MUL_MAT` for the rows of each expert.
    Blocks,
    /// The same with weights that lie plain and are rearranged for the CPU's kernels each time.
    Rearranged,
}

impl KernelWay {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Whole, Self::Blocks, Self::Rearranged];

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Blocks => "blocks",
            Self::Rearranged => "rearranged",
        }
    }
}
