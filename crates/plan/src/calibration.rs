//! The costs a plan is made with: measured on the machine, or derived from its description.
//! Numbers and their provenance; measuring is a driver's work.

use motley_cost::calibration::{MeasuredPoint, between_points_us};
use motley_cost::{ComputeCost, Efficiency, TransferCost};
use motley_machine::{Device, DeviceKind, Link, Machine};
use motley_model::gguf::GgmlType;
use serde::{Deserialize, Serialize};

/// Costs of one machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// Where the numbers come from, in a few words for people.
    pub source: String,
    /// Whether they were measured on the machine.
    pub measured: bool,
    /// The CPU with all cores a run uses.
    pub cpu: UnitRates,
    /// The GPU, where there is one.
    #[serde(default)]
    pub gpu: Option<UnitRates>,
    /// From disk to memory, reads in flight as a run has them.
    #[serde(default)]
    pub disk: Option<PathRate>,
    /// From memory to the GPU.
    #[serde(default)]
    pub link: Option<PathRate>,
    /// Memory read by the CPU for some numbers of cores, where measured (A2 without a run).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_cores: Vec<CoresRate>,
}

/// What one unit does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnitRates {
    /// Fixed cost of a pass: sampling, graph, the small operations outside layers.
    pub pass_us: f64,
    /// Fixed cost of a layer: barriers, splits, small operations.
    pub layer_us: f64,
    /// Plain reading, such as of the KV cache.
    pub memory_gb_per_s: f64,
    /// Matrix kernels by element type.
    pub kernels: Vec<KernelRate>,
    /// Draw of the whole machine at rest, where known.
    #[serde(default)]
    pub idle_w: Option<f64>,
    /// Draw of the whole machine while this unit works, where known.
    #[serde(default)]
    pub busy_w: Option<f64>,
}

/// One matrix kernel: slow at one token because of bytes, at many because of arithmetic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRate {
    /// ggml's name of the element type, `q4_0`; `*` for any.
    pub quantisation: String,
    /// Weights passed at one token.
    pub one_token_gb_per_s: f64,
    /// Operations at many tokens, multiply and add counted as two.
    pub many_tokens_gflop_per_s: f64,
    /// Time of 10⁶ weights by tokens, where it was measured: the two rates above miss the middle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<MeasuredPoint>,
}

impl KernelRate {
    /// The rate behind a fitted cost of `matrices`: what a driver that measured them keeps. `None`
    /// when the fit has no slope or no time at one token.
    pub fn of(matrices: &Matrices, cost: &ComputeCost) -> Option<Self> {
        let one_us = cost.us(1);
        let sound = one_us > 0.0 && cost.per_token_us > 0.0;
        sound.then(|| Self {
            quantisation: matrices.ty.name().to_owned(),
            one_token_gb_per_s: matrices.bytes / (one_us * 1e3),
            many_tokens_gflop_per_s: 2.0 * matrices.weights / (cost.per_token_us * 1e3),
            points: Vec::new(),
        })
    }
}

/// A way for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathRate {
    /// Rate of large reads.
    pub gb_per_s: f64,
    /// Fixed cost of one.
    pub latency_us: f64,
}

/// Reading memory with some cores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoresRate {
    pub cores: u32,
    /// Rate of all together.
    pub gb_per_s: f64,
}

impl PathRate {
    /// The same as a cost.
    pub fn cost(&self) -> TransferCost {
        TransferCost::new(self.latency_us, self.gb_per_s)
    }
}

/// Matrices of one shape and type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Matrices {
    /// Stored size.
    pub bytes: f64,
    pub weights: f64,
    pub ty: GgmlType,
}

impl UnitRates {
    /// Time to pass `tokens` through matrices; tokens may be a mean.
    pub fn us(&self, matrices: &Matrices, tokens: f64) -> f64 {
        match self.kernel(matrices.ty).filter(|kernel| !kernel.points.is_empty()) {
            Some(kernel) => matrices.weights / 1e6 * between_points_us(&kernel.points, tokens),
            None => {
                let cost = self.cost(matrices);
                cost.launch_us + (tokens * cost.per_token_us).max(cost.floor_us)
            }
        }
    }

    /// The same as a line with a floor, which misses what is between few and many tokens.
    pub fn cost(&self, matrices: &Matrices) -> ComputeCost {
        let kernel = self.kernel(matrices.ty);
        let gflops = kernel.map_or(1.0, |kernel| kernel.many_tokens_gflop_per_s);
        let gb_per_s = kernel.map_or(self.memory_gb_per_s, |kernel| kernel.one_token_gb_per_s);
        ComputeCost {
            launch_us: 0.0,
            per_token_us: 2.0 * matrices.weights / (gflops * 1e3),
            floor_us: matrices.bytes / (gb_per_s * 1e3),
        }
    }

    /// The kernel of that type, else of the type nearest in bits, else the one for any.
    fn kernel(&self, ty: GgmlType) -> Option<&KernelRate> {
        let bits = |kernel: &KernelRate| {
            let known = GgmlType::ALL.iter().find(|ty| ty.name() == kernel.quantisation);
            known.map_or(f64::MAX, |known| known.bits_per_weight())
        };
        let distance = |kernel: &&KernelRate| {
            if kernel.quantisation == ty.name() {
                -1.0
            } else {
                (bits(kernel) - ty.bits_per_weight()).abs()
            }
        };
        self.kernels.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    fn derive(device: &Device) -> Self {
        let reached = Efficiency::DEFAULT;
        let gb_per_s = device.bandwidth_gb_per_s * reached.bandwidth;
        Self {
            pass_us: 10.0 * device.launch_us,
            layer_us: 2.0 * device.launch_us,
            memory_gb_per_s: gb_per_s,
            kernels: vec![KernelRate {
                quantisation: "*".into(),
                one_token_gb_per_s: gb_per_s,
                many_tokens_gflop_per_s: device.compute_tflops * 1e3 * reached.compute,
                points: Vec::new(),
            }],
            idle_w: device.idle_w,
            busy_w: device.busy_w,
        }
    }
}

/// A description from which no costs follow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("machine {machine} describes no CPU")]
pub struct NoCpu {
    pub machine: String,
}

impl Calibration {
    /// From a description alone: peaks times what good kernels typically reach.
    pub fn derive(machine: &Machine) -> Result<Self, NoCpu> {
        let cpu = machine.first(DeviceKind::Cpu);
        let cpu = cpu.ok_or_else(|| NoCpu { machine: machine.name.clone() })?;
        let gpu = machine.first(DeviceKind::Gpu);
        let disk = machine.first(DeviceKind::Disk);
        let rate = |link: &Link, reached: f64| PathRate {
            gb_per_s: link.bandwidth_gb_per_s * reached,
            latency_us: link.latency_us,
        };
        // Disks are described by what they read, links by what their lanes carry.
        let from_disk = disk.and_then(|disk| machine.link(&disk.name, &cpu.name));
        let to_gpu = gpu.and_then(|gpu| machine.link(&cpu.name, &gpu.name));
        Ok(Self {
            source: format!("derived from the description of {}", machine.name),
            measured: false,
            cpu: UnitRates::derive(cpu),
            gpu: gpu.map(UnitRates::derive),
            disk: from_disk.map(|link| rate(link, 1.0)),
            link: to_gpu.map(|link| rate(link, Efficiency::DEFAULT.bandwidth)),
            by_cores: Vec::new(),
        })
    }

    /// Whether every number can be divided by: what a reader of such a table checks.
    pub fn is_sound(&self) -> bool {
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let least = |value: f64| value.is_finite() && value >= 0.0;
        let unit = |unit: &UnitRates| {
            let kernel = |k: &KernelRate| {
                positive(k.one_token_gb_per_s) && positive(k.many_tokens_gflop_per_s)
            };
            least(unit.pass_us)
                && least(unit.layer_us)
                && positive(unit.memory_gb_per_s)
                && !unit.kernels.is_empty()
                && unit.kernels.iter().all(kernel)
                && unit.idle_w.iter().chain(&unit.busy_w).all(|watts| least(*watts))
        };
        let path = |path: &PathRate| positive(path.gb_per_s) && least(path.latency_us);
        unit(&self.cpu)
            && self.gpu.as_ref().is_none_or(unit)
            && self.disk.iter().chain(&self.link).all(path)
            && self.by_cores.iter().all(|rate| rate.cores > 0 && positive(rate.gb_per_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ready_machine_has_sound_costs() {
        for name in motley_machine::ready_names() {
            let machine = motley_machine::find(name).unwrap();
            assert!(Calibration::derive(&machine).unwrap().is_sound(), "{name}");
        }
    }

    #[test]
    fn a_fitted_cost_becomes_a_rate_and_back() {
        let matrices = Matrices { bytes: 2.6e6, weights: 4.7e6, ty: GgmlType::Q4_0 };
        let cost = ComputeCost { launch_us: 0.0, per_token_us: 60.0, floor_us: 180.0 };
        let machine = motley_machine::find("two-core-24gb").unwrap();
        let mut rates = Calibration::derive(&machine).unwrap().cpu;
        rates.kernels = vec![KernelRate::of(&matrices, &cost).unwrap()];
        let again = rates.cost(&matrices);
        assert!([1, 3, 64].iter().all(|n| (again.us(*n) / cost.us(*n) - 1.0).abs() < 1e-9));
        assert_eq!(KernelRate::of(&matrices, &ComputeCost::constant(5.0)), None);
    }

    #[test]
    fn an_unknown_type_takes_the_nearest_in_bits() {
        let kernel = |name: &str, gb_per_s: f64| KernelRate {
            quantisation: name.into(),
            one_token_gb_per_s: gb_per_s,
            many_tokens_gflop_per_s: 100.0,
            points: Vec::new(),
        };
        let machine = motley_machine::find("two-core-24gb").unwrap();
        let mut rates = Calibration::derive(&machine).unwrap().cpu;
        rates.kernels = vec![kernel("q4_0", 10.0), kernel("q8_0", 14.0)];
        let floor = |ty| rates.cost(&Matrices { bytes: 1e6, weights: 2e6, ty }).floor_us;
        assert_eq!(floor(GgmlType::Q4_0), 100.0);
        assert_eq!(floor(GgmlType::IQ4_XS), 100.0);
        assert_eq!(floor(GgmlType::Q6_K), 1e3 / 14.0);
    }
}
