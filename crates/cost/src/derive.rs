//! Models from descriptions: a device's peaks, an expert's shape, and how much of a peak
//! real kernels reach. Used until calibrate has measured (H4).

use motley_machine::{Device, Link};

use crate::compute::ComputeCost;
use crate::transfer::TransferCost;

/// One routed expert: gate and up `[hidden, intermediate]`, down `[intermediate, hidden]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertShape {
    /// Width of a hidden row.
    pub hidden: u32,
    /// Width between up and down.
    pub intermediate: u32,
    /// Stored size of all three matrices.
    pub bytes: u64,
}

impl ExpertShape {
    /// From the two widths and the storage format's bits for one weight, scales included.
    pub fn new(hidden: u32, intermediate: u32, bits_per_weight: f64) -> Self {
        let weights = 3 * u64::from(hidden) * u64::from(intermediate);
        Self { hidden, intermediate, bytes: (weights as f64 * bits_per_weight / 8.0) as u64 }
    }

    /// Operations of one token: three matrix-vector products, multiply and add counted as two.
    pub fn flop_per_token(&self) -> f64 {
        6.0 * f64::from(self.hidden) * f64::from(self.intermediate)
    }

    /// Bytes of one token's hidden row, at `bytes_per_value`.
    pub fn row_bytes(&self, bytes_per_value: u32) -> u64 {
        u64::from(self.hidden) * u64::from(bytes_per_value)
    }
}

/// The part of a peak that kernels reach, each above 0 and at most 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Efficiency {
    /// Of peak operations.
    pub compute: f64,
    /// Of peak bandwidth.
    pub bandwidth: f64,
}

impl Efficiency {
    /// What good kernels reach: half the arithmetic, three quarters of the bandwidth.
    pub const DEFAULT: Self = Self { compute: 0.5, bandwidth: 0.75 };
}

impl ComputeCost {
    /// `per_token = flop / (peak · efficiency)`, `floor = bytes / (bandwidth · efficiency)`.
    pub fn derive(device: &Device, shape: &ExpertShape, efficiency: Efficiency) -> Self {
        let flop_per_us = device.compute_tflops * 1e6 * efficiency.compute;
        let bytes_per_us = device.bandwidth_gb_per_s * 1e3 * efficiency.bandwidth;
        Self {
            launch_us: device.launch_us,
            per_token_us: shape.flop_per_token() / flop_per_us,
            floor_us: shape.bytes as f64 / bytes_per_us,
        }
    }
}

impl TransferCost {
    /// The link's latency, and its bandwidth times the efficiency.
    pub fn derive(link: &Link, efficiency: Efficiency) -> Self {
        Self::new(link.latency_us, link.bandwidth_gb_per_s * efficiency.bandwidth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixtral_on_a_gpu_waits_for_its_weights() {
        let machine = motley_machine::find("a6000-xeon-5220r").unwrap();
        let shape = ExpertShape::new(4096, 14336, 4.5);
        assert_eq!(shape.bytes, 99_090_432);
        let peak = Efficiency { compute: 1.0, bandwidth: 1.0 };
        let gpu = ComputeCost::derive(machine.device("gpu").unwrap(), &shape, peak);
        assert!((gpu.floor_us - 99_090_432.0 / 768e3).abs() < 1e-9);
        assert!(gpu.us(1) == gpu.us(32), "one token and a block cost the same");
        let link = machine.link("cpu", "gpu").unwrap();
        let copy = TransferCost::derive(link, peak).us(shape.bytes);
        let cpu = ComputeCost::derive(machine.device("cpu").unwrap(), &shape, Efficiency::DEFAULT);
        assert!(copy > cpu.us(1) && cpu.us(1) > gpu.us(1), "the order of the hybrid regime");
    }
}
