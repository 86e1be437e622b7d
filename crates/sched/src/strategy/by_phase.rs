//! One strategy for prompts, another for decoding: the two phases have little in common. A
//! prompt has many tokens for each expert and may move whole layers; a decoded token has one, and
//! its misses are cheapest where they are.

use super::Strategy;
use crate::work::{LayerPlan, LayerWork, Phase};

/// Hands each layer to the strategy of its phase.
pub struct ByPhase {
    prefill: Box<dyn Strategy>,
    decode: Box<dyn Strategy>,
    /// Phase of the last planned layer.
    phase: Phase,
}

impl ByPhase {
    /// These two.
    pub fn new(prefill: Box<dyn Strategy>, decode: Box<dyn Strategy>) -> Self {
        Self { prefill, decode, phase: Phase::default() }
    }
}

impl Strategy for ByPhase {
    fn name(&self) -> &'static str {
        "by-phase"
    }

    fn plan(&mut self, work: &LayerWork<'_>, plan: &mut LayerPlan) {
        self.phase = work.phase;
        match work.phase {
            Phase::Prefill => self.prefill.plan(work, plan),
            Phase::Decode => self.decode.plan(work, plan),
        }
    }

    fn keeps_loaded(&self) -> bool {
        match self.phase {
            Phase::Prefill => self.prefill.keeps_loaded(),
            Phase::Decode => self.decode.keeps_loaded(),
        }
    }
}
