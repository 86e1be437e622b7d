//! What one routed expert costs on the CPU, on a GPU and over the link between them, from a
//! calibration: what the scheduler of the hybrid regime decides with (H1). Knows no schedule.

use motley_cost::{ComputeCost, TransferCost};

use crate::calibration::{Calibration, PathRate};
use crate::demand::Demand;

/// Costs of one expert.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpertCosts {
    /// On the CPU.
    pub cpu: ComputeCost,
    /// On the GPU, where its kernels are known.
    pub gpu: Option<ComputeCost>,
    /// To the GPU's memory, where the link is known.
    pub link: Option<TransferCost>,
}

impl ExpertCosts {
    /// Of an expert of mean size.
    pub fn of(calibration: &Calibration, demand: &Demand) -> Self {
        let expert = demand.expert_matrices();
        Self {
            cpu: calibration.cpu.cost(&expert),
            gpu: calibration.gpu.as_ref().map(|gpu| gpu.cost(&expert)),
            link: calibration.link.as_ref().map(PathRate::cost),
        }
    }
}

#[cfg(test)]
mod tests {
    use motley_model::gguf::GgmlType;

    use super::*;

    fn demand() -> Demand {
        Demand {
            expert_layers: 48,
            layers: 48,
            experts: 128,
            used: 8,
            hidden: 2048,
            expert_width: 768,
            expert_bytes: 2.4e6,
            expert_weights: 3.0 * 2048.0 * 768.0,
            expert_type: GgmlType::Q4_K,
            dense_bytes: 0.0,
            dense_weights: 0.0,
            head_bytes: 0.0,
            head_weights: 0.0,
            head_type: GgmlType::Q6_K,
            dense_type: GgmlType::Q4_K,
            kv_bytes: 0.0,
        }
    }

    #[test]
    fn a_machine_with_a_gpu_knows_all_three() {
        let machine = motley_machine::find("desktop-24gb-gpu").unwrap();
        let costs = ExpertCosts::of(&Calibration::derive(&machine).unwrap(), &demand());
        let (gpu, link) = (costs.gpu.expect("a GPU"), costs.link.expect("a link"));
        // 1000 GB/s beside 80: both at the same part of their peak.
        assert!((costs.cpu.us(1) / gpu.us(1) - 12.5).abs() < 0.1, "{costs:?}");
        assert!(costs.cpu.us(512) > 10.0 * costs.cpu.us(1), "arithmetic decides at many tokens");
        assert!(link.us(2_400_000) > costs.cpu.us(1), "a copy is longer than a read");
    }

    #[test]
    fn a_machine_without_a_gpu_knows_its_cpu() {
        let machine = motley_machine::find("two-core-24gb").unwrap();
        let costs = ExpertCosts::of(&Calibration::derive(&machine).unwrap(), &demand());
        assert_eq!((costs.gpu, costs.link), (None, None));
        assert!(costs.cpu.us(1) > 0.0);
    }
}
