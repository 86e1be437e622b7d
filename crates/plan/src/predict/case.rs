//! What is predicted: a model in a placement on a machine. Holds what is known of it.

use motley_machine::Regime;
use motley_profile::{PhaseCosts, Profile};
use motley_trace::Phase;

use crate::calibration::{Calibration, UnitRates};
use crate::demand::Demand;
use crate::placement::Placement;

/// What is predicted.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    pub demand: &'a Demand,
    pub calibration: &'a Calibration,
    pub placement: &'a Placement,
    /// The model's routing, where known.
    pub profile: Option<&'a Profile>,
    /// Tokens already in the KV cache, on average.
    pub context_tokens: u32,
    /// Draw while computing, where known.
    pub busy_w: Option<f64>,
}

impl Case<'_> {
    /// What a run of the model here spent on a phase; nothing where a GPU computes too.
    pub(crate) fn known(&self, phase: Phase) -> Option<PhaseCosts> {
        let costs = self.profile?.header.passes.as_ref()?;
        let is_streamed = self.placement.regime == Regime::BeyondRam;
        costs.of(phase, is_streamed).filter(|_| !self.placement.dense_on_gpu)
    }
}

/// What a pass over so many tokens is.
pub(super) fn phase_of(tokens: u32) -> Phase {
    if tokens > 1 { Phase::Prefill } else { Phase::Decode }
}

/// The unit that computes dense layers, and experts too unless they are apart.
pub(crate) fn dense_unit<'a>(case: &Case<'a>) -> &'a UnitRates {
    let gpu = case.calibration.gpu.as_ref().filter(|_| case.placement.dense_on_gpu);
    gpu.unwrap_or(&case.calibration.cpu)
}
