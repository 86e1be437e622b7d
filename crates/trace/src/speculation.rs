//! What became of tokens guessed ahead, as the record of a run keeps it. Counts; measures nothing.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Tokens that were computed before they were known. Wrong ones are in no phase's tokens, but in its
/// times and everything else it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpeculationRecord {
    /// Passes that decoded, with guesses or without.
    pub passes: u64,
    pub guessed: u64,
    /// Guesses that were right.
    pub accepted: u64,
    /// What of it a draft model did; `None` where there was none. The rest was found in the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<DraftRecord>,
}

/// What a draft model guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DraftRecord {
    /// Tokens it gave.
    pub drafted: u64,
    /// Those that were computed.
    pub guessed: u64,
    /// Of these, those that were right.
    pub accepted: u64,
}

impl SpeculationRecord {
    /// Tokens that a pass gave.
    pub fn tokens_per_pass(&self) -> f64 {
        self.per_pass(self.passes + self.accepted)
    }

    fn per_pass(&self, tokens: u64) -> f64 {
        if self.passes > 0 { tokens as f64 / self.passes as f64 } else { 0.0 }
    }
}

impl fmt::Display for SpeculationRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.2} tokens per pass: {:.2} guessed, {:.2} of them right, in {} passes",
            self.tokens_per_pass(),
            self.per_pass(self.guessed),
            self.per_pass(self.accepted),
            self.passes
        )?;
        let Some(draft) = self.draft else { return Ok(()) };
        write!(
            f,
            " ({} of {} found in the text were right, {} of {} drafted; {} more were drafted)",
            self.accepted.saturating_sub(draft.accepted),
            self.guessed.saturating_sub(draft.guessed),
            draft.accepted,
            draft.guessed,
            draft.drafted.saturating_sub(draft.guessed),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_are_told_by_pass() {
        let guessed =
            SpeculationRecord { passes: 40, guessed: 100, accepted: 50, ..Default::default() };
        let said = "2.25 tokens per pass: 2.50 guessed, 1.25 of them right, in 40 passes";
        assert_eq!(guessed.to_string(), said);
        assert_eq!(SpeculationRecord::default().tokens_per_pass(), 0.0);
        let text = serde_json::to_string(&guessed).unwrap();
        assert!(!text.contains("draft"), "{text}");
        assert_eq!(serde_json::from_str::<SpeculationRecord>(&text).unwrap(), guessed);
    }

    #[test]
    fn what_a_draft_model_did_is_told_apart() {
        let draft = DraftRecord { drafted: 70, guessed: 60, accepted: 45 };
        let guessed =
            SpeculationRecord { passes: 40, guessed: 100, accepted: 50, draft: Some(draft) };
        let said = "(5 of 40 found in the text were right, 45 of 60 drafted; 10 more were drafted)";
        assert!(guessed.to_string().ends_with(said), "{guessed}");
        let text = serde_json::to_string(&guessed).unwrap();
        assert_eq!(serde_json::from_str::<SpeculationRecord>(&text).unwrap(), guessed);
    }
}
