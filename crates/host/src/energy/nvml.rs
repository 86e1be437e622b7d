//! NVIDIA GPUs through NVML, loaded at run time: the energy counter where the GPU has one
//! (Volta and later), its power otherwise.

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

use super::{Meter, Reading, Scope};

/// One meter for each NVIDIA GPU; none when the driver is absent.
pub fn gpu_meters() -> Vec<Box<dyn Meter>> {
    let count = Nvml::init().and_then(|nvml| nvml.device_count()).unwrap_or(0);
    let meter = |index| Some(Box::new(NvmlMeter::open(index).ok()?) as Box<dyn Meter>);
    (0..count).filter_map(meter).collect()
}

/// One GPU.
struct NvmlMeter {
    nvml: Nvml,
    index: u32,
    name: String,
    /// Counter when opened, where there is one.
    start_mj: Option<u64>,
}

impl NvmlMeter {
    /// Opens GPU `index`; fails when the driver or the GPU is absent.
    fn open(index: u32) -> Result<Self, NvmlError> {
        let nvml = Nvml::init()?;
        let (name, start_mj) = {
            let device = nvml.device_by_index(index)?;
            (device.name()?, device.total_energy_consumption().ok())
        };
        Ok(Self { nvml, index, name, start_mj })
    }
}

impl Meter for NvmlMeter {
    fn name(&self) -> String {
        format!("NVML {}", self.name)
    }

    fn scope(&self) -> Scope {
        Scope::Gpu
    }

    fn read(&mut self) -> Option<Reading> {
        let device = self.nvml.device_by_index(self.index).ok()?;
        match self.start_mj {
            Some(start) => {
                let used = device.total_energy_consumption().ok()?.saturating_sub(start);
                Some(Reading::Joules(used as f64 * 1e-3))
            }
            None => Some(Reading::Watts(f64::from(device.power_usage().ok()?) * 1e-3)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_the_driver_has_no_meter_and_one_with_it_reads() {
        match NvmlMeter::open(0) {
            Err(_) => assert!(gpu_meters().is_empty()),
            Ok(mut meter) => assert!(meter.read().is_some(), "{}", meter.name()),
        }
    }
}
