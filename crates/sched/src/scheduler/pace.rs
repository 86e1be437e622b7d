//! When the coming layers will be routed, from how long the last ones took. Counts time it is
//! told; reads no clock.

use motley_cost::Nanos;

use crate::work::Phase;

/// Part of the newest span in the mean.
const NEWEST: f64 = 0.25;

/// The time from one routed layer to the next, averaged.
#[derive(Debug)]
pub struct Pace {
    layers: u16,
    layer: u16,
    phase: Phase,
    routed_at: Option<Nanos>,
    /// Mean span of a layer in this phase.
    span: Option<Nanos>,
}

impl Pace {
    /// Before the first layer of a model with that many.
    pub fn new(layers: u16) -> Self {
        Self { layers, layer: 0, phase: Phase::default(), routed_at: None, span: None }
    }

    /// A layer is routed. Spans between phases count for neither, nor those over skipped layers.
    pub fn on_routed(&mut self, now: Nanos, layer: u16, phase: Phase) {
        let follows = self.layers_until(layer) == 1;
        match self.routed_at {
            Some(last) if follows && phase == self.phase => {
                let newest = now.since(last).0 as f64;
                let mean = self
                    .span
                    .map_or(newest, |span| NEWEST * newest + (1.0 - NEWEST) * span.0 as f64);
                self.span = Some(Nanos(mean as u64));
            }
            _ if phase != self.phase => self.span = None,
            _ => {}
        }
        (self.layer, self.phase, self.routed_at) = (layer, phase, Some(now));
    }

    /// How many layers from the one being run to the next turn of `layer`: 1 to all of them.
    pub fn layers_until(&self, layer: u16) -> u16 {
        if layer > self.layer { layer - self.layer } else { self.layers + layer - self.layer }
    }

    /// How long after `layer` is routed it will be `then`; zero when before, or nothing is known.
    pub fn late_by(&self, then: Nanos, layer: u16) -> Nanos {
        let (Some(routed_at), Some(span)) = (self.routed_at, self.span) else { return Nanos::ZERO };
        let needed = Nanos(span.0.saturating_mul(u64::from(self.layers_until(layer))));
        then.since(routed_at + needed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coming_layers_are_a_mean_span_apart() {
        let mut pace = Pace::new(4);
        assert_eq!(pace.late_by(Nanos(1_000), 1), Nanos::ZERO, "nothing is known yet");
        for (now, layer) in [(0, 0), (100, 1), (200, 2)] {
            pace.on_routed(Nanos(now), layer, Phase::Decode);
        }
        assert_eq!([3, 0, 1, 2].map(|layer| pace.layers_until(layer)), [1, 2, 3, 4]);
        assert_eq!(pace.late_by(Nanos(330), 3), Nanos(30));
        assert_eq!(pace.late_by(Nanos(330), 0), Nanos::ZERO);
    }

    #[test]
    fn another_phase_begins_anew() {
        let mut pace = Pace::new(2);
        pace.on_routed(Nanos(0), 0, Phase::Prefill);
        pace.on_routed(Nanos(9_000), 1, Phase::Prefill);
        pace.on_routed(Nanos(9_100), 0, Phase::Decode);
        assert_eq!(pace.late_by(Nanos(99_000), 1), Nanos::ZERO);
        pace.on_routed(Nanos(9_200), 1, Phase::Decode);
        assert_eq!(pace.late_by(Nanos(9_350), 0), Nanos(50));
    }
}
