//! A profile from routing, visit by visit. Memory depends on layers × experts, never on the
//! length of the text.

use motley_trace::{Phase, TraceError, TraceHeader, Visit, VisitSource};

use crate::profile::{FORMAT_VERSION, LayerCounts, Origin, Profile, ProfileHeader};
use crate::reuse::ReuseBuilder;

/// Accumulates a [`Profile`].
#[derive(Clone, Debug)]
pub struct ProfileBuilder {
    header: TraceHeader,
    layers: Vec<LayerCounts>,
    reuse: ReuseBuilder,
    /// Tokens of each layer, prefill and decode; the busiest layer has as many as there were.
    tokens: Vec<[u64; 2]>,
    unique: Vec<u16>,
}

impl ProfileBuilder {
    /// Nothing observed yet.
    pub fn new(header: &TraceHeader) -> Self {
        let empty = |layer| LayerCounts::empty(layer, header.experts);
        Self {
            header: header.clone(),
            layers: (0..header.layers).map(empty).collect(),
            reuse: ReuseBuilder::new(header.grid()),
            tokens: vec![[0; 2]; usize::from(header.layers)],
            unique: Vec::new(),
        }
    }

    /// Adds one visit, which must be valid for the header ([`Visit::check`]).
    pub fn observe(&mut self, visit: &Visit) {
        let layer = &mut self.layers[usize::from(visit.layer)];
        let decode = visit.phase == Phase::Decode;
        let counts = if decode { &mut layer.decode } else { &mut layer.prefill };
        visit.experts.iter().for_each(|expert| counts[usize::from(*expert)] += 1);
        self.tokens[usize::from(visit.layer)][usize::from(decode)] += visit.tokens() as u64;
        // One pass needs an expert once, however many tokens chose it.
        self.unique.clear();
        self.unique.extend_from_slice(&visit.experts);
        self.unique.sort_unstable();
        self.unique.dedup();
        for &expert in &self.unique {
            self.reuse.touch(visit.key(expert), decode);
        }
    }

    /// The profile of what has been observed. The builder fills in the tokens of `origin`.
    pub fn finish(self, origin: Origin) -> Profile {
        let most = |phase: usize| self.tokens.iter().map(|t| t[phase]).max().unwrap_or(0);
        let origin = Origin { prefill_tokens: most(0), decode_tokens: most(1), ..origin };
        let TraceHeader { model, layers, experts, k, .. } = self.header;
        let header = ProfileHeader {
            version: FORMAT_VERSION,
            model,
            layers,
            experts,
            k,
            origin,
            reuse: self.reuse.finish(),
            held: Vec::new(),
            passes: None,
            chosen: None,
            overlaps: Vec::new(),
        };
        Profile { header, layers: self.layers }
    }
}

impl Profile {
    /// The profile of everything `source` yields.
    pub fn collect(source: &mut dyn VisitSource, origin: Origin) -> Result<Self, TraceError> {
        let mut builder = ProfileBuilder::new(source.header());
        let mut visit = Visit::default();
        while source.read_visit(&mut visit)? {
            builder.observe(&visit);
        }
        Ok(builder.finish(origin))
    }
}
