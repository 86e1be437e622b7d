//! A plan as text: JSON with a version, read within limits. Opens no files.

use crate::plan::{FORMAT_VERSION, Plan};
use crate::predict::Prediction;

/// A plan is prose-sized; anything longer is not one.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;

/// Why text is not a plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Longer than [`MAX_TEXT_BYTES`].
    #[error("{bytes} bytes is too long for a plan (limit {MAX_TEXT_BYTES})")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// Not the JSON expected.
    #[error("not a plan: {0}")]
    Json(#[from] serde_json::Error),
    /// A version this crate does not know.
    #[error("plan version {found} is not {FORMAT_VERSION}; make it anew with `motley plan --json`")]
    Version {
        /// The version named.
        found: u32,
    },
    /// A number that cannot be.
    #[error("field `{field}` does not fit the rest of the plan")]
    Value {
        /// The field, as in the text.
        field: &'static str,
    },
}

impl Plan {
    /// The plan as indented JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self)
    }

    /// Reads and checks a plan.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(PlanError::TooLong { bytes: text.len() });
        }
        let plan: Self = serde_json::from_str(text)?;
        plan.check()?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), PlanError> {
        if self.version != FORMAT_VERSION {
            return Err(PlanError::Version { found: self.version });
        }
        let must =
            |holds: bool, field| if holds { Ok(()) } else { Err(PlanError::Value { field }) };
        must((1..=1 << 20).contains(&self.chunk_tokens), "chunk_tokens")?;
        must((1..=1 << 30).contains(&self.context_tokens), "context_tokens")?;
        let parts = &self.placement.parts;
        must((1..=2).contains(&parts.len()), "parts")?;
        must(parts.iter().all(|part| part.bytes() <= part.room_bytes), "room_bytes")?;
        must(self.placement.experts == self.budget.experts, "experts")?;
        let slots = self.placement.gpu_slots().checked_add(self.placement.ram_slots());
        must(
            slots.is_some_and(|slots| slots <= self.budget.experts.saturating_add(1)),
            "expert_slots",
        )?;
        must(sound(&self.prefill), "prefill")?;
        must(sound(&self.decode), "decode")
    }
}

fn sound(prediction: &Prediction) -> bool {
    let numbers = [prediction.tokens_per_s, prediction.pass_s, prediction.hit_rate];
    let terms = prediction.terms.iter().map(|term| term.seconds);
    numbers.into_iter().chain(terms).all(|number| number.is_finite() && number >= 0.0)
}
