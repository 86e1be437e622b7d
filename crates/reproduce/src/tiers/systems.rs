//! The compared arrangements of one machine with one model: what each memory holds, who decides,
//! and one drive through a trace. Puts together; judges nothing.

use motley_cost::{ComputeCost, Efficiency};
use motley_machine::{DeviceKind, Machine};
use motley_sched::cache::{Capacity, ExpertCache, PolicyChoice};
use motley_sched::prefetch::{PrefetchChoice, Prefetcher};
use motley_sched::regime::{TierUse, costs_of_tiers};
use motley_sched::strategy::{LayerSplit, OnDemand, Pinned, TimelineStrategy};
use motley_sched::{Costs, Scheduler, SchedulerLimits, SchedulerParts, Strategy, TierParts};
use motley_sim::drive::drive;
use motley_sim::outcome::Outcome;
use motley_sim::predictions::{LayersAhead, PredictionParams};
use motley_sim::world::World;
use motley_trace::{ExpertGrid, ExpertKey, Trace};

use super::divided::{DividedPrefetcher, DividedTimelines, Division};
use super::fixed::{FixedResidents, FixedSplit};
use super::rooms::{DenseFirst, Rooms};
use crate::compared::model::Model;
use crate::compared::routing::Stream;
use crate::error::{ReproduceError, lacks};
use crate::machines::Assumptions;

/// Tokens of a batch from which llama.cpp copies experts of CPU layers to the GPU.
const OFFLOAD_FROM_TOKENS: u32 = 32;

/// Who schedules what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// The best of two memories: disk and RAM, the GPUs with dense weights alone; or RAM and GPUs,
    /// each with whole layers.
    Today(PrefetchChoice),
    /// Every memory, unit and link at once.
    Tiers(Setting),
    /// llama.cpp: experts of whole layers on GPUs, the others with the CPU. Beyond RAM these come
    /// from its mapping, taken as LRU over whole experts.
    Split,
    /// kTransformers: the most used experts of each layer on its GPU. Needs all in RAM.
    Pinned,
    /// The same in prefill with the others copied.
    PinnedLoading,
}

/// What every memory at once chooses by replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// What is read from disk early; nothing where RAM has all.
    pub disk: PrefetchChoice,
    /// What is copied to GPUs early.
    pub gpus: PrefetchChoice,
    pub dense: DenseFirst,
}

impl Setting {
    /// Nothing early, dense weights on GPUs.
    pub const PLAIN: Self =
        Self { disk: PrefetchChoice::None, gpus: PrefetchChoice::None, dense: DenseFirst::Gpus };

    /// Predictions that one of both looks at.
    fn layers_ahead(self) -> LayersAhead {
        LayersAhead::asked(|phase| {
            self.disk.layers_ahead_in(phase).max(self.gpus.layers_ahead_in(phase))
        })
    }
}

/// One machine with one model.
pub struct Pair<'a> {
    pub machine: &'a Machine,
    pub model: &'a Model,
    /// Its routing.
    pub stream: &'a Stream,
    /// What is left open.
    pub open: Assumptions,
}

/// A scheduler's parts and what is there before the first layer.
struct Parts {
    costs: Costs,
    tiers: Vec<TierParts>,
    strategy: Box<dyn Strategy>,
    /// Of each tier.
    residents: Vec<Vec<ExpertKey>>,
}

impl Pair<'_> {
    /// Whether RAM is too small for the experts.
    pub fn is_beyond_ram(&self) -> bool {
        !self.rooms(DenseFirst::Gpus).ram_holds(&self.model.shape())
    }

    /// What the memories hold.
    pub fn rooms(&self, dense: DenseFirst) -> Rooms {
        Rooms::of(self.machine, &self.model.shape(), dense)
    }

    /// Drives one system through `trace`; `None` where it cannot run.
    pub fn run(&self, system: System, trace: &Trace) -> Result<Option<Outcome>, ReproduceError> {
        let setting = match system {
            System::Tiers(setting) => setting,
            System::Today(prefetch) => {
                Setting { disk: prefetch, gpus: prefetch, dense: DenseFirst::Gpus }
            }
            _ => Setting::PLAIN,
        };
        let mut rooms = self.rooms(setting.dense);
        let costs = self.costs(&rooms)?;
        let parts = match system {
            System::Today(_) => self.today(&mut rooms, costs, trace, setting),
            System::Tiers(_) => self.at_once(&rooms, costs, trace, setting),
            System::Split => self.split(&rooms, costs, trace),
            System::Pinned | System::PinnedLoading if self.is_beyond_ram() => return Ok(None),
            System::Pinned => self.pinned(&rooms, costs, trace, None),
            System::PinnedLoading => self.pinned(&rooms, costs, trace, Some(1)),
        };
        let Parts { costs, tiers, strategy, residents } = parts;
        let mut scheduler =
            Scheduler::new(SchedulerParts { costs: costs.clone(), tiers, strategy });
        for (tier, residents) in (0..).zip(&residents) {
            scheduler.preload(tier, residents);
        }
        let accuracy = self.open.prediction_accuracy;
        let predictions = PredictionParams { layers: setting.layers_ahead(), accuracy, seed: 5 };
        let dense = rooms.dense_cost(self.machine, &self.model.shape());
        let mut world = World::new(costs, dense).with_predictions(predictions);
        Ok(Some(drive(&mut trace.source(), &mut scheduler, &mut world, None)?))
    }

    /// What everything costs with every memory in use.
    pub fn costs(&self, rooms: &Rooms) -> Result<Costs, ReproduceError> {
        let used = TierUse {
            from_disk: self.is_beyond_ram(),
            dense_on_gpu: rooms.dense_on_gpus(),
            efficiency: Efficiency::DEFAULT,
            link_share: self.open.link_share,
        };
        let shape = self.model.shape().expert;
        let mut costs = costs_of_tiers(self.machine, &shape, &used)?;
        let first_gpu = usize::from(used.from_disk);
        for gpu in &mut costs.tiers[first_gpu..] {
            gpu.unit.launch_us = self.open.gpu_start_us;
        }
        let cpu = lacks(self.machine, self.machine.first(DeviceKind::Cpu), "cpu")?;
        let Assumptions { cpu_arithmetic: compute, cpu_share: bandwidth, .. } = self.open;
        let on_cpu = ComputeCost::derive(cpu, &shape, Efficiency { compute, bandwidth });
        match &mut costs.home {
            Some(home) => home.unit = on_cpu,
            None => costs.tiers[0].unit = on_cpu,
        }
        Ok(costs)
    }

    /// Disk and RAM, or RAM and GPUs with whole layers each.
    fn today(&self, rooms: &mut Rooms, mut costs: Costs, trace: &Trace, setting: Setting) -> Parts {
        let grid = trace.header.grid();
        if self.is_beyond_ram() {
            costs.tiers.truncate(1);
            let tiers =
                vec![self.ram_tier(rooms.ram, PolicyChoice::default(), trace, setting.disk)];
            let residents = vec![self.most_used(grid)];
            return Parts { costs, tiers, strategy: Box::new(OnDemand::default()), residents };
        }
        if rooms.gpus.len() == 1 {
            return self.at_once(rooms, costs, trace, setting);
        }
        // Dense weights go with their layers.
        let (tier_of, per_device) = self.layers_of_devices(rooms, grid);
        rooms.dense = per_device.iter().map(|&n| f64::from(n) / f64::from(grid.layers)).collect();
        let division = Division::new(tier_of, &costs);
        let tier = |(tier, &layers): (usize, &u32)| {
            let limits = SchedulerLimits::beside_home(rooms.gpus[tier]);
            let kept = rooms.gpus[tier].saturating_sub(limits.staging_slots.into());
            let each = (kept / layers.max(1)).min(u32::from(grid.experts));
            let own = |layer: &u16| if *layer == tier as u16 { each } else { 0 };
            let slots = division.tier_of.iter().map(own).collect();
            let capacity = Capacity::PerLayer { slots };
            let policy = PolicyChoice::default().build(&trace.header);
            let inner = setting.gpus.build(grid);
            let prefetcher: Box<dyn Prefetcher> =
                Box::new(DividedPrefetcher::new(division.clone(), inner));
            TierParts { cache: ExpertCache::new(grid, capacity, policy), prefetcher, limits }
        };
        let tiers = per_device.iter().enumerate().map(tier).collect();
        let residents = self.of_own_layers(&division.tier_of, grid, rooms.gpus.len());
        let strategy = Box::new(DividedTimelines::new(division));
        Parts { costs, tiers, strategy, residents }
    }

    /// All memories, H1 over all of them.
    fn at_once(&self, rooms: &Rooms, mut costs: Costs, trace: &Trace, setting: Setting) -> Parts {
        let grid = trace.header.grid();
        let policy = PolicyChoice::default();
        let (mut tiers, mut kept) = (Vec::new(), Vec::new());
        if self.is_beyond_ram() {
            tiers.push(self.ram_tier(rooms.ram, policy, trace, setting.disk));
        }
        let first_gpu = tiers.len();
        for &slots in rooms.gpus.iter().filter(|slots| **slots > 0) {
            let slots = slots.min(grid.len() as u32);
            let limits = SchedulerLimits::beside_home(slots);
            kept.push((slots - u32::from(limits.staging_slots)) as usize);
            let capacity = Capacity::Global { slots: slots - u32::from(limits.staging_slots) };
            let cache = match tiers.is_empty() {
                true => ExpertCache::new(grid, capacity, policy.build(&trace.header)),
                false => ExpertCache::following(grid, capacity),
            };
            tiers.push(TierParts { cache, prefetcher: setting.gpus.build(grid), limits });
        }
        let mut number = 0;
        costs.tiers.retain(|_| {
            number += 1;
            number <= first_gpu || rooms.gpus[number - 1 - first_gpu] > 0
        });
        let residents = self.hottest_lowest(grid, first_gpu, &kept);
        Parts { costs, tiers, strategy: Box::new(TimelineStrategy::default()), residents }
    }

    /// The most used on the GPUs, the first one first; the next in RAM.
    fn hottest_lowest(
        &self,
        grid: ExpertGrid,
        first_gpu: usize,
        kept: &[usize],
    ) -> Vec<Vec<ExpertKey>> {
        let mut left = self.most_used(grid);
        let mut of_gpus = Vec::new();
        for &kept in kept {
            let rest = left.split_off(kept.min(left.len()));
            of_gpus.push(std::mem::replace(&mut left, rest));
        }
        let ram = std::iter::once(left).take(first_gpu);
        ram.chain(of_gpus).collect()
    }

    /// llama.cpp: as many whole layers as fit, from the last backwards, GPU after GPU.
    fn split(&self, rooms: &Rooms, costs: Costs, trace: &Trace) -> Parts {
        let grid = trace.header.grid();
        let experts = u32::from(grid.experts);
        let whole: Vec<u32> = rooms.gpus.iter().map(|slots| slots / experts * experts).collect();
        let mut left = LayerSplit::residents(grid, whole.iter().sum());
        let mut residents = Vec::new();
        for &slots in &whole {
            let rest = left.split_off((slots as usize).min(left.len()));
            residents.push(std::mem::replace(&mut left, rest));
        }
        let gpu_of = vec![0; usize::from(grid.layers)];
        self.fixed(
            rooms,
            costs,
            trace,
            Fixed { residents, gpu_of, from: Some(OFFLOAD_FROM_TOKENS) },
        )
    }

    /// kTransformers: the most used of each layer on the layer's GPU.
    fn pinned(&self, rooms: &Rooms, costs: Costs, trace: &Trace, from: Option<u32>) -> Parts {
        let grid = trace.header.grid();
        let (gpu_of, per_device) = self.layers_of_devices(rooms, grid);
        let each = |gpu: usize| (rooms.gpus[gpu] / per_device[gpu].max(1)) as usize;
        let mut residents = self.of_own_layers(&gpu_of, grid, rooms.gpus.len());
        for (gpu, keys) in residents.iter_mut().enumerate() {
            let mut taken = vec![0; usize::from(grid.layers)];
            keys.retain(|key| {
                let taken = &mut taken[usize::from(key.layer)];
                *taken += 1;
                *taken <= each(gpu)
            });
        }
        self.fixed(rooms, costs, trace, Fixed { residents, gpu_of, from })
    }

    fn fixed(&self, rooms: &Rooms, mut costs: Costs, trace: &Trace, fixed: Fixed) -> Parts {
        let grid = trace.header.grid();
        let beyond = self.is_beyond_ram();
        costs.tiers.iter_mut().for_each(|tier| tier.exclusive = false);
        let ram = beyond
            .then(|| self.ram_tier(rooms.ram, PolicyChoice::Lru, trace, PrefetchChoice::None));
        let gpu = |residents: &Vec<ExpertKey>| TierParts {
            cache: ExpertCache::new(
                grid,
                Capacity::Global { slots: residents.len() as u32 },
                Box::new(FixedResidents),
            ),
            prefetcher: PrefetchChoice::None.build(grid),
            limits: SchedulerLimits::default(),
        };
        let tiers = ram.into_iter().chain(fixed.residents.iter().map(gpu)).collect();
        let first_gpu = u16::from(beyond);
        let of_ram = beyond.then(|| self.most_used(grid));
        Parts {
            costs,
            tiers,
            strategy: Box::new(FixedSplit {
                ram: beyond.then_some(0),
                gpu_of: fixed.gpu_of.iter().map(|gpu| gpu + first_gpu).collect(),
                copies_from: fixed.from,
                keeps: beyond,
            }),
            residents: of_ram.into_iter().chain(fixed.residents).collect(),
        }
    }

    fn ram_tier(
        &self,
        slots: u32,
        policy: PolicyChoice,
        trace: &Trace,
        prefetch: PrefetchChoice,
    ) -> TierParts {
        let grid = trace.header.grid();
        let limits = SchedulerLimits::beyond_ram(slots, prefetch);
        let kept = slots.saturating_sub(limits.staging_slots.into());
        let cache =
            ExpertCache::new(grid, Capacity::Global { slots: kept }, policy.build(&trace.header));
        TierParts { cache, prefetcher: prefetch.build(grid), limits }
    }

    /// The GPU of each layer, as their rooms divide, and how many layers each has.
    fn layers_of_devices(&self, rooms: &Rooms, grid: ExpertGrid) -> (Vec<u16>, Vec<u32>) {
        let bytes = vec![1; usize::from(grid.layers)];
        let room: Vec<u64> = rooms.gpus.iter().map(|&slots| slots.into()).collect();
        let of = devices_of_layers(&bytes, &room);
        let of: Vec<u16> = of.into_iter().map(Option::unwrap_or_default).collect();
        let count = |gpu: u16| of.iter().filter(|at| **at == gpu).count() as u32;
        let counts = (0..rooms.gpus.len() as u16).map(count).collect();
        (of, counts)
    }

    /// For each GPU the experts of its layers, the most used first.
    fn of_own_layers(&self, gpu_of: &[u16], grid: ExpertGrid, gpus: usize) -> Vec<Vec<ExpertKey>> {
        let all = Pinned::residents(grid, &self.stream.uses, grid.experts.into());
        let own = |gpu: usize| {
            all.iter()
                .copied()
                .filter(move |key| usize::from(gpu_of[usize::from(key.layer)]) == gpu)
        };
        (0..gpus).map(|gpu| own(gpu).collect()).collect()
    }

    /// All experts, the most used of the counted tokens first.
    fn most_used(&self, grid: ExpertGrid) -> Vec<ExpertKey> {
        let uses = |key: &ExpertKey| self.stream.uses[grid.index(*key)];
        let each = |layer| (0..grid.experts).map(move |expert| ExpertKey::new(layer, expert));
        let mut keys: Vec<ExpertKey> = (0..grid.layers).flat_map(each).collect();
        keys.sort_by_key(|key| std::cmp::Reverse(uses(key)));
        keys
    }
}

/// What a compared system keeps on each GPU.
struct Fixed {
    residents: Vec<Vec<ExpertKey>>,
    /// The GPU of each layer.
    gpu_of: Vec<u16>,
    /// Tokens of a prompt's pass from which experts are copied.
    from: Option<u32>,
}

/// The device of each layer, given the bytes of its experts and each device's room: neighbours
/// stay together, and a device gets as much of the experts as it has of the room. `None` where
/// nobody has any.
fn devices_of_layers(expert_bytes: &[u64], rooms: &[u64]) -> Vec<Option<u16>> {
    let sum = |values: &[u64]| values.iter().map(|&value| u128::from(value)).sum::<u128>();
    let (all, room) = (sum(expert_bytes), sum(rooms));
    let device_of = |layer: usize| {
        // Where the layer's middle falls, if the devices' rooms lie beside each other.
        let middle = 2 * sum(&expert_bytes[..layer]) + u128::from(expert_bytes[layer]);
        let ends = |device: usize| 2 * sum(&rooms[..=device]) * all;
        (0..rooms.len()).find(|&device| middle * room < ends(device)).map(|device| device as u16)
    };
    (0..expert_bytes.len()).map(device_of).collect()
}
