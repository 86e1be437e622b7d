//! A model as comparisons see it: its true shape, and statistics of how it routes. Figures come from
//! the comparison.

use motley_cost::ExpertShape;
use motley_sim::shape::{Dense, ModelShape};
use motley_sim::synth::SynthParams;

/// A model and how it routes.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    /// Its name with the quantisation.
    pub name: &'static str,
    /// Layers with routed experts.
    pub layers: u16,
    /// Routed experts per layer.
    pub experts: u16,
    /// Experts per token.
    pub k: u16,
    /// Width of a hidden row.
    pub hidden: u32,
    /// Width inside a routed expert.
    pub width: u32,
    /// One routed expert, mean over the layers.
    pub expert_bytes: u64,
    /// Attention, router and shared experts of one layer.
    pub layer: Dense,
    /// Output head and layers without experts.
    pub ends: Dense,
    /// Statistics of its routing.
    pub routing: RoutingStatistics,
}

/// Parameters of synthetic routing, fitted to a recorded trace (`motley sim --trace … --curves`, table
/// "Synthetic routing, fitted" of the report on cache policies).
#[derive(Debug, Clone, Copy)]
pub struct RoutingStatistics {
    /// The recorded trace.
    pub fitted_to: &'static str,
    /// Exponent of popularity.
    pub zipf_skew: f64,
    /// Experts used again on purpose.
    pub repeat: f64,
    /// Tokens of a recent kind.
    pub recall: f64,
    /// Choices that follow the token's kind.
    pub layer_correlation: f64,
    /// How much likelier the heaviest expert is kept.
    pub weight_tilt: f64,
}

impl Model {
    /// As the simulator sees it.
    pub fn shape(&self) -> ModelShape {
        let expert =
            ExpertShape { hidden: self.hidden, intermediate: self.width, bytes: self.expert_bytes };
        ModelShape {
            name: self.name.to_owned(),
            layers: self.layers,
            experts: self.experts,
            k: self.k,
            expert,
            dense_layer: self.layer,
            ends: self.ends,
        }
    }

    /// Parameters of `tokens` of its routing, one by one, with the skew of its popularity
    /// times `skew_factor`.
    pub fn synth_params(&self, tokens: u32, skew_factor: f64) -> SynthParams {
        let routing = self.routing;
        SynthParams {
            model: self.name.to_owned(),
            layers: self.layers,
            experts: self.experts,
            k: self.k,
            prompt_tokens: 0,
            decode_tokens: tokens,
            zipf_skew: routing.zipf_skew * skew_factor,
            repeat: routing.repeat,
            recall: routing.recall,
            layer_correlation: routing.layer_correlation,
            weight_tilt: routing.weight_tilt,
        }
    }
}
