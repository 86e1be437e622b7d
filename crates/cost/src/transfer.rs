//! Time to move bytes over a link. Not the moving.

use serde::{Deserialize, Serialize};

use crate::fit::{Fit, FitError, Residuals, usable};
use crate::nnls::nnls;
use crate::time::Nanos;

/// Time of one transfer:
///
/// ```text
/// t(bytes) = latency + bytes / bandwidth
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransferCost {
    /// Fixed cost of one transfer.
    pub latency_us: f64,
    /// The inverse of the bandwidth.
    pub per_byte_us: f64,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TransferSample {
    /// Bytes moved in one transfer.
    pub bytes: u64,
    pub took_us: f64,
}

impl TransferCost {
    /// From a latency and a rate in 10^9 bytes per second.
    pub fn new(latency_us: f64, bandwidth_gb_per_s: f64) -> Self {
        Self { latency_us, per_byte_us: 1e-3 / bandwidth_gb_per_s }
    }

    /// `t(bytes)` in microseconds; nothing to move costs nothing.
    pub fn us(&self, bytes: u64) -> f64 {
        if bytes == 0 { 0.0 } else { self.latency_us + bytes as f64 * self.per_byte_us }
    }

    /// `t(bytes)`.
    pub fn time(&self, bytes: u64) -> Nanos {
        Nanos::from_us(self.us(bytes))
    }

    /// Fits latency and bandwidth.
    pub fn fit(samples: &[TransferSample]) -> Result<Fit<Self>, FitError> {
        usable(samples.iter().map(|s| (s.bytes as f64, s.took_us)))?;
        let rows: Vec<_> = samples.iter().map(|s| vec![1.0, s.bytes as f64]).collect();
        let took: Vec<_> = samples.iter().map(|s| s.took_us).collect();
        let x = nnls(&rows, &took);
        let model = Self { latency_us: x[0], per_byte_us: x[1] };
        let pairs = samples.iter().map(|s| (s.took_us, model.us(s.bytes)));
        Ok(Fit { model, residuals: Residuals::over(pairs) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fit_finds_the_link_and_reports_its_error() {
        let truth = TransferCost::new(12.0, 25.0);
        assert!((truth.us(25_000_000) - 1012.0).abs() < 1e-9);
        let mut samples: Vec<_> = [1 << 16, 1 << 20, 1 << 24, 1 << 26]
            .map(|bytes| TransferSample { bytes, took_us: truth.us(bytes) })
            .to_vec();
        let fit = TransferCost::fit(&samples).unwrap();
        assert!((fit.model.latency_us - 12.0).abs() < 1e-3, "{fit:?}");
        assert!(fit.residuals.worst_relative < 1e-6);
        samples[0].took_us *= 2.0;
        assert!(TransferCost::fit(&samples).unwrap().residuals.worst_relative > 0.1);
    }
}
