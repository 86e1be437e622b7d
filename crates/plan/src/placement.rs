//! What goes where: dense weights first, then as many experts as fit, device by device. Bytes
//! only; how fast that is, `predict` says.

use motley_machine::{Device, DeviceKind, Machine, Regime};
use serde::{Deserialize, Serialize};

use crate::budget::{Budget, MIN_SLOTS, TooLittleMemory};

/// Part of a GPU's memory left to the driver and the screen.
pub const GPU_RESERVE: f64 = 0.08;

/// One device's part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The device.
    pub device: String,
    /// What may be used of its memory.
    pub room_bytes: u64,
    /// Dense weights and shared experts.
    pub dense_bytes: u64,
    /// KV cache.
    pub kv_bytes: u64,
    /// Buffers and the process.
    pub other_bytes: u64,
    /// Slots for experts.
    pub expert_slots: u32,
    /// Their bytes: the size of the arena.
    pub arena_bytes: u64,
}

impl Part {
    /// Everything placed on the device.
    pub fn bytes(&self) -> u64 {
        let parts = [self.dense_bytes, self.kv_bytes, self.other_bytes, self.arena_bytes];
        parts.into_iter().fold(0, u64::saturating_add)
    }
}

/// A placement of a whole model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Placement {
    /// The regime. Memory modules that compute are not planned for.
    pub regime: Regime,
    /// Device that computes dense layers.
    pub dense_on: String,
    /// Whether that is a GPU.
    pub dense_on_gpu: bool,
    /// Devices with memory, fastest first.
    pub parts: Vec<Part>,
    /// Experts of the model.
    pub experts: u32,
}

impl Placement {
    /// Slots in RAM.
    pub fn ram_slots(&self) -> u32 {
        self.parts.last().map_or(0, |part| part.expert_slots)
    }

    /// Slots on a GPU with memory of its own.
    pub fn gpu_slots(&self) -> u32 {
        if self.parts.len() > 1 { self.parts[0].expert_slots } else { 0 }
    }

    /// Part of all experts (0 to 1) that stays in RAM or on the GPU.
    pub fn held(&self) -> f64 {
        let slots = f64::from(self.ram_slots()) + f64::from(self.gpu_slots());
        if self.experts == 0 { 1.0 } else { (slots / f64::from(self.experts)).min(1.0) }
    }
}

/// Places a model whose memory divides as `budget` on `machine`, of whose RAM `memory_bytes` may
/// be used.
pub fn place(
    budget: &Budget,
    machine: &Machine,
    memory_bytes: u64,
) -> Result<Placement, TooLittleMemory> {
    let gpu = machine.first(DeviceKind::Gpu);
    let own = gpu.filter(|gpu| gpu.total_memory_bytes() > 0);
    if let Some(placed) = own.and_then(|gpu| beside_gpu(budget, machine, gpu, memory_bytes)) {
        return Ok(placed);
    }
    let slots = budget.slots(memory_bytes)?;
    let everything = slots >= budget.experts;
    let cpu = cpu_name(machine);
    // A GPU without memory of its own computes where the CPU's memory is.
    let shared = gpu.filter(|gpu| gpu.shares_memory_of.is_some());
    Ok(Placement {
        regime: if everything { Regime::OneMemory } else { Regime::BeyondRam },
        dense_on: shared.map_or_else(|| cpu.clone(), |gpu| gpu.name.clone()),
        dense_on_gpu: shared.is_some(),
        parts: vec![Part {
            device: cpu,
            room_bytes: memory_bytes,
            dense_bytes: budget.dense_bytes,
            kv_bytes: budget.kv_bytes,
            other_bytes: budget.compute_bytes + budget.process_bytes,
            expert_slots: slots,
            arena_bytes: u64::from(slots) * budget.slot_bytes,
        }],
        experts: budget.experts,
    })
}

/// Dense weights and KV cache on the GPU if they fit there, then experts; the others in RAM.
fn beside_gpu(
    budget: &Budget,
    machine: &Machine,
    gpu: &Device,
    memory_bytes: u64,
) -> Option<Placement> {
    let room_bytes = (gpu.total_memory_bytes() as f64 * (1.0 - GPU_RESERVE)) as u64;
    let dense = [budget.dense_bytes, budget.kv_bytes, budget.compute_bytes];
    let left = room_bytes.checked_sub(dense.into_iter().fold(0, u64::saturating_add))?;
    let fit = |bytes: u64, most: u32| {
        let slots = bytes.checked_div(budget.slot_bytes).unwrap_or(0);
        u32::try_from(slots).unwrap_or(u32::MAX).min(most)
    };
    let on_gpu = fit(left, budget.experts);
    let others = budget.experts - on_gpu;
    let ram_left = memory_bytes.checked_sub(budget.process_bytes)?;
    let in_ram = fit(ram_left, if others == 0 { 0 } else { others + 1 });
    if others > 0 && in_ram < MIN_SLOTS {
        return None;
    }
    let part = |device: String, room_bytes, dense: [u64; 3], slots: u32| Part {
        device,
        room_bytes,
        dense_bytes: dense[0],
        kv_bytes: dense[1],
        other_bytes: dense[2],
        expert_slots: slots,
        arena_bytes: u64::from(slots) * budget.slot_bytes,
    };
    let regime = match in_ram {
        _ if others == 0 => Regime::OneMemory,
        in_ram if in_ram >= others => Regime::Hybrid,
        _ => Regime::BeyondRam,
    };
    Some(Placement {
        regime,
        dense_on: gpu.name.clone(),
        dense_on_gpu: true,
        parts: vec![
            part(gpu.name.clone(), room_bytes, dense, on_gpu),
            part(cpu_name(machine), memory_bytes, [0, 0, budget.process_bytes], in_ram),
        ],
        experts: budget.experts,
    })
}

fn cpu_name(machine: &Machine) -> String {
    machine.first(DeviceKind::Cpu).map_or_else(|| "cpu".to_owned(), |cpu| cpu.name.clone())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn budget(experts: u32) -> Budget {
        Budget {
            dense_bytes: 2 * GIB,
            kv_bytes: GIB,
            compute_bytes: GIB / 4,
            process_bytes: GIB / 4,
            slot_bytes: 4 << 20,
            experts,
        }
    }

    #[test]
    fn the_four_cases() {
        let place = |name: &str, experts: u32, gib: u64| {
            place(&budget(experts), &motley_machine::find(name).unwrap(), gib * GIB).unwrap()
        };
        let found = place("two-core-24gb", 2048, 20);
        assert_eq!(
            (found.regime, found.ram_slots(), found.gpu_slots()),
            (Regime::OneMemory, 2049, 0)
        );
        let found = place("two-core-24gb", 6144, 20);
        assert_eq!((found.regime, found.dense_on_gpu), (Regime::BeyondRam, false));
        let found = place("desktop-24gb-gpu", 10_000, 60);
        assert_eq!((found.regime, found.dense_on.as_str()), (Regime::Hybrid, "gpu"));
        assert!(found.gpu_slots() > 4000 && found.gpu_slots() + found.ram_slots() == 10_001);
        let found = place("desktop-24gb-gpu", 100_000, 60);
        assert_eq!((found.regime, found.dense_on_gpu), (Regime::BeyondRam, true));
        let found = place("desktop-24gb-gpu", 1000, 60);
        assert_eq!((found.regime, found.ram_slots(), found.held()), (Regime::OneMemory, 0, 1.0));
        let found = place("mac-64gb", 8000, 50);
        assert_eq!(
            (found.regime, found.dense_on_gpu, found.parts.len()),
            (Regime::OneMemory, true, 1)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn no_device_gets_more_than_it_has(
            at in 0usize..17,
            parts in prop::array::uniform4(0u64..1 << 36),
            slot_bytes in 1u64..1 << 31,
            experts in 0u32..40_000,
            memory_bytes in 0u64..1 << 38,
        ) {
            let name = motley_machine::ready_names().nth(at).unwrap();
            let machine = motley_machine::find(name).unwrap();
            let [dense_bytes, kv_bytes, compute_bytes, process_bytes] = parts;
            let budget =
                Budget { dense_bytes, kv_bytes, compute_bytes, process_bytes, slot_bytes, experts };
            let Ok(placed) = place(&budget, &machine, memory_bytes) else { return Ok(()) };
            for part in &placed.parts {
                prop_assert!(part.bytes() <= part.room_bytes, "{:?}", part);
                let device = machine.device(&part.device).unwrap();
                let ram = part.room_bytes == memory_bytes;
                prop_assert!(ram || part.room_bytes <= device.total_memory_bytes());
            }
            let slots = placed.gpu_slots() + placed.ram_slots();
            prop_assert!((placed.regime == Regime::BeyondRam) == (slots < experts));
            let dense: u64 = placed.parts.iter().map(|part| part.dense_bytes).sum();
            prop_assert_eq!(dense, dense_bytes, "dense weights are placed once");
        }
    }
}
