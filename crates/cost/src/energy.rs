//! Energy of a device over a span (M7). Not a meter: `host` reads those.

use motley_machine::Device;

use crate::fit::{Fit, FitError, Residuals, usable};
use crate::nnls::nnls;
use crate::time::Nanos;

/// Energy of a device that was busy for a part of a span:
///
/// ```text
/// E = idle_w · wall + (busy_w - idle_w) · busy
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnergyCost {
    /// Draw at rest.
    pub idle_w: f64,
    /// What work adds to it: `busy_w - idle_w`.
    pub active_w: f64,
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnergySample {
    /// Length of the span.
    pub wall: Nanos,
    /// The part of it the device worked.
    pub busy: Nanos,
    /// What the meter said.
    pub joules: f64,
}

impl EnergyCost {
    /// From a device description, when it states its draw.
    pub fn of(device: &Device) -> Option<Self> {
        let (idle_w, busy_w) = (device.idle_w?, device.busy_w?);
        Some(Self { idle_w, active_w: busy_w - idle_w })
    }

    /// `E` in joules.
    pub fn joules(&self, wall: Nanos, busy: Nanos) -> f64 {
        self.idle_w * wall.as_s() + self.active_w * busy.as_s()
    }

    /// Fits both draws.
    pub fn fit(samples: &[EnergySample]) -> Result<Fit<Self>, FitError> {
        usable(samples.iter().map(|s| (s.busy.as_s() / s.wall.as_s(), s.joules)))?;
        let rows: Vec<_> = samples.iter().map(|s| vec![s.wall.as_s(), s.busy.as_s()]).collect();
        let joules: Vec<_> = samples.iter().map(|s| s.joules).collect();
        let x = nnls(&rows, &joules);
        let model = Self { idle_w: x[0], active_w: x[1] };
        let pairs = samples.iter().map(|s| (s.joules, model.joules(s.wall, s.busy)));
        Ok(Fit { model, residuals: Residuals::over(pairs) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_active_draw_are_told_apart() {
        let truth = EnergyCost { idle_w: 20.0, active_w: 80.0 };
        let second = Nanos(1_000_000_000);
        let sample = |busy| EnergySample { wall: second, busy, joules: truth.joules(second, busy) };
        let fit = EnergyCost::fit(&[sample(Nanos::ZERO), sample(second)]).unwrap();
        assert!((fit.model.idle_w - 20.0).abs() < 1e-6 && (fit.model.active_w - 80.0).abs() < 1e-6);
        assert_eq!(truth.joules(second, second), 100.0);
    }
}
