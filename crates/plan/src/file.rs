//! A plan as text: JSON with a version, read within limits. Opens no files.

use crate::decide::decision::{Decision, FORMAT_VERSION};
use crate::predict::Prediction;

/// A plan is prose-sized; anything longer is not one.
pub const MAX_TEXT_BYTES: usize = 256 * 1024;
/// Most GPUs of one machine, and its RAM.
const MAX_MEMORIES: usize = 65;
/// Most threads a plan may ask for.
const MAX_THREADS: u32 = 512;

/// Why text is not a plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Longer than [`MAX_TEXT_BYTES`].
    #[error("{bytes} bytes is too long for a plan (limit {MAX_TEXT_BYTES})")]
    TooLong { bytes: usize },
    /// Not the JSON expected.
    #[error("not a plan: {0}")]
    Json(#[from] serde_json::Error),
    /// A version this crate does not know.
    #[error(
        "plan version {found} is not {FORMAT_VERSION}; write it again with `motley plan --json`"
    )]
    Version { found: u32 },
    /// A number that cannot be.
    #[error("field `{field}` does not fit the rest of the plan")]
    Value {
        /// The field, as in the text.
        field: &'static str,
    },
}

impl Decision {
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
        must((1..=1 << 20).contains(&self.session.chunk_tokens), "chunk_tokens")?;
        must((1..=1 << 30).contains(&self.session.context_tokens), "context_tokens")?;
        let holdings = &self.placement.holdings;
        must((1..=MAX_MEMORIES).contains(&holdings.len()), "holdings")?;
        must(holdings.iter().all(|holding| holding.bytes() <= holding.room_bytes), "room_bytes")?;
        must(self.devices.len() < MAX_MEMORIES, "devices")?;
        must(self.devices.iter().all(|device| (0.0..=1.0).contains(&device.part)), "part")?;
        for threads in [&self.threads.prefill, &self.threads.decode] {
            must((1..=MAX_THREADS).contains(&threads.threads), "threads")?;
            must(threads.cpus.len() <= MAX_THREADS as usize, "cpus")?;
        }
        must(self.placement.experts == self.budget.experts, "experts")?;
        must(self.model.experts == self.budget.experts, "experts")?;
        must(self.placement.ram_slots() <= self.budget.experts.saturating_add(1), "expert_slots")?;
        must(sound(&self.prefill), "prefill")?;
        must(sound(&self.decode), "decode")
    }
}

fn sound(prediction: &Prediction) -> bool {
    let numbers = [prediction.tokens_per_s, prediction.pass_s, prediction.hit_rate];
    let terms = prediction.terms.iter().map(|term| term.seconds);
    numbers.into_iter().chain(terms).all(|number| number.is_finite() && number >= 0.0)
}
