//! How experts were read from disk in a run, as its record keeps it. Data only.

use serde::{Deserialize, Serialize};

/// How experts were streamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamingRecord {
    /// Which experts stayed, by name.
    pub policy: String,
    /// What was read early, by name.
    pub prefetch: String,
    /// Experts that could stay.
    pub cache_slots: u32,
    /// The fewest that could, while memory was scarce.
    #[serde(default)]
    pub cache_slots_least: Option<u32>,
    /// Below which part of an even share experts were left out in place of being read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip_cold: Option<f64>,
    /// Slots beside them.
    pub staging_slots: u16,
    /// Of those, slots guesses could hold.
    pub prefetch_slots: u16,
    /// Loads in flight at once.
    pub loads_in_flight: u16,
    /// Guesses read at once.
    pub guesses_in_flight: u16,
    /// Share of predicted experts that were then routed, when there were predictions.
    #[serde(alias = "foreseen")]
    pub predicted: Option<f64>,
}
