//! What each memory of a machine is left with for experts, dense weights and spare memory taken
//! off. Divides bytes; chooses nothing.

use motley_machine::{Device, DeviceKind, Machine};
use motley_sched::regime::gpus;
use motley_sim::setup::dense_cost;
use motley_sim::shape::ModelShape;
use motley_sim::world::DenseCost;

use crate::compared::sums::TIERS;
use crate::machines::{GPU_SPARE, RAM_SPARE};

/// Fewest experts for which a GPU's memory is used at all: as many pass through.
const FEWEST: u32 = 4;

/// Where everything but routed experts goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenseFirst {
    /// On GPUs, the first one first, as far as it fits; the rest in RAM.
    Gpus,
    /// In RAM: GPUs hold experts alone.
    Ram,
}

/// Rooms in experts, and who runs dense weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Rooms {
    /// Of RAM.
    pub ram: u32,
    /// Of each GPU.
    pub gpus: Vec<u32>,
    /// Part of the dense weights each GPU has; the CPU has the rest.
    pub dense: Vec<f64>,
}

impl Rooms {
    /// The rooms of `machine` for `shape`.
    pub fn of(machine: &Machine, shape: &ModelShape, dense_first: DenseFirst) -> Self {
        let dense_bytes = shape.dense_bytes() as f64;
        let expert = shape.expert.bytes as f64;
        let mut left = dense_bytes;
        let (mut rooms, mut dense) = (Vec::new(), Vec::new());
        for gpu in gpus(machine).take(TIERS - 1) {
            let room = gpu.memory_bytes() as f64 * (1.0 - GPU_SPARE);
            let taken = if dense_first == DenseFirst::Gpus { left.min(room) } else { 0.0 };
            left -= taken;
            dense.push(taken / dense_bytes);
            let experts = ((room - taken) / expert) as u32;
            rooms.push(if experts < FEWEST { 0 } else { experts });
        }
        let memory = machine.first(DeviceKind::Cpu).map_or(0, Device::total_memory_bytes);
        let ram = memory as f64 * (1.0 - RAM_SPARE) - left;
        Self { ram: (ram / expert) as u32, gpus: rooms, dense }
    }

    /// Whether RAM holds all experts of `shape`.
    pub fn ram_holds(&self, shape: &ModelShape) -> bool {
        self.ram >= u32::from(shape.layers) * u32::from(shape.experts)
    }

    /// Of all GPUs.
    pub fn all_gpus(&self) -> u32 {
        self.gpus.iter().sum()
    }

    /// Part of the dense weights that GPUs have.
    pub fn dense_on_gpus(&self) -> f64 {
        self.dense.iter().sum()
    }

    /// The time of dense weights where they are, as a mean over the layers.
    pub fn dense_cost(&self, machine: &Machine, shape: &ModelShape) -> DenseCost {
        let cpu = machine.first(DeviceKind::Cpu).map(|cpu| (1.0 - self.dense_on_gpus(), cpu));
        let parts = self.dense.iter().copied().zip(gpus(machine)).chain(cpu);
        let mut mean = DenseCost::default();
        for (part, device) in parts.filter(|(part, _)| *part > 0.0) {
            let cost = dense_cost(device, shape);
            mean.layer_us += part * cost.layer_us;
            mean.layer_per_token_us += part * cost.layer_per_token_us;
            mean.pass_us += part * cost.pass_us;
        }
        mean
    }
}

#[cfg(test)]
mod tests {
    use super::super::models::MODELS;
    use super::*;

    fn rooms(machine: &str, model: usize, dense: DenseFirst) -> (Rooms, ModelShape) {
        let machine = motley_machine::find(machine).expect("a ready machine");
        let shape = MODELS[model].shape();
        (Rooms::of(&machine, &shape, dense), shape)
    }

    #[test]
    fn dense_weights_leave_ram_to_experts_where_a_gpu_has_room_for_them() {
        let (on_gpu, _) = rooms("desktop-24gb-gpu-32gb", 0, DenseFirst::Gpus);
        let (in_ram, _) = rooms("desktop-24gb-gpu-32gb", 0, DenseFirst::Ram);
        assert!(on_gpu.ram > in_ram.ram && on_gpu.all_gpus() < in_ram.all_gpus());
        let sum = |rooms: &Rooms| rooms.ram + rooms.all_gpus();
        assert!(sum(&on_gpu).abs_diff(sum(&in_ram)) <= 1, "the bytes are the same");
        assert_eq!((on_gpu.dense_on_gpus(), in_ram.dense_on_gpus()), (1.0, 0.0));
    }

    #[test]
    fn weights_that_do_not_fit_a_gpu_are_divided() {
        let (rooms, _) = rooms("laptop-8gb-gpu", 3, DenseFirst::Gpus);
        assert!(rooms.dense_on_gpus() > 0.5 && rooms.dense_on_gpus() < 1.0, "{rooms:?}");
        assert_eq!(rooms.gpus, [0]);
    }

    #[test]
    fn ram_of_64_gib_holds_the_experts_of_gpt_oss_and_of_no_other() {
        for model in 0..MODELS.len() {
            let (rooms, shape) = rooms("desktop-16gb-gpu", model, DenseFirst::Gpus);
            assert_eq!(rooms.ram_holds(&shape), model == 0, "{}", shape.name);
        }
    }
}
