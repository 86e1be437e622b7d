//! Energy of a device over a span (M7). Not a meter: `host` reads those.

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

impl EnergyCost {
    /// `E` in joules.
    pub fn joules(&self, wall: Nanos, busy: Nanos) -> f64 {
        self.idle_w * wall.as_s() + self.active_w * busy.as_s()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_adds_to_the_draw_at_rest() {
        let cost = EnergyCost { idle_w: 20.0, active_w: 80.0 };
        let second = Nanos(1_000_000_000);
        assert_eq!(cost.joules(second, Nanos::ZERO), 20.0);
        assert_eq!(cost.joules(second, second), 100.0);
    }
}
