//! The two records of a routing trace, header and visit, and what makes them valid.
//! Not the file handling: see `read` and `write`.
//!
//! A trace is JSON-lines. The first line is the header, every other line one *visit*: one layer
//! of one forward pass with all its tokens, in the order of execution.
//!
//! ```text
//! {"motley_trace":1,"model":"Qwen3-30B-A3B","layers":48,"experts":128,"k":6}
//! {"p":0,"l":0,"f":"p","t":[0,1],"e":[49,19,58,29,16,70, 66,3,9,21,40,5],"w":[0.22,…]}
//! {"p":1,"l":0,"t":[2],"e":[79,102,114,19,54,46],"w":[…],"g":[…]}
//! ```
//!
//! | key | field      | length         | omitted means           |
//! |-----|------------|----------------|-------------------------|
//! | `p` | pass       | 1              | never omitted           |
//! | `l` | layer      | 1              | never omitted           |
//! | `f` | phase      | 1              | `"d"`, decode           |
//! | `s` | sequences  | tokens         | every token of sequence 0 |
//! | `t` | positions  | tokens         | never omitted           |
//! | `e` | experts    | tokens × k     | never omitted           |
//! | `w` | weights    | tokens × k     | not known               |
//! | `g` | scores     | tokens × experts | not known             |

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::key::{ExpertGrid, ExpertKey};
use crate::line_file::FileHeader;

/// Version of the format this crate writes and reads.
pub const FORMAT_VERSION: u32 = 1;
/// Most layers a header may name.
pub const MAX_LAYERS: u16 = 1024;
/// Most experts per layer a header may name.
pub const MAX_EXPERTS: u16 = 4096;
/// Most experts per token a header may name.
pub const MAX_EXPERTS_PER_TOKEN: u16 = 64;
/// Most tokens in one visit.
pub const MAX_TOKENS_PER_VISIT: usize = 65_536;
/// Longest model name, in bytes.
pub const MAX_MODEL_NAME_BYTES: usize = 1024;

/// First line of a trace: what the visits refer to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// Format version, [`FORMAT_VERSION`].
    #[serde(rename = "motley_trace")]
    pub version: u32,
    /// For people.
    pub model: String,
    /// Layers; a visit's layer is below it. Layers without experts simply have no visits.
    pub layers: u16,
    /// Routed experts per layer.
    pub experts: u16,
    /// Experts per token.
    pub k: u16,
}

impl TraceHeader {
    /// Layers × experts.
    pub fn grid(&self) -> ExpertGrid {
        ExpertGrid { layers: self.layers, experts: self.experts }
    }

    /// Checks the header against the limits of the format.
    pub fn check(&self) -> Result<(), Problem> {
        check_limit("layers", self.layers, MAX_LAYERS)?;
        check_limit("experts", self.experts, MAX_EXPERTS)?;
        check_limit("k", self.k, MAX_EXPERTS_PER_TOKEN.min(self.experts))?;
        if self.model.len() > MAX_MODEL_NAME_BYTES {
            return Err(Problem::Length {
                field: "model",
                found: self.model.len(),
                expected: MAX_MODEL_NAME_BYTES,
            });
        }
        Ok(())
    }
}

impl FileHeader for TraceHeader {
    const VERSION: u32 = FORMAT_VERSION;
    const OTHER_VERSION: &'static str = "convert it with the motley that wrote it";

    fn version(&self) -> u32 {
        self.version
    }
}

fn check_limit(field: &'static str, found: u16, limit: u16) -> Result<(), Problem> {
    if (1..=limit).contains(&found) {
        Ok(())
    } else {
        Err(Problem::Range { field, found: u64::from(found), limit: u64::from(limit) })
    }
}

/// Whether a visit belongs to reading the prompt or to writing the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// The prompt, many tokens in one pass.
    #[serde(rename = "p")]
    Prefill,
    /// One token per sequence and pass.
    #[default]
    #[serde(rename = "d")]
    Decode,
}

/// One layer of one forward pass: every token's experts. All of them are needed together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Visit {
    /// Number of the forward pass; never falls within a trace.
    #[serde(rename = "p")]
    pub pass: u64,
    #[serde(rename = "l")]
    pub layer: u16,
    #[serde(rename = "f", default, skip_serializing_if = "is_decode")]
    pub phase: Phase,
    /// Sequence (conversation, turn) of each token; empty when all are of sequence 0.
    #[serde(rename = "s", default, skip_serializing_if = "Vec::is_empty")]
    pub sequences: Vec<u32>,
    /// Position of each token in its sequence.
    #[serde(rename = "t")]
    pub positions: Vec<u32>,
    /// Chosen experts, `(tokens, k)` row-major, each row without repetition.
    #[serde(rename = "e")]
    pub experts: Vec<u16>,
    /// Weight of each chosen expert, `(tokens, k)`; empty when not known.
    #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<f32>,
    /// Router scores of all experts, `(tokens, experts)`; empty when not known.
    #[serde(rename = "g", default, skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<f32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_decode(phase: &Phase) -> bool {
    *phase == Phase::Decode
}

impl Visit {
    /// Number of tokens.
    pub fn tokens(&self) -> usize {
        self.positions.len()
    }

    /// Sequence of token `row`.
    pub fn sequence(&self, row: usize) -> u32 {
        self.sequences.get(row).copied().unwrap_or(0)
    }

    /// Each token's experts. `k` is the header's.
    pub fn rows(&self, k: u16) -> impl Iterator<Item = &[u16]> {
        self.experts.chunks_exact(usize::from(k).max(1))
    }

    /// The key of `expert` in this visit's layer.
    pub fn key(&self, expert: u16) -> ExpertKey {
        ExpertKey::new(self.layer, expert)
    }

    /// Checks the visit against its header. The order of passes is the reader's to check.
    pub fn check(&self, header: &TraceHeader) -> Result<(), Problem> {
        if self.layer >= header.layers {
            let limit = u64::from(header.layers) - 1;
            return Err(Problem::Range { field: "l", found: u64::from(self.layer), limit });
        }
        let tokens = self.tokens();
        if tokens == 0 || tokens > MAX_TOKENS_PER_VISIT {
            let limit = MAX_TOKENS_PER_VISIT as u64;
            return Err(Problem::Range { field: "t", found: tokens as u64, limit });
        }
        let chosen = tokens * usize::from(header.k);
        check_length("e", self.experts.len(), chosen, false)?;
        check_length("s", self.sequences.len(), tokens, true)?;
        check_length("w", self.weights.len(), chosen, true)?;
        check_length("g", self.scores.len(), tokens * usize::from(header.experts), true)?;
        self.rows(header.k).try_for_each(|row| check_row(row, header.experts))?;
        check_finite("w", &self.weights)?;
        check_finite("g", &self.scores)
    }
}

fn check_length(
    field: &'static str,
    found: usize,
    expected: usize,
    optional: bool,
) -> Result<(), Problem> {
    if found == expected || (optional && found == 0) {
        Ok(())
    } else {
        Err(Problem::Length { field, found, expected })
    }
}

fn check_row(row: &[u16], experts: u16) -> Result<(), Problem> {
    for (slot, &expert) in row.iter().enumerate() {
        if expert >= experts {
            let limit = u64::from(experts) - 1;
            return Err(Problem::Range { field: "e", found: u64::from(expert), limit });
        }
        if row[..slot].contains(&expert) {
            return Err(Problem::RepeatedExpert { expert });
        }
    }
    Ok(())
}

fn check_finite(field: &'static str, values: &[f32]) -> Result<(), Problem> {
    if values.iter().all(|value| value.is_finite()) {
        Ok(())
    } else {
        Err(Problem::NotFinite { field })
    }
}

/// What is wrong with a record, without where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// A number outside its limits.
    #[error("field `{field}` is {found}, the limit is {limit}")]
    Range { field: &'static str, found: u64, limit: u64 },
    /// An array (or name) of the wrong length.
    #[error("field `{field}` has {found} entries, expected {expected}")]
    Length {
        field: &'static str,
        found: usize,
        /// The length that fits the header and the other fields.
        expected: usize,
    },
    /// A token that chooses one expert twice.
    #[error("expert {expert} is chosen twice by one token")]
    RepeatedExpert { expert: u16 },
    /// An infinite weight or score.
    #[error("field `{field}` holds a number that is not finite")]
    NotFinite { field: &'static str },
    /// A pass number below its predecessor's.
    #[error("pass {found} comes after pass {previous}")]
    PassOrder { found: u64, previous: u64 },
    /// A column of a foreign format that cannot be read.
    #[error("column `{column}` cannot be read")]
    Column {
        /// The column, as the format names it.
        column: &'static str,
    },
    /// A foreign file that lacks its preamble.
    #[error("the preamble lacks `{name}`")]
    Preamble { name: &'static str },
}
