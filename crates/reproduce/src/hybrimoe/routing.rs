//! Routing for the comparison: synthetic, with the one statistic the source publishes as its anchor.

use motley_sched::cache::lru::Lru;
use motley_sched::cache::{CachePolicy, Capacity, ExpertCache};
use motley_sim::replay::replay;
use motley_sim::synth::{Synth, SynthParams};
use motley_trace::Trace;

use super::models::Model;
use crate::compared::cut::as_prompt;
use crate::error::ReproduceError;

/// Tokens from which the frequency of experts is counted before anything is measured.
const COUNTED: u32 = 256;
/// Tokens decoded.
const DECODED: u32 = 192;
/// The longest prompt.
const LONGEST: u32 = 1024;
const SEED: u64 = 11;

/// One model's routing, cut into parts of one stream of tokens.
#[derive(Debug, Clone)]
pub struct Routing {
    /// Activations counted over the first tokens, dense by grid index.
    pub uses: Vec<u64>,
    /// Tokens decoded one by one.
    pub decode: Trace,
    /// The tokens after them, for prompts.
    rest: Trace,
    /// Share of experts kept on purpose from token to token, as found.
    pub repeat: f64,
}

impl Routing {
    /// Synthetic routing whose LRU hit rate at a quarter of the experts is the published one; `repeat`
    /// is searched for, everything else stays.
    pub fn for_model(model: &Model, skew: f64) -> Result<Self, ReproduceError> {
        let (mut low, mut high) = (0.0, 0.95);
        for _ in 0..7 {
            let middle = 0.5 * (low + high);
            let hits =
                Self::synthetic(model, skew, middle, DECODED)?.hits(Box::new(Lru::new()), 0.25)?;
            if hits < model.lru_quarter { low = middle } else { high = middle }
        }
        Self::synthetic(model, skew, 0.5 * (low + high), DECODED + LONGEST)
    }

    fn synthetic(
        model: &Model,
        skew: f64,
        repeat: f64,
        tokens: u32,
    ) -> Result<Self, ReproduceError> {
        let params = SynthParams {
            model: model.name.into(),
            layers: model.layers,
            experts: model.experts,
            k: model.top_k,
            prompt_tokens: 0,
            decode_tokens: COUNTED + tokens,
            zipf_skew: skew,
            repeat,
            recall: 0.3,
            layer_correlation: 0.3,
            weight_tilt: 0.3,
        };
        let all = Trace::collect(&mut Synth::new(params, SEED)?)?;
        let uses = all.uses_before(u64::from(COUNTED));
        let decoded = u64::from(COUNTED)..u64::from(COUNTED + DECODED);
        let part = |wanted: &dyn Fn(u64) -> bool| Trace {
            header: all.header.clone(),
            visits: all.visits.iter().filter(|visit| wanted(visit.pass)).cloned().collect(),
        };
        let decode = part(&|pass| decoded.contains(&pass));
        let rest = part(&|pass| pass >= decoded.end);
        Ok(Self { uses, decode, rest, repeat })
    }

    /// Hit rate of the decoded tokens under a policy, with `share` of each layer cached.
    pub fn hits(&self, policy: Box<dyn CachePolicy>, share: f64) -> Result<f64, ReproduceError> {
        let grid = self.decode.header.grid();
        let capacity = Capacity::per_layer_share(grid, share);
        let mut cache = ExpertCache::new(grid, capacity, policy);
        Ok(replay(&mut self.decode.source(), &mut cache, 0)?.decode.rate())
    }

    /// The first `tokens` of the decoded ones.
    pub fn decoded(&self, tokens: u32) -> Trace {
        let layers = usize::from(self.decode.header.layers);
        let visits = self.decode.visits.iter().take(layers * tokens as usize);
        Trace { header: self.decode.header.clone(), visits: visits.cloned().collect() }
    }

    /// The first tokens after the decoded ones as one prompt in one pass.
    pub fn prompt(&self, tokens: u32) -> Trace {
        as_prompt(&self.rest, tokens)
    }
}
