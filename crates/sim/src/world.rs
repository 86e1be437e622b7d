//! How long things really take in a simulated world: the truth beside the scheduler's estimate.
//! Decides nothing; with a seed, everything in it repeats.

use motley_cost::Nanos;
use motley_sched::{Costs, Phase, Share, Unit};

use crate::faults::{FaultStream, Faults};
use crate::hosts::Hosts;
use crate::predictions::PredictionParams;

/// Time of everything that is not a routed expert.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DenseCost {
    /// Attention, norms, router and shared experts of one layer: fixed part.
    pub layer_us: f64,
    /// The same: part of each token.
    pub layer_per_token_us: f64,
    /// Embedding, output head and sampling of one pass.
    pub pass_us: f64,
}

impl DenseCost {
    pub(crate) fn before_layer(&self, tokens: u32) -> Nanos {
        Nanos::from_us(self.layer_us + self.layer_per_token_us * f64::from(tokens))
    }

    pub(crate) fn after_pass(&self, _tokens: u32) -> Nanos {
        Nanos::from_us(self.pass_us)
    }
}

/// What things cost in one phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Truth {
    /// Routed experts.
    pub costs: Costs,
    /// Everything else.
    pub dense: DenseCost,
}

/// A simulated machine running one model.
#[derive(Debug)]
pub struct World {
    /// The phase under way.
    phase: Phase,
    decode: Truth,
    prefill: Truth,
    /// How well the coming layers are predicted.
    pub predictions: PredictionParams,
    faults: FaultStream,
    /// Other machines that compute experts.
    pub(crate) hosts: Option<Hosts>,
}

/// A computation to be timed; the fields are those of the action.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ComputeWork {
    pub(crate) unit: Unit,
    pub(crate) tokens: u32,
    pub(crate) share: Share,
    pub(crate) enters: Option<u32>,
}

/// How a transfer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoadOutcome {
    pub(crate) took: Nanos,
    pub(crate) ok: bool,
}

impl World {
    /// A world without faults and predictions.
    pub fn new(costs: Costs, dense: DenseCost) -> Self {
        let truth = Truth { costs, dense };
        let faults = FaultStream::new(Faults::default(), 0);
        let predictions = PredictionParams::default();
        let phase = Phase::Decode;
        Self { phase, decode: truth.clone(), prefill: truth, predictions, faults, hosts: None }
    }

    /// The same world with costs of its own for prompts, as measured runs have them.
    pub fn with_prefill(self, prefill: Truth) -> Self {
        Self { prefill, ..self }
    }

    /// The same world with faults drawn from `seed`.
    pub fn with_faults(self, faults: Faults, seed: u64) -> Self {
        Self { faults: FaultStream::new(faults, seed), ..self }
    }

    /// The same world with predictions.
    pub fn with_predictions(self, predictions: PredictionParams) -> Self {
        Self { predictions, ..self }
    }

    /// The same world with other machines.
    pub fn with_hosts(self, hosts: Hosts) -> Self {
        Self { hosts: Some(hosts), ..self }
    }

    pub(crate) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// What things cost in the phase under way.
    fn now(&self) -> &Truth {
        match self.phase {
            Phase::Prefill => &self.prefill,
            Phase::Decode => &self.decode,
        }
    }

    pub(crate) fn dense(&self) -> &DenseCost {
        &self.now().dense
    }

    pub(crate) fn load(&mut self, tier: u16, share: Share) -> LoadOutcome {
        let fault = self.faults.next_load();
        let took = self.now().costs.load_time(tier, share);
        let took = Nanos::from_us(took.as_us() * fault.slower);
        LoadOutcome { took, ok: fault.ok }
    }

    pub(crate) fn compute(&mut self, work: ComputeWork) -> Nanos {
        let ComputeWork { unit, tokens, share, enters } = work;
        let slower = self.faults.next_compute();
        let costs = &self.now().costs;
        let time = costs.unit_time(unit, tokens, share);
        let entry = enters.map_or(Nanos::ZERO, |tokens| costs.entry_time(unit, tokens));
        entry + Nanos::from_us(time.as_us() * slower)
    }
}
