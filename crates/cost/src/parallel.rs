//! One expert over several equal units (G1): the cost, not the splitting.

use crate::compute::ComputeCost;
use crate::transfer::TransferCost;

/// Tensor parallelism over `units` near-data units: gate and up by columns, down by rows.
///
/// Every unit holds `1/units` of every expert, so all have equal work whatever is routed:
///
/// ```text
/// t(n)  = launch + max(n · per_token, floor) / units
/// t_act = (units + 1) · T_a · n,   T_a = one hidden row over the link
/// ```
///
/// The input row goes out to each unit; their partial sums come back in one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TensorParallel {
    /// Cost of a whole expert on one unit.
    pub unit: ComputeCost,
    /// Number of units.
    pub units: u32,
}

impl TensorParallel {
    /// Cost of a whole expert on all units together.
    pub fn compute(&self) -> ComputeCost {
        self.unit.scaled(1.0 / f64::from(self.units.max(1)))
    }

    /// Activation traffic of one layer for `tokens` rows of `row_bytes` each, in microseconds.
    pub fn activation_us(&self, link: &TransferCost, row_bytes: u64, tokens: u32) -> f64 {
        f64::from(self.units + 1) * link.us(row_bytes * u64::from(tokens))
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
        let link = TransferCost { latency_us: 2.0, per_byte_us: 0.001 };
        assert_eq!(split.activation_us(&link, 1000, 1), 15.0);
    }
}
