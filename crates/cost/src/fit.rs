//! What a fit reports beside its model. A model without its error is not used (M1).

use serde::{Deserialize, Serialize};

/// A fitted model and how well it fits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit<M> {
    pub model: M,
    /// Its error over the samples it was fitted to.
    pub residuals: Residuals,
}

/// Error of a model over samples, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residuals {
    pub samples: usize,
    /// Root of the mean square of `measured - modelled`.
    pub rms: f64,
    /// Largest `|measured - modelled| / measured`.
    pub worst_relative: f64,
    /// Mean of `|measured - modelled| / measured`.
    pub mean_relative: f64,
}

impl Residuals {
    /// Over pairs of (measured, modelled); measured values are above zero.
    pub fn over(pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        let mut sum = Self::default();
        for (measured, modelled) in pairs {
            let off = measured - modelled;
            sum.samples += 1;
            sum.rms += off * off;
            sum.mean_relative += off.abs() / measured;
            sum.worst_relative = sum.worst_relative.max(off.abs() / measured);
        }
        let n = sum.samples.max(1) as f64;
        sum.rms = (sum.rms / n).sqrt();
        sum.mean_relative /= n;
        sum
    }
}

/// Why samples cannot be fitted.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum FitError {
    /// A line needs at least two samples of different size.
    #[error("{found} samples of different size; a fit needs at least 2")]
    TooFew {
        /// Distinct sizes there are.
        found: usize,
    },
    /// A duration that is not a positive number.
    #[error("sample {index} has the value {value}; samples must be above zero and finite")]
    BadSample {
        /// Which sample, from 0.
        index: usize,
        value: f64,
    },
}

/// Refuses samples no line can be drawn through. Each is (size, value).
pub(crate) fn usable(samples: impl Iterator<Item = (f64, f64)>) -> Result<(), FitError> {
    let mut sizes = Vec::new();
    for (index, (size, value)) in samples.enumerate() {
        if !(value.is_finite() && value > 0.0) {
            return Err(FitError::BadSample { index, value });
        }
        if !sizes.contains(&size) {
            sizes.push(size);
        }
    }
    if sizes.len() < 2 { Err(FitError::TooFew { found: sizes.len() }) } else { Ok(()) }
}
