//! Time of one expert on one unit. Not its result, and not when it runs.

use serde::{Deserialize, Serialize};

use crate::fit::{Fit, FitError, Residuals, usable};
use crate::nnls::nnls;
use crate::time::Nanos;

/// Time of one expert's block for `n` tokens:
///
/// ```text
/// t(n) = launch + max(n · per_token, floor),   floor = bytes / bandwidth
/// ```
///
/// Below the knee `n = floor / per_token` the unit waits for weights, above it computes (H1:
/// constant on a GPU, growing with the load on a CPU; W4: the knee is the block size).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComputeCost {
    /// Fixed cost of starting.
    pub launch_us: f64,
    /// Arithmetic of one token.
    pub per_token_us: f64,
    /// Reading the expert's weights once.
    pub floor_us: f64,
}

/// One measurement: `tokens` through one expert took `took_us`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComputeSample {
    /// Tokens in the block.
    pub tokens: u32,
    /// Time of the block.
    pub took_us: f64,
}

impl ComputeCost {
    /// A cost that ignores the load.
    pub fn constant(us: f64) -> Self {
        Self { launch_us: 0.0, per_token_us: 0.0, floor_us: us }
    }

    /// `t(tokens)` in microseconds; nothing to do costs nothing.
    pub fn us(&self, tokens: u32) -> f64 {
        if tokens == 0 {
            return 0.0;
        }
        self.launch_us + (f64::from(tokens) * self.per_token_us).max(self.floor_us)
    }

    /// `t(tokens)`.
    pub fn time(&self, tokens: u32) -> Nanos {
        Nanos::from_us(self.us(tokens))
    }

    /// The same work at another speed: launch stays, the rest is multiplied.
    pub fn scaled(&self, factor: f64) -> Self {
        Self { per_token_us: self.per_token_us * factor, floor_us: self.floor_us * factor, ..*self }
    }

    /// Fits launch, slope and floor. For every candidate knee `m` among the sample sizes,
    /// `t = launch + per_token · max(n, m)` is linear; the knee with the least error wins.
    pub fn fit(samples: &[ComputeSample]) -> Result<Fit<Self>, FitError> {
        Self::fit_weighted(samples, |_| 1.0, |residuals| residuals.rms)
    }

    /// The same with every sample's error counted relative to its time, so that one token and
    /// a block of hundreds weigh alike: what a plan needs for decode and prefill at once.
    pub fn fit_relative(samples: &[ComputeSample]) -> Result<Fit<Self>, FitError> {
        Self::fit_weighted(samples, |s| 1.0 / s.took_us, |residuals| residuals.mean_relative)
    }

    fn fit_weighted(
        samples: &[ComputeSample],
        weight: impl Fn(&ComputeSample) -> f64,
        error: impl Fn(&Residuals) -> f64,
    ) -> Result<Fit<Self>, FitError> {
        usable(samples.iter().map(|s| (f64::from(s.tokens), s.took_us)))?;
        let mut knees: Vec<u32> = samples.iter().map(|s| s.tokens).collect();
        knees.sort_unstable();
        knees.dedup();
        // The largest size as a knee would leave the slope without a single sample.
        knees.pop();
        let fits = knees.into_iter().map(|knee| Self::fit_with_knee(samples, knee, &weight));
        let best = fits.min_by(|a, b| error(&a.residuals).total_cmp(&error(&b.residuals)));
        best.ok_or(FitError::TooFew { found: 1 })
    }

    fn fit_with_knee(
        samples: &[ComputeSample],
        knee: u32,
        weight: &impl Fn(&ComputeSample) -> f64,
    ) -> Fit<Self> {
        let row = |s: &ComputeSample| vec![weight(s), weight(s) * f64::from(s.tokens.max(knee))];
        let rows: Vec<_> = samples.iter().map(row).collect();
        let took: Vec<_> = samples.iter().map(|s| weight(s) * s.took_us).collect();
        let x = nnls(&rows, &took);
        let floor_us = x[1] * f64::from(knee);
        let model = Self { launch_us: x[0], per_token_us: x[1], floor_us };
        let pairs = samples.iter().map(|s| (s.took_us, model.us(s.tokens)));
        Fit { model, residuals: Residuals::over(pairs) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn samples(cost: ComputeCost, tokens: &[u32]) -> Vec<ComputeSample> {
        tokens.iter().map(|&tokens| ComputeSample { tokens, took_us: cost.us(tokens) }).collect()
    }

    #[test]
    fn waits_for_weights_then_computes() {
        let cost = ComputeCost { launch_us: 5.0, per_token_us: 2.0, floor_us: 20.0 };
        assert_eq!([0, 1, 10, 11].map(|n| cost.us(n)), [0.0, 25.0, 25.0, 27.0]);
    }

    #[test]
    fn a_cpu_like_and_a_gpu_like_curve_are_recovered() {
        let sizes = [1, 2, 4, 8, 16, 32, 64, 128];
        for knee in [1.0, 4.0, 32.0] {
            let truth = ComputeCost { launch_us: 9.0, per_token_us: 1.5, floor_us: 1.5 * knee };
            let fit = ComputeCost::fit(&samples(truth, &sizes)).unwrap();
            assert!(fit.residuals.worst_relative < 1e-6, "{fit:?}");
            assert!((fit.model.us(500) / truth.us(500) - 1.0).abs() < 1e-6, "{fit:?}");
        }
    }

    #[test]
    fn a_relative_fit_keeps_the_smallest_sample() {
        // Bent upwards: the plain fit gives the first sample up for the last.
        let sizes = [1u32, 2, 4, 8, 16, 32, 64, 128, 256, 512];
        let bent = |n: u32| ComputeSample {
            tokens: n,
            took_us: 10.0 + f64::from(n) * if n > 16 { 3.0 } else { 2.0 },
        };
        let samples = sizes.map(bent);
        let worst = |fit: Fit<ComputeCost>| fit.residuals.worst_relative;
        let (plain, relative) = (ComputeCost::fit(&samples), ComputeCost::fit_relative(&samples));
        assert!(worst(relative.unwrap()) < worst(plain.unwrap()));
    }

    #[test]
    fn one_size_is_not_a_line_and_zero_is_not_a_time() {
        let one = [ComputeSample { tokens: 4, took_us: 3.0 }; 3];
        assert_eq!(ComputeCost::fit(&one), Err(FitError::TooFew { found: 1 }));
        let zero = [ComputeSample { tokens: 4, took_us: 0.0 }];
        assert_eq!(ComputeCost::fit(&zero), Err(FitError::BadSample { index: 0, value: 0.0 }));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn noise_of_a_twentieth_stays_a_twentieth(
            launch_us in 0.0..50.0f64,
            per_token_us in 0.5..20.0f64,
            knee in 1u32..32,
            noise in prop::collection::vec(-0.05..0.05f64, 8),
        ) {
            let floor_us = per_token_us * f64::from(knee);
            let truth = ComputeCost { launch_us, per_token_us, floor_us };
            let sizes = [1, 2, 4, 8, 16, 32, 64, 128];
            let mut noisy = samples(truth, &sizes);
            noisy.iter_mut().zip(&noise).for_each(|(s, e)| s.took_us *= 1.0 + e);
            let fit = ComputeCost::fit(&noisy).unwrap();
            prop_assert!((fit.model.us(128) / truth.us(128) - 1.0).abs() < 0.1, "{:?}", fit);
            prop_assert!(fit.model.per_token_us >= 0.0 && fit.model.launch_us >= 0.0);
        }
    }
}
