//! The costs of an expert in each regime, from a machine's description. Measures nothing, and
//! places nothing: `motley-plan` finds the regime, byte by byte.
//!
//! | regime | fast tier | slow tier | home units |
//! |---|---|---|---|
//! | hybrid | GPU memory | RAM | the CPU |
//! | beyond RAM | RAM | disk | none |
//! | near data | GPU memory | memory modules | one per module |
//! | one memory | all of it | none | none |
//!
//! A machine used whole, disk, RAM and every GPU at once, has several tiers: [`costs_of_tiers`].

use motley_cost::{ComputeCost, Efficiency, ExpertShape, TransferCost};
pub use motley_machine::Regime;
use motley_machine::{Device, DeviceKind, Link, Machine};

use crate::work::{Costs, Homes, Layout, Tier};

/// Why a machine cannot run experts of this total size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegimeError {
    /// A device the regime needs is not described.
    #[error("machine {machine} has no {kind:?} device")]
    NoDevice {
        machine: String,
        /// What it lacks.
        kind: DeviceKind,
    },
    /// A link the regime needs is not described.
    #[error("machine {machine} has no link from {from} to {to}")]
    NoLink {
        machine: String,
        /// Device the bytes are on.
        from: String,
        /// Device that needs them.
        to: String,
    },
}

/// The costs of one expert in `regime`.
pub fn costs(
    regime: Regime,
    machine: &Machine,
    shape: &ExpertShape,
    efficiency: Efficiency,
) -> Result<Costs, RegimeError> {
    let of = |kind| {
        let device = machine.first(kind);
        device.ok_or_else(|| RegimeError::NoDevice { machine: machine.name.clone(), kind })
    };
    let compute = |device: &Device| ComputeCost::derive(device, shape, efficiency);
    let transfer = |link: &Link| TransferCost::derive(link, efficiency);
    let (fast, link, home) = match regime {
        Regime::Hybrid => {
            let (gpu, cpu) = (of(DeviceKind::Gpu)?, of(DeviceKind::Cpu)?);
            let link = transfer(link(machine, cpu, gpu)?);
            (gpu, link, Some(homes(1, compute(cpu), 0.0)))
        }
        Regime::NearData => {
            let (gpu, near) = (of(DeviceKind::Gpu)?, of(DeviceKind::NearData)?);
            let link = transfer(link(machine, near, gpu)?);
            // One row to every unit and their sum back (G2).
            let row_us = link.us(shape.row_bytes(2)) * f64::from(near.count + 1);
            (gpu, link, Some(homes(near.count as u16, compute(near), row_us)))
        }
        Regime::BeyondRam => {
            let (cpu, disk) = (of(DeviceKind::Cpu)?, of(DeviceKind::Disk)?);
            (cpu, transfer(link(machine, disk, cpu)?), None)
        }
        Regime::OneMemory => {
            let unit = of(DeviceKind::Gpu).or_else(|_| of(DeviceKind::Cpu))?;
            // Nothing is ever loaded; a copy inside the memory stands in for the link.
            (unit, TransferCost::new(0.0, unit.bandwidth_gb_per_s), None)
        }
    };
    Ok(Costs::one_tier(compute(fast), link, home, shape.bytes))
}

/// How a machine is used whose memories all hold experts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TierUse {
    /// Whether experts come from disk; else RAM has every one.
    pub from_disk: bool,
    /// Part of the layers whose other weights are the first GPU's; the CPU has the others'. Rows
    /// travel from where a layer's other weights are.
    pub dense_on_gpu: f64,
    /// What the units' kernels reach.
    pub efficiency: Efficiency,
    /// Part of a link's described rate that copies reach.
    pub link_share: f64,
}

/// The costs of one expert on a machine with a CPU and GPUs, all at once:
///
/// | experts come from | home | tiers |
/// |---|---|---|
/// | disk | the disk, no unit | RAM with the CPU, then each GPU, filled from RAM; what stays on one leaves RAM |
/// | RAM | RAM with the CPU | each GPU |
///
/// A unit pays rows there and back before its first expert of a layer, unless the layer's other
/// weights are beside it; a second GPU's rows pass RAM.
pub fn costs_of_tiers(
    machine: &Machine,
    shape: &ExpertShape,
    used: &TierUse,
) -> Result<Costs, RegimeError> {
    let of = |kind| {
        let device = machine.first(kind);
        device.ok_or_else(|| RegimeError::NoDevice { machine: machine.name.clone(), kind })
    };
    let compute = |device: &Device| ComputeCost::derive(device, shape, used.efficiency);
    let transfer =
        |link: &Link| TransferCost::new(link.latency_us, link.bandwidth_gb_per_s * used.link_share);
    let cpu = of(DeviceKind::Cpu)?;
    let first = of(DeviceKind::Gpu)?;
    let first_rows = Rows::over(transfer(link(machine, cpu, first)?), shape);
    let to_cpu = first_rows.times(used.dense_on_gpu);
    let tier = |(number, gpu): (usize, &Device)| {
        let pcie = transfer(link(machine, cpu, gpu)?);
        let rows = match number {
            0 => first_rows.times(1.0 - used.dense_on_gpu),
            _ => to_cpu.and(Rows::over(pcie, shape)),
        };
        Ok(rows.entry_of(Tier::beside_home(compute(gpu), pcie)))
    };
    let home = Homes {
        entry_per_token_us: to_cpu.per_token_us,
        ..homes(1, compute(cpu), to_cpu.fixed_us)
    };
    let tiers = gpus(machine).enumerate().map(tier).collect::<Result<_, RegimeError>>()?;
    let in_ram = Costs { home: Some(home), tiers, expert_bytes: shape.bytes };
    if !used.from_disk {
        return Ok(in_ram);
    }
    Ok(in_ram.behind_disk(transfer(link(machine, of(DeviceKind::Disk)?, cpu)?)))
}

/// The GPUs with memory of their own, each as often as it is there.
pub fn gpus(machine: &Machine) -> impl Iterator<Item = &Device> {
    let own =
        |device: &&Device| device.kind == DeviceKind::Gpu && device.shares_memory_of.is_none();
    let all = machine.devices.iter().filter(own);
    all.flat_map(|device| std::iter::repeat_n(device, device.count as usize))
}

/// Hidden rows of a pass to another unit and their sums back.
#[derive(Debug, Clone, Copy)]
struct Rows {
    fixed_us: f64,
    per_token_us: f64,
}

impl Rows {
    /// Over one link, in 32 bits.
    fn over(link: TransferCost, shape: &ExpertShape) -> Self {
        let per_token_us = 2.0 * link.per_byte_us * shape.row_bytes(4) as f64;
        Self { fixed_us: 2.0 * link.latency_us, per_token_us }
    }

    /// In part of the layers only, as a mean over all.
    fn times(self, part: f64) -> Self {
        Self { fixed_us: self.fixed_us * part, per_token_us: self.per_token_us * part }
    }

    fn and(self, other: Self) -> Self {
        Self {
            fixed_us: self.fixed_us + other.fixed_us,
            per_token_us: self.per_token_us + other.per_token_us,
        }
    }

    fn entry_of(self, tier: Tier) -> Tier {
        Tier { entry_us: self.fixed_us, entry_per_token_us: self.per_token_us, ..tier }
    }
}

/// Costs of the hybrid regime where none were measured. A desktop's: memory at 25 GB/s for the
/// CPU's kernels, PCIe at 12, a device at 250. Ratios decide; [`KnownCosts`] puts measured ones in
/// their place.
pub fn typical_hybrid(expert_bytes: u64) -> Costs {
    let read_us = |gb_per_s: f64| expert_bytes as f64 / (gb_per_s * 1e3);
    // Two operations for each weight, at some 4.5 bits.
    let flop = 2.0 * expert_bytes as f64 * 8.0 / 4.5;
    let compute = |launch_us, gb_per_s, gflop_per_s: f64| ComputeCost {
        launch_us,
        per_token_us: flop / (gflop_per_s * 1e3),
        floor_us: read_us(gb_per_s),
    };
    let home = homes(1, compute(5.0, 25.0, 300.0), 0.0);
    let device = compute(10.0, 250.0, 10_000.0);
    Costs::one_tier(device, TransferCost::new(10.0, 12.0), Some(home), expert_bytes)
}

/// Costs of one expert that were measured; what is not known is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct KnownCosts {
    /// On the CPU.
    pub cpu: Option<ComputeCost>,
    /// On the device.
    pub device: Option<ComputeCost>,
    /// From one's memory to the other's.
    pub link: Option<TransferCost>,
}

impl KnownCosts {
    /// Costs of the hybrid regime for experts of `expert_bytes`: what is known, and what is typical
    /// for the rest. With the link known, rows to the CPU and back cost its latency twice.
    pub fn hybrid(&self, expert_bytes: u64) -> Costs {
        let Costs { home, tiers, .. } = typical_hybrid(expert_bytes);
        let entry_us = self.link.map_or(0.0, |link| 2.0 * link.latency_us);
        let home = home.map(|home| Homes { unit: self.cpu.unwrap_or(home.unit), entry_us, ..home });
        let (device, link) = (tiers[0].unit, tiers[0].link);
        let (device, link) = (self.device.unwrap_or(device), self.link.unwrap_or(link));
        Costs::one_tier(device, link, home, expert_bytes)
    }
}

fn homes(units: u16, unit: ComputeCost, entry_us: f64) -> Homes {
    let layout = if units > 1 { Layout::Split } else { Layout::Whole };
    Homes { units, layout, unit, entry_us, entry_per_token_us: 0.0 }
}

fn link<'a>(machine: &'a Machine, from: &Device, to: &Device) -> Result<&'a Link, RegimeError> {
    machine.link(&from.name, &to.name).ok_or_else(|| RegimeError::NoLink {
        machine: machine.name.clone(),
        from: from.name.clone(),
        to: to.name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_follow_the_regime() {
        let shape = ExpertShape::new(2048, 768, 4.5);
        let machine = motley_machine::find("desktop-24gb-gpu").unwrap();
        let costs = |regime| super::costs(regime, &machine, &shape, Efficiency::DEFAULT);
        let hybrid = costs(Regime::Hybrid).unwrap();
        assert_eq!(hybrid.lanes(), 1);
        assert!(hybrid.tiers[0].unit.us(1) < hybrid.home.unwrap().unit.us(1));
        let beyond = costs(Regime::BeyondRam).unwrap();
        assert_eq!((beyond.lanes(), beyond.expert_bytes), (0, shape.bytes));
        let missing = costs(Regime::NearData).unwrap_err();
        assert!(missing.to_string().contains("NearData"), "{missing}");
    }

    #[test]
    fn known_costs_take_the_place_of_typical_ones() {
        let typical = typical_hybrid(1_000_000);
        assert_eq!(KnownCosts::default().hybrid(1_000_000), typical);
        let (cpu, link) = (ComputeCost::constant(70.0), TransferCost::new(4.0, 20.0));
        let known = KnownCosts { cpu: Some(cpu), link: Some(link), device: None };
        let costs = known.hybrid(1_000_000);
        let home = costs.home.expect("a CPU");
        assert_eq!((home.unit, home.entry_us), (cpu, 8.0));
        let tier = costs.tiers[0];
        assert_eq!((tier.link, tier.unit), (link, typical.tiers[0].unit));
    }

    #[test]
    fn a_machine_used_whole_has_a_tier_for_each_memory() {
        let shape = ExpertShape::new(2880, 2880, 4.25);
        let machine = motley_machine::find("desktop-2gpu-24gb-8gb").unwrap();
        let used = TierUse {
            from_disk: true,
            dense_on_gpu: 1.0,
            efficiency: Efficiency::DEFAULT,
            link_share: 1.0,
        };
        let costs = costs_of_tiers(&machine, &shape, &used).unwrap();
        assert_eq!(costs.lanes(), 0);
        let parents: Vec<_> = costs.tiers.iter().map(|tier| tier.parent).collect();
        assert_eq!(parents, [None, Some(0), Some(0)]);
        let exclusive: Vec<_> = costs.tiers.iter().map(|tier| tier.exclusive).collect();
        assert_eq!(exclusive, [false, true, true]);
        // Rows leave the first GPU: 2 latencies to the CPU, 4 to the second GPU.
        assert_eq!([0, 1, 2].map(|tier| costs.tiers[tier].entry_us), [20.0, 0.0, 40.0]);
        let rate = |tier: usize| 1e-3 / costs.tiers[tier].link.per_byte_us;
        assert_eq!([0, 1, 2].map(|tier| rate(tier).round()), [7.0, 13.0, 13.0]);
        let in_ram = TierUse { from_disk: false, dense_on_gpu: 0.0, ..used };
        let in_ram = costs_of_tiers(&machine, &shape, &in_ram).unwrap();
        assert_eq!(in_ram.home.unwrap().entry_us, 0.0, "rows are the CPU's");
        assert_eq!(in_ram.tiers.iter().map(|tier| tier.entry_us).collect::<Vec<_>>(), [20.0; 2]);
        assert!(in_ram.tiers.iter().all(|tier| tier.parent.is_none() && !tier.exclusive));
    }

    #[test]
    fn near_data_units_share_every_expert() {
        let machine = motley_machine::find("rtx5080-i7-14700-ndp6").unwrap();
        let shape = ExpertShape::new(2048, 768, 16.0);
        let peak = Efficiency { compute: 1.0, bandwidth: 1.0 };
        let costs = costs(Regime::NearData, &machine, &shape, peak).unwrap();
        assert_eq!((costs.lanes(), costs.home.unwrap().units), (1, 6));
    }
}
