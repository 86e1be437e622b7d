//! What one run did, in figures: where its time went, what was hit and read, and under which
//! settings. With the run's routing trace beside it, the simulator can run it again (M1).
//! Written by drivers, read by `sim` and `explain`; measures nothing itself.

use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

use crate::speculation::SpeculationRecord;
use crate::streaming::StreamingRecord;
use crate::worker::WorkerRecord;

/// Version of the format.
pub const RUN_VERSION: u32 = 1;
/// Largest file that is read: a record is a page of text.
pub const MAX_RUN_BYTES: usize = 1 << 20;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRecord {
    /// [`RUN_VERSION`].
    pub motley_run: u32,
    pub model: String,
    /// Layers with routed experts.
    pub expert_layers: u32,
    /// Bytes of one routed expert, of the largest layer.
    pub expert_bytes: u64,
    pub threads: u32,
    /// Ceiling for memory, when one was set.
    pub memory_bytes: Option<u64>,
    /// Layouts of routed experts in memory, with the number of tensors; empty where the file's
    /// order was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layouts: Vec<(String, usize)>,
    /// Settings of streaming; `None` when llama.cpp held all experts.
    pub streaming: Option<StreamingRecord>,
    /// What devices computed of the experts; `None` when none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedRecord>,
    /// Other machines that computed experts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<WorkerRecord>,
    pub prefill: PhaseRecord,
    pub decode: PhaseRecord,
    /// What became of tokens guessed ahead; `None` where none could be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speculation: Option<SpeculationRecord>,
    /// Choosing tokens, in neither phase's time.
    #[serde(default)]
    pub sampling_s: f64,
    /// What it used; `None` where nothing measures it and nobody said what the machine draws.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<EnergyRecord>,
}

/// Energy of a run (M7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnergyRecord {
    pub source: EnergySource,
    pub prefill_joules: f64,
    pub decode_joules: f64,
    /// Of decoding; `None` when no token was.
    pub joules_per_token: Option<f64>,
    /// What the plan expected of that, where it knew what the machine draws.
    pub predicted_joules_per_token: Option<f64>,
}

/// How energy is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnergySource {
    /// Read from the meters of this name.
    Meter(String),
    /// The draw the plan expected, over the time the run took.
    Model,
}

impl EnergyRecord {
    fn is_possible(&self) -> bool {
        let per_token = [self.joules_per_token, self.predicted_joules_per_token];
        let sums = [self.prefill_joules, self.decode_joules];
        let mut all = sums.into_iter().chain(per_token.into_iter().flatten());
        all.all(|joules| joules.is_finite() && joules >= 0.0)
    }
}

impl fmt::Display for EnergyRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(joules) = self.joules_per_token {
            write!(f, "{} J/token to decode, ", three_digits(joules))?;
        }
        write!(f, "{} J for prompts, by ", three_digits(self.prefill_joules))?;
        match &self.source {
            EnergySource::Meter(name) => write!(f, "meter {name}"),
            EnergySource::Model => f.write_str("model"),
        }
    }
}

/// A figure that may be of any size, for people.
fn three_digits(value: f64) -> String {
    let decimals = (2.0 - value.max(1e-6).log10().floor()).max(0.0) as usize;
    format!("{value:.decimals$}")
}

/// Experts shared with devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedRecord {
    /// Experts that could stay on devices.
    pub cache_slots: u32,
    /// (token, expert) pairs routed.
    pub routed_pairs: u64,
    /// Of them computed by devices.
    pub device_pairs: u64,
    /// Experts brought over the link, guesses included.
    pub copies: u64,
}

/// Sums over the passes of one phase. Times are wall-clock seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseRecord {
    pub tokens: u64,
    /// Of everything.
    pub time_s: f64,
    /// Routed-expert blocks run.
    pub blocks: u64,
    /// Of the time: inside those blocks.
    pub blocks_s: f64,
    /// Of the blocks' time: experts being computed.
    pub compute_s: f64,
    /// Of the blocks' time: waiting for the disk with nothing to compute.
    pub stall_s: f64,
    /// Of the blocks' time: rows of other machines or static graphs begun and waited for.
    #[serde(default)]
    pub first_unit_s: f64,
    /// Experts computed, each once per block.
    pub experts: u64,
    /// Tokens through them.
    pub expert_tokens: u64,
    /// Pairs of token and expert that were left out, and their weight in even shares: a pair of mean
    /// weight counts 1.
    #[serde(default)]
    pub left_out_pairs: u64,
    #[serde(default)]
    pub left_out_weight: f64,
    /// Experts that were in a slot when routed.
    pub hits: u64,
    /// Experts that were there thanks to a guess.
    pub guessed_hits: u64,
    pub guessed_loads: u64,
    /// Bytes of experts read from disk.
    pub disk_bytes: u64,
    /// Time the disk was busy with them.
    pub disk_busy_s: f64,
    /// Blocks computed expert by expert (W2), and what their time was spent on, as the mean over
    /// threads: ggml's kernels; gathering and scattering rows, and rearranging weights for them; waiting for
    /// other threads.
    #[serde(default)]
    pub in_blocks: u64,
    #[serde(default)]
    pub kernels_s: f64,
    #[serde(default)]
    pub moving_s: f64,
    #[serde(default)]
    pub waiting_s: f64,
    /// Of the time: a draft model, which follows prompts and guesses tokens.
    #[serde(default)]
    pub draft_s: f64,
}

impl PhaseRecord {
    /// Tokens per second; 0 before the first.
    pub fn tokens_per_s(&self) -> f64 {
        ratio(self.tokens as f64, self.time_s)
    }

    /// Time outside the blocks: attention, norms, routers, the output head.
    pub fn dense_s(&self) -> f64 {
        (self.time_s - self.blocks_s - self.draft_s).max(0.0)
    }

    /// Time inside the blocks in which neither was computed nor waited.
    pub fn overhead_s(&self) -> f64 {
        (self.blocks_s - self.compute_s - self.stall_s - self.first_unit_s).max(0.0)
    }

    /// Share of routed experts that were resident, guesses included.
    pub fn hit_rate(&self) -> f64 {
        ratio((self.hits + self.guessed_hits) as f64, self.experts as f64)
    }

    /// Bytes per busy second; 0 when nothing was read.
    pub fn disk_bytes_per_s(&self) -> f64 {
        ratio(self.disk_bytes as f64, self.disk_busy_s)
    }

    /// Share of the time the disk was busy.
    pub fn disk_busy_share(&self) -> f64 {
        ratio(self.disk_busy_s, self.time_s)
    }

    /// Shares of routed pairs that were left out, and of their weight.
    pub fn left_out(&self) -> (f64, f64) {
        let all = (self.expert_tokens + self.left_out_pairs) as f64;
        (ratio(self.left_out_pairs as f64, all), ratio(self.left_out_weight, all))
    }

    /// Both phases' sums.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            tokens: self.tokens + other.tokens,
            time_s: self.time_s + other.time_s,
            blocks: self.blocks + other.blocks,
            blocks_s: self.blocks_s + other.blocks_s,
            compute_s: self.compute_s + other.compute_s,
            stall_s: self.stall_s + other.stall_s,
            first_unit_s: self.first_unit_s + other.first_unit_s,
            experts: self.experts + other.experts,
            expert_tokens: self.expert_tokens + other.expert_tokens,
            left_out_pairs: self.left_out_pairs + other.left_out_pairs,
            left_out_weight: self.left_out_weight + other.left_out_weight,
            hits: self.hits + other.hits,
            guessed_hits: self.guessed_hits + other.guessed_hits,
            guessed_loads: self.guessed_loads + other.guessed_loads,
            disk_bytes: self.disk_bytes + other.disk_bytes,
            disk_busy_s: self.disk_busy_s + other.disk_busy_s,
            in_blocks: self.in_blocks + other.in_blocks,
            kernels_s: self.kernels_s + other.kernels_s,
            moving_s: self.moving_s + other.moving_s,
            waiting_s: self.waiting_s + other.waiting_s,
            draft_s: self.draft_s + other.draft_s,
        }
    }

    fn is_possible(&self) -> bool {
        let times = [self.time_s, self.blocks_s, self.compute_s, self.stall_s, self.disk_busy_s];
        let parts = [
            self.kernels_s,
            self.moving_s,
            self.waiting_s,
            self.first_unit_s,
            self.draft_s,
            self.left_out_weight,
        ];
        times.iter().chain(&parts).all(|time| time.is_finite() && *time >= 0.0)
    }
}

/// Why a file is not a record of a run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// Longer than any record.
    #[error("{found} bytes are more than a record of a run can have ({MAX_RUN_BYTES})")]
    TooLong { found: usize },
    /// Not JSON, or not this JSON.
    #[error("not a record of a run; `motley run --stats FILE` writes one")]
    Json(#[from] serde_json::Error),
    /// Another version.
    #[error("record version {found}; this program reads {RUN_VERSION}")]
    Version { found: u32 },
    /// A time that cannot be.
    #[error("a time of the {phase} is negative or not a number")]
    Time { phase: &'static str },
    /// Energy that cannot be.
    #[error("the energy is negative or not a number")]
    Energy,
}

impl RunRecord {
    /// Reads a record.
    pub fn parse(text: &str) -> Result<Self, RunError> {
        if text.len() > MAX_RUN_BYTES {
            return Err(RunError::TooLong { found: text.len() });
        }
        let record: Self = serde_json::from_str(text)?;
        if record.motley_run != RUN_VERSION {
            return Err(RunError::Version { found: record.motley_run });
        }
        for (phase, figures) in [("prefill", &record.prefill), ("decode", &record.decode)] {
            if !figures.is_possible() {
                return Err(RunError::Time { phase });
            }
        }
        if !(record.sampling_s.is_finite() && record.sampling_s >= 0.0) {
            return Err(RunError::Time { phase: "sampling" });
        }
        if !record.energy.as_ref().is_none_or(EnergyRecord::is_possible) {
            return Err(RunError::Energy);
        }
        Ok(record)
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn energy() -> EnergyRecord {
        EnergyRecord {
            source: EnergySource::Meter("RAPL package-0".into()),
            prefill_joules: 40.0,
            decode_joules: 4.1,
            joules_per_token: Some(0.4104),
            predicted_joules_per_token: None,
        }
    }

    fn record() -> RunRecord {
        let decode = PhaseRecord {
            tokens: 10,
            time_s: 2.0,
            blocks: 20,
            blocks_s: 1.5,
            compute_s: 0.5,
            stall_s: 0.75,
            experts: 80,
            expert_tokens: 80,
            hits: 30,
            guessed_hits: 10,
            disk_bytes: 4_000,
            disk_busy_s: 1.0,
            ..PhaseRecord::default()
        };
        RunRecord {
            motley_run: RUN_VERSION,
            model: "m".into(),
            expert_layers: 2,
            expert_bytes: 100,
            threads: 2,
            memory_bytes: None,
            shared: None,
            workers: Vec::new(),
            layouts: vec![("amx".into(), 3)],
            streaming: None,
            prefill: PhaseRecord::default(),
            decode,
            speculation: None,
            sampling_s: 0.0,
            energy: Some(energy()),
        }
    }

    #[test]
    fn figures_follow_from_sums() {
        let decode = record().decode;
        assert_eq!(
            (decode.tokens_per_s(), decode.dense_s(), decode.overhead_s()),
            (5.0, 0.5, 0.25)
        );
        assert_eq!((decode.hit_rate(), decode.disk_busy_share()), (0.5, 0.5));
        assert_eq!(decode.disk_bytes_per_s(), 4_000.0);
        assert_eq!(PhaseRecord::default().tokens_per_s(), 0.0);
        assert_eq!(decode.plus(&decode).experts, 160);
    }

    #[test]
    fn a_record_is_read_back_and_others_are_refused() {
        let text = serde_json::to_string(&record()).unwrap();
        assert_eq!(RunRecord::parse(&text).unwrap(), record());
        // A number that JSON readers in a hurry miss by its last bit.
        let exact = RunRecord { sampling_s: 0.985_690_694_632_869_5, ..record() };
        assert_eq!(RunRecord::parse(&serde_json::to_string(&exact).unwrap()).unwrap(), exact);
        let refused = |text: &str| RunRecord::parse(text).unwrap_err().to_string();
        assert!(
            refused(&text.replace("\"motley_run\":1", "\"motley_run\":9")).contains("version 9")
        );
        assert!(refused(&text.replace("\"time_s\":2.0", "\"time_s\":-2.0")).contains("decode"));
        assert!(
            refused(&text.replace("\"prefill_joules\":", "\"prefill_joules\":-"))
                .contains("energy")
        );
        assert!(refused("{}").contains("--stats"));
        assert!(refused(&" ".repeat(MAX_RUN_BYTES + 1)).contains("bytes"));
    }

    #[test]
    fn records_without_guesses_are_read() {
        let guessed = SpeculationRecord { passes: 40, guessed: 100, ..Default::default() };
        let speculated = RunRecord { speculation: Some(guessed), ..record() };
        let text = serde_json::to_string(&speculated).unwrap();
        assert_eq!(RunRecord::parse(&text).unwrap(), speculated);
        let older = serde_json::to_string(&record()).unwrap().replace(",\"draft_s\":0.0", "");
        assert!(!older.contains("speculation") && !older.contains("draft"), "{older}");
        assert_eq!(RunRecord::parse(&older).unwrap().speculation, None);
    }

    #[test]
    fn the_time_of_a_draft_model_is_not_of_dense_layers() {
        let decode = PhaseRecord { draft_s: 0.25, ..record().decode };
        assert_eq!((decode.dense_s(), decode.plus(&decode).draft_s), (0.25, 0.5));
        let drafted = RunRecord { decode, ..record() };
        let text = serde_json::to_string(&drafted).unwrap();
        assert_eq!(RunRecord::parse(&text).unwrap(), drafted);
        assert!(RunRecord::parse(&text.replace("\"draft_s\":0.25", "\"draft_s\":-1")).is_err());
    }

    #[test]
    fn energy_says_how_it_is_known_and_records_without_it_are_read() {
        let said = "0.410 J/token to decode, 40.0 J for prompts, by meter RAPL package-0";
        assert_eq!(energy().to_string(), said);
        let none_decoded = EnergyRecord {
            source: EnergySource::Model,
            prefill_joules: 1234.5,
            joules_per_token: None,
            ..energy()
        };
        assert_eq!(none_decoded.to_string(), "1234 J for prompts, by model");
        let older = RunRecord { energy: None, ..record() };
        let text = serde_json::to_string(&older).unwrap();
        assert!(!text.contains("energy"), "{text}");
        assert_eq!(RunRecord::parse(&text).unwrap(), older);
    }
}
