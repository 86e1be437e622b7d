//! What passes of a model cost on one machine. A run knows what a sum over kernels does not include:
//! barriers, small operations, attention, and cores that share their memory with the disk.

use motley_trace::{Phase, PhaseRecord};
use serde::{Deserialize, Serialize};

/// Costs with all experts in memory and while experts are read, each where it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PassCosts {
    pub cpu: String,
    pub threads: u32,
    /// With everything in memory, rearranged for the processor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident: Option<PhasesCosts>,
    /// With part of the experts on disk, in the file's layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streamed: Option<PhasesCosts>,
}

/// Both phases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhasesCosts {
    pub prefill: PhaseCosts,
    pub decode: PhaseCosts,
}

/// One phase.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseCosts {
    /// Everything outside routed experts, for one token.
    pub dense_us: f64,
    /// One layer's block beside computing and waiting: routing, orders, arriving loads.
    pub block_us: f64,
    /// Experts: their time over what the machine's calibration says.
    pub expert_factor: f64,
    /// Rate of the disk while it worked, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_gb_per_s: Option<f64>,
    /// Share of the needed experts that were predicted a layer ahead, where that was measured.
    #[serde(default, alias = "foreseen", skip_serializing_if = "Option::is_none")]
    pub predicted: Option<f64>,
}

impl PassCosts {
    /// Whether every number is one.
    pub fn is_sound(&self) -> bool {
        let phases = [self.resident, self.streamed].into_iter().flatten();
        phases.flat_map(|costs| [costs.prefill, costs.decode]).all(|phase| phase.is_sound())
    }

    /// The costs of a phase; those with everything in memory where none else are known.
    pub fn of(&self, phase: Phase, is_streamed: bool) -> Option<PhaseCosts> {
        let known = self.streamed.filter(|_| is_streamed).or(self.resident)?;
        Some(match phase {
            Phase::Prefill => known.prefill,
            Phase::Decode => known.decode,
        })
    }
}

impl PhaseCosts {
    /// From what a run spent, when `experts` experts should have taken `expected_us` each.
    /// `None` when the run did too little to measure.
    pub fn of(record: &PhaseRecord, experts: u64, expected_us: f64) -> Option<Self> {
        let per = |seconds: f64, count: u64| 1e6 * seconds / count.max(1) as f64;
        let costs = Self {
            dense_us: per(record.dense_s(), record.tokens),
            block_us: per(record.overhead_s(), record.blocks),
            expert_factor: per(record.compute_s, experts) / expected_us,
            disk_gb_per_s: Some(record.disk_bytes_per_s() / 1e9).filter(|rate| *rate > 0.0),
            predicted: None,
        };
        (record.tokens > 0 && experts > 0 && costs.is_sound()).then_some(costs)
    }

    fn is_sound(&self) -> bool {
        let above = [self.dense_us, self.expert_factor, self.disk_gb_per_s.unwrap_or(1.0)];
        above.iter().all(|value| value.is_finite() && *value > 0.0)
            && self.block_us.is_finite()
            && self.block_us >= 0.0
            && self.predicted.is_none_or(|share| (0.0..=1.0).contains(&share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> PhaseRecord {
        PhaseRecord {
            tokens: 10,
            time_s: 1.0,
            blocks: 20,
            blocks_s: 0.7,
            compute_s: 0.4,
            stall_s: 0.1,
            experts: 40,
            disk_bytes: 3_000_000_000,
            disk_busy_s: 1.5,
            ..PhaseRecord::default()
        }
    }

    #[test]
    fn a_record_is_divided_among_its_parts() {
        let costs = PhaseCosts::of(&record(), 40, 5_000.0).unwrap();
        assert!(
            (costs.dense_us - 30_000.0).abs() < 1e-6 && (costs.block_us - 10_000.0).abs() < 1e-6
        );
        assert!((costs.expert_factor - 2.0).abs() < 1e-9);
        assert_eq!(costs.disk_gb_per_s, Some(2.0));
    }

    #[test]
    fn what_was_not_measured_is_absent() {
        assert_eq!(PhaseCosts::of(&PhaseRecord::default(), 40, 5.0), None);
        assert_eq!(PhaseCosts::of(&record(), 0, 5.0), None);
        let costs = PhaseCosts::of(&record(), 40, 5_000.0).unwrap();
        let phases = Some(PhasesCosts { prefill: costs, decode: costs });
        let passes = PassCosts { cpu: "c".into(), threads: 2, resident: phases, streamed: None };
        assert_eq!(passes.of(Phase::Decode, true), Some(costs));
        let passes = PassCosts { resident: None, streamed: phases, ..passes };
        assert_eq!(passes.of(Phase::Decode, false), None);
        let broken = PhaseCosts { dense_us: f64::NAN, ..costs };
        let phases = Some(PhasesCosts { prefill: broken, decode: costs });
        assert!(passes.is_sound() && !PassCosts { streamed: phases, ..passes }.is_sound());
    }
}
