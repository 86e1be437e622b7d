//! Built without NVML: GPUs have no meter.

use super::Meter;

/// None.
pub fn gpu_meters() -> Vec<Box<dyn Meter>> {
    Vec::new()
}
