//! From what `motley calibrate` measured to the costs a plan is made with. What was not measured
//! is derived from the machine's description.

use motley_cost::ExpertShape;
use motley_cost::calibration::{
    CalibrationFile as Table, DeviceCost, ExpertCost, KernelWay, LinkCost, MeasuredPoint,
    WeightLayout,
};

use crate::calibration::{Calibration, CoresRate, KernelRate, NoCpu, PathRate, UnitRates};

/// How experts are computed, as far as it was measured.
pub struct MeasuredKernels<'k> {
    /// How those of a type lie.
    pub layout: &'k dyn Fn(&str) -> WeightLayout,
    /// Ways to compute them, of which each number of rows takes the fastest.
    pub ways: &'k [KernelWay],
}

impl<'k> MeasuredKernels<'k> {
    /// Every way there is.
    pub fn laid_out(layout: &'k dyn Fn(&str) -> WeightLayout) -> Self {
        Self { layout, ways: &KernelWay::ALL }
    }
}

impl Calibration {
    /// The costs in `table` for experts that are computed as `kernels` says, on `threads` threads,
    /// and whose matrices are about `width` (hidden times between) large.
    pub fn measured(
        table: &Table,
        kernels: &MeasuredKernels<'_>,
        threads: u32,
        width: f64,
    ) -> Result<Self, NoCpu> {
        let MeasuredKernels { layout, ways } = kernels;
        let mut costs = Self::derive(&table.machine)?;
        let mut names: Vec<&str> = table.experts.iter().map(|e| e.quantisation.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let best = |name: &&str| {
            let of = |way: &KernelWay| table.expert_near(name, layout(name), *way, threads, width);
            // Where a way was not measured, this is another one.
            let first = of(ways.first()?)?.clone();
            let like_it = |cost: &&ExpertCost| cost.layout == first.layout;
            let others = ways.iter().filter_map(of).filter(like_it);
            Some(others.fold(first.clone(), |best, other| best.faster(other)))
        };
        let found = names.iter().filter_map(best);
        let kernels: Vec<KernelRate> = found.filter_map(|cost| kernel(&cost)).collect();
        if !kernels.is_empty() {
            costs.cpu.kernels = kernels;
        }
        if let Some(rate) = table.memory_gb_per_s(threads) {
            costs.cpu.memory_gb_per_s = rate;
        }
        if let Some(disk) = &table.disk {
            costs.disk = Some(PathRate { gb_per_s: disk.gb_per_s, latency_us: disk.latency_us });
        }
        if let Some(device) = table.devices.first() {
            costs.gpu = unit(device, width).or(costs.gpu);
            let link = table.links.iter().find(|link| link.to == device.name);
            let rate =
                |link: &LinkCost| PathRate { gb_per_s: link.gb_per_s, latency_us: link.latency_us };
            costs.link = link.map(rate).or(costs.link);
        }
        let cores = |rate: &motley_cost::calibration::MemoryRate| CoresRate {
            cores: rate.threads,
            gb_per_s: rate.gb_per_s,
        };
        costs.by_cores = table.memory.iter().map(cores).collect();
        costs.source = format!("measured {} on {}", table.provenance.date, table.provenance.cpu);
        costs.measured = true;
        Ok(costs)
    }
}

/// What a device does with experts about `width` large; `None` where none were measured.
fn unit(device: &DeviceCost, width: f64) -> Option<UnitRates> {
    let far = |cost: &ExpertCost| cost.far_from(width);
    // Of several shapes of a type the nearest.
    let is_nearest = |cost: &&ExpertCost| {
        let like = device.experts.iter().filter(|other| other.quantisation == cost.quantisation);
        like.map(far).fold(f64::INFINITY, f64::min) >= far(cost)
    };
    let kernels: Vec<_> = device.experts.iter().filter(is_nearest).filter_map(kernel).collect();
    let gb_per_s = kernels.iter().map(|kernel| kernel.one_token_gb_per_s).fold(0.0, f64::max);
    let block_us = device.experts.iter().map(|cost| cost.block_us).fold(0.0, f64::max);
    (!kernels.is_empty()).then_some(UnitRates {
        pass_us: 0.0,
        layer_us: block_us,
        memory_gb_per_s: gb_per_s,
        kernels,
        idle_w: None,
        busy_w: None,
    })
}

/// One token as it was measured, launch included; many by the fitted slope.
fn kernel(cost: &ExpertCost) -> Option<KernelRate> {
    let shape = ExpertShape::new(cost.hidden, cost.intermediate, cost.bits_per_weight);
    let first = cost.measured.first().filter(|point| point.tokens == 1);
    let one_us = first.map_or_else(|| cost.compute(&shape).us(1), |point| point.took_us);
    let last = cost.measured.last().filter(|point| point.took_us > 0.0);
    let slope = (cost.us_per_mflop > 0.0).then(|| 1e3 / cost.us_per_mflop);
    let reached = last.map(|p| f64::from(p.tokens) * shape.flop_per_token() / p.took_us * 1e-3);
    let many = slope.or(reached)?;
    let millions = 3.0 * f64::from(cost.hidden) * f64::from(cost.intermediate) / 1e6;
    let point = |p: &MeasuredPoint| MeasuredPoint { took_us: p.took_us / millions.max(1e-9), ..*p };
    (one_us > 0.0 && many > 0.0).then(|| KernelRate {
        quantisation: cost.quantisation.clone(),
        one_token_gb_per_s: shape.bytes as f64 / (one_us * 1e3),
        many_tokens_gflop_per_s: many,
        points: cost.measured.iter().map(point).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_cost::calibration::{DiskCost, FORMAT_VERSION, MemoryRate, Provenance};

    fn expert(layout: WeightLayout, threads: u32, us_per_mb: f64) -> ExpertCost {
        ExpertCost {
            quantisation: "q4_0".into(),
            bits_per_weight: 4.5,
            layout,
            way: KernelWay::Whole,
            threads,
            block_us: 20.0,
            launch_us: 0.0,
            us_per_mb,
            us_per_mflop: 10.0,
            residuals: Default::default(),
            other_shape_relative: None,
            other_shape_points_relative: None,
            hidden: 2048,
            intermediate: 768,
            measured: vec![MeasuredPoint { tokens: 1, took_us: us_per_mb * 2.654208 }],
        }
    }

    fn table() -> Table {
        Table {
            version: FORMAT_VERSION,
            provenance: Provenance {
                date: "2026-01-31T12:00:00Z".into(),
                program: "motley".into(),
                cpu: "Some CPU".into(),
                cores: 2,
                instructions: vec![],
                load_one_min: None,
                took_s: 1.0,
                quick: false,
            },
            machine: motley_machine::find("two-core-24gb").unwrap(),
            memory: vec![
                MemoryRate { threads: 1, gb_per_s: 9.0 },
                MemoryRate { threads: 2, gb_per_s: 14.0 },
            ],
            disk: Some(DiskCost {
                what: "ext4".into(),
                direct: true,
                backend: "uring".into(),
                in_flight: 4,
                gb_per_s: 1.2,
                latency_us: 90.0,
                alone_gb_per_s: 0.9,
                residuals: Default::default(),
            }),
            links: vec![],
            devices: vec![],
            experts: vec![
                expert(WeightLayout::Plain, 2, 100.0),
                expert(WeightLayout::Repacked, 2, 80.0),
            ],
        }
    }

    fn measured(table: &Table, layout: &dyn Fn(&str) -> WeightLayout) -> Calibration {
        Calibration::measured(table, &MeasuredKernels::laid_out(layout), 2, 1.6e6).unwrap()
    }

    #[test]
    fn of_the_ways_that_are_allowed_the_fastest_counts() {
        let point = |tokens, took_us| MeasuredPoint { tokens, took_us };
        let with = |way, measured: [f64; 2]| ExpertCost {
            way,
            measured: vec![point(1, measured[0]), point(64, measured[1])],
            ..expert(WeightLayout::Plain, 2, 100.0)
        };
        let experts = vec![
            with(KernelWay::Whole, [200.0, 9000.0]),
            with(KernelWay::Blocks, [210.0, 6000.0]),
            with(KernelWay::Rearranged, [900.0, 2000.0]),
        ];
        let table = Table { experts, ..table() };
        let times = |ways: &[KernelWay]| -> Vec<f64> {
            let kernels = MeasuredKernels { layout: &|_| WeightLayout::Plain, ways };
            let costs = Calibration::measured(&table, &kernels, 2, 1.6e6).unwrap();
            let millions = 3.0 * 2048.0 * 768.0 / 1e6;
            let us = |point: &MeasuredPoint| (point.took_us * millions).round();
            costs.cpu.kernels[0].points.iter().map(us).collect()
        };
        assert_eq!(times(&KernelWay::ALL), [200.0, 2000.0]);
        assert_eq!(times(&[KernelWay::Whole]), [200.0, 9000.0]);
    }

    #[test]
    fn a_devices_experts_and_link_become_costs() {
        let other = ExpertCost { hidden: 576, ..expert(WeightLayout::Plain, 1, 9.0) };
        let experts = vec![expert(WeightLayout::Plain, 1, 5.0), other];
        let to = |name: &str, gb_per_s| LinkCost {
            from: "CPU".into(),
            to: name.into(),
            latency_us: 8.0,
            gb_per_s,
            residuals: Default::default(),
        };
        let table = Table {
            devices: vec![DeviceCost { name: "Vulkan1".into(), experts }],
            links: vec![to("Vulkan0", 3.0), to("Vulkan1", 12.0)],
            ..table()
        };
        let costs = measured(&table, &|_| WeightLayout::Plain);
        assert!(costs.is_sound(), "{costs:?}");
        let gpu = costs.gpu.unwrap();
        assert_eq!((gpu.kernels.len(), gpu.layer_us), (1, 20.0));
        assert!((gpu.kernels[0].one_token_gb_per_s - 200.0).abs() < 1e-6, "{gpu:?}");
        assert_eq!(costs.link, Some(PathRate { gb_per_s: 12.0, latency_us: 8.0 }));
        let without = measured(&self::table(), &|_| WeightLayout::Plain);
        assert_eq!((without.gpu, without.link), (None, None));
    }

    #[test]
    fn measured_rates_replace_derived_ones() {
        let costs = measured(&table(), &|_| WeightLayout::Plain);
        assert!(costs.measured && costs.is_sound(), "{costs:?}");
        // 100 µs for 10⁶ bytes are 10 GB/s; 10 µs for 10⁶ operations are 100 GFLOP/s.
        let kernel = &costs.cpu.kernels[0];
        assert!((kernel.one_token_gb_per_s - 10.0).abs() < 0.01, "{kernel:?}");
        assert_eq!(kernel.many_tokens_gflop_per_s, 100.0);
        assert_eq!(costs.cpu.memory_gb_per_s, 14.0);
        assert_eq!(costs.disk, Some(PathRate { gb_per_s: 1.2, latency_us: 90.0 }));
        let other = measured(&table(), &|_| WeightLayout::Repacked);
        assert!(other.cpu.kernels[0].one_token_gb_per_s > kernel.one_token_gb_per_s);
    }

    #[test]
    fn what_was_not_measured_is_derived() {
        let bare = Table { memory: vec![], disk: None, experts: vec![], ..table() };
        let costs = measured(&bare, &|_| WeightLayout::Plain);
        let derived = Calibration::derive(&bare.machine).unwrap();
        assert_eq!(costs.cpu.kernels, derived.cpu.kernels);
        assert_eq!(costs.disk, derived.disk);
    }
}
