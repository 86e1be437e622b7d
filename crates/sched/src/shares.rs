//! How layers divide among devices, and the slots of their memory among layers and between experts
//! that stay and those that pass through. Numbers in, numbers out: a driver made the slots.
//!
//! Where there are several devices, the experts of a layer are on one of them: a token goes through
//! the layers in turn, so one computes at a time, as llama.cpp divides dense layers
//! (docs/decisions/0072).
//!
//! A slot fits the experts of every layer of its device whose matrices have the same shape and
//! quantisation. With one kind of layer all slots are one pool; with several, each kind has a pool,
//! and its layers share that equally, since an expert does not fit every slot.

use crate::cache::Capacity;
use crate::scheduler::SchedulerLimits;

/// The slots of one or more devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceSlots {
    /// Of all kinds.
    pub all: u32,
    /// Most to be used.
    pub most: u32,
    /// Experts of a layer that has some.
    pub experts: u32,
    /// Experts of the model.
    pub all_experts: u32,
    /// Every layer of the model.
    pub layers: Vec<LayerSlots>,
}

/// The slots that fit one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerSlots {
    /// Which device they are on.
    pub device: u16,
    /// How many; none for a layer without experts.
    pub slots: u32,
    /// Bytes of one: layers with equally many of equal size share them.
    pub slot_bytes: u64,
}

/// What a scheduler may use of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shares {
    /// Slots whose experts stay.
    pub capacity: Capacity,
    /// Limits, with the slots that let experts through.
    pub limits: SchedulerLimits,
}

impl Shares {
    /// A few slots pass experts through, the others keep them; with room for all experts there
    /// is nothing to pass.
    pub fn of(device: &DeviceSlots) -> Self {
        let slots = device.all.min(device.most);
        let holds_all = slots == device.all_experts;
        if holds_all {
            let limits = SchedulerLimits::beside_home(0);
            return Self { capacity: device.capacity(slots, 0), limits };
        }
        // Every pool lets experts through, so the smallest says how many at once.
        let limits = SchedulerLimits::beside_home(slots.min(device.smallest_pool(slots)));
        let staging = u32::from(limits.staging_slots);
        Self { capacity: device.capacity(slots, staging), limits }
    }
}

/// The device of each layer, given the bytes of its experts and each device's room: neighbours
/// stay together, and a device gets as much of the experts as it has of the room. `None` where
/// nobody has any.
pub fn devices_of_layers(expert_bytes: &[u64], rooms: &[u64]) -> Vec<Option<u16>> {
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

impl DeviceSlots {
    /// What keeps experts when `used` slots are used and every pool lets experts through `staging`
    /// of its own.
    fn capacity(&self, used: u32, staging: u32) -> Capacity {
        match self.layers.iter().all(|layer| [0, self.all].contains(&layer.slots)) {
            true => Capacity::Global { slots: used.saturating_sub(staging) },
            false => Capacity::PerLayer { slots: self.per_layer(used, staging) },
        }
    }

    /// The slots of the smallest pool when `used` of all are used.
    fn smallest_pool(&self, used: u32) -> u32 {
        let pools = self.layers.iter().filter(|layer| layer.slots > 0);
        pools.map(|layer| self.part_of(layer, used)).min().unwrap_or(0)
    }

    fn part_of(&self, pool: &LayerSlots, used: u32) -> u32 {
        (u64::from(pool.slots) * u64::from(used) / u64::from(self.all.max(1))) as u32
    }

    /// The slots each layer keeps experts in when `used` of all are used and every pool lets
    /// experts through `staging` of its own.
    fn per_layer(&self, used: u32, staging: u32) -> Vec<u32> {
        let kept = |layer: &LayerSlots| {
            let sharing = self.layers.iter().filter(|other| *other == layer).count() as u32;
            let pool = self.part_of(layer, used);
            (pool.saturating_sub(staging) / sharing).min(self.experts)
        };
        self.layers.iter().map(kept).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn layer(slots: u32, slot_bytes: u64) -> LayerSlots {
        LayerSlots { device: 0, slots, slot_bytes }
    }

    #[test]
    fn layers_of_one_kind_share_one_pool() {
        let layers = vec![layer(0, 0), layer(100, 7), layer(100, 7), layer(100, 7)];
        let device =
            DeviceSlots { all: 100, most: u32::MAX, experts: 64, all_experts: 192, layers };
        let shares = Shares::of(&device);
        assert_eq!(shares.limits.staging_slots, 8);
        assert_eq!(shares.capacity, Capacity::Global { slots: 92 });
        let few = Shares::of(&DeviceSlots { most: 40, ..device.clone() });
        assert_eq!(few.capacity, Capacity::Global { slots: 32 });
    }

    #[test]
    fn with_room_for_all_nothing_passes_through() {
        let layers = vec![layer(16, 7); 2];
        let device = DeviceSlots { all: 16, most: u32::MAX, experts: 8, all_experts: 16, layers };
        assert_eq!(Shares::of(&device).capacity, Capacity::Global { slots: 16 });
    }

    #[test]
    fn each_kind_of_layer_has_a_pool_of_its_own() {
        // Two layers of one quantisation share 40 slots, one of another has 20, one no experts.
        let layers = vec![layer(40, 7), layer(20, 9), layer(40, 7), layer(0, 0)];
        let device = DeviceSlots { all: 60, most: u32::MAX, experts: 64, all_experts: 192, layers };
        assert_eq!(Shares::of(&device).capacity, Capacity::PerLayer { slots: vec![17, 15, 17, 0] });
        let half = DeviceSlots { most: 30, ..device };
        assert_eq!(Shares::of(&half).limits.staging_slots, 2);
        assert_eq!(Shares::of(&half).capacity, Capacity::PerLayer { slots: vec![9, 8, 9, 0] });
    }

    #[test]
    fn equal_pools_on_two_devices_are_two() {
        let on = |device| LayerSlots { device, slots: 20, slot_bytes: 7 };
        let layers = vec![on(0), on(0), on(1), on(1)];
        let device = DeviceSlots { all: 40, most: u32::MAX, experts: 64, all_experts: 256, layers };
        assert_eq!(Shares::of(&device).capacity, Capacity::PerLayer { slots: vec![7; 4] });
    }

    #[test]
    fn layers_divide_as_the_rooms_do() {
        let of = |layers: &[u64], rooms: &[u64]| devices_of_layers(layers, rooms);
        let on = |devices: &[u16]| devices.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(of(&[10; 6], &[24, 8]), on(&[0, 0, 0, 0, 1, 1]));
        assert_eq!(of(&[0, 10, 10, 10], &[8, 8, 8]), on(&[0, 0, 1, 2]));
        assert_eq!(of(&[30, 10, 10, 10], &[8, 8]), on(&[0, 1, 1, 1]), "bytes count, not layers");
        assert_eq!(of(&[10; 3], &[5, 0]), on(&[0; 3]), "nothing goes where there is no room");
        assert_eq!(of(&[10; 2], &[0, 0]), [None, None]);
    }

    proptest! {
        #[test]
        fn no_device_gets_more_than_its_part_and_a_layer(
            layers in proptest::collection::vec(0u64..1 << 40, 1..80),
            rooms in proptest::collection::vec(0u64..1 << 40, 1..5),
        ) {
            prop_assume!(layers.iter().sum::<u64>() > 0 && rooms.iter().sum::<u64>() > 0);
            let found = devices_of_layers(&layers, &rooms);
            prop_assert!(found.is_sorted() && found.iter().all(Option::is_some));
            let (all, room) = (layers.iter().sum::<u64>(), rooms.iter().sum::<u64>());
            let most = *layers.iter().max().expect("a layer");
            for (device, &own) in rooms.iter().enumerate() {
                let given = layers.iter().zip(&found).filter(|(_, at)| **at == Some(device as u16));
                let given: u64 = given.map(|(bytes, _)| bytes).sum();
                let part = (u128::from(all) * u128::from(own) / u128::from(room)) as u64;
                prop_assert!(given <= part + most + 1, "{given} of {part}");
            }
        }

        /// What stays and what passes through never needs more slots than the pools have.
        #[test]
        fn no_pool_is_overdrawn(
            pools in proptest::collection::vec((1u32..200, 1usize..5), 1..4),
            experts in 1u32..64,
            most in 1u32..700,
        ) {
            let pools: Vec<(LayerSlots, usize)> = pools
                .iter()
                .enumerate()
                .map(|(kind, &(slots, layers))| (layer(slots, kind as u64 + 1), layers))
                .collect();
            let layers: Vec<_> =
                pools.iter().flat_map(|&(pool, layers)| vec![pool; layers]).collect();
            let all = pools.iter().map(|(pool, _)| pool.slots).sum();
            let all_experts = experts * layers.len() as u32;
            let device = DeviceSlots { all, most, experts, all_experts, layers };
            let shares = Shares::of(&device);
            let used = all.min(most);
            match &shares.capacity {
                Capacity::Global { slots } => prop_assert!(*slots <= used),
                Capacity::PerLayer { slots } => {
                    let passing = match used == all_experts {
                        true => 0,
                        false => u32::from(shares.limits.staging_slots),
                    };
                    let mut first = 0;
                    for (pool, layers) in pools {
                        let kept: u32 = slots[first..first + layers].iter().sum();
                        prop_assert!(kept + passing <= pool.slots, "{kept} of {pool:?}");
                        first += layers;
                    }
                    prop_assert!(slots.iter().all(|&slots| slots <= experts));
                    prop_assert!(slots.iter().sum::<u32>() <= used);
                }
            }
        }
    }
}
