//! One expert over several equal units (G1): the cost, not the splitting.

use crate::compute::ComputeCost;

/// Tensor parallelism over `units` near-data units: gate and up by columns, down by rows.
///
/// Every unit holds `1/units` of every expert, so all have equal work whatever is routed:
///
/// ```text
/// t(n) = launch + max(n · per_token, floor) / units
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TensorParallel {
    /// Cost of a whole expert on one unit.
    pub unit: ComputeCost,
    pub units: u32,
}

impl TensorParallel {
    /// Cost of a whole expert on all units together.
    pub fn compute(&self) -> ComputeCost {
        self.unit.scaled(1.0 / f64::from(self.units.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_units_take_a_quarter_and_one_launch() {
        let unit = ComputeCost { launch_us: 1.0, per_token_us: 2.0, floor_us: 80.0 };
        let split = TensorParallel { unit, units: 4 };
        assert_eq!(split.compute().us(1), 21.0);
        assert_eq!(split.compute().us(100), 51.0);
    }
}
