//! How the slots of a device's memory divide among layers and between experts that stay and those
//! that pass through. Numbers in, numbers out: a driver made the slots.
//!
//! Every device holds experts of every layer, so that all of them compute at once
//! (docs/decisions/0086).
//!
//! A slot fits the experts of every layer whose matrices have the same shape and
//! quantisation. With one kind of layer all slots are one pool; with several, each kind has a pool,
//! and its layers share that equally, since an expert does not fit every slot.

use crate::cache::Capacity;
use crate::scheduler::SchedulerLimits;

/// The slots of one device.
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

/// Divides `most` slots among devices as their own `slots` are; each has at most its own.
pub fn divide(most: u32, slots: &[u32]) -> Vec<u32> {
    let all: u64 = slots.iter().map(|&slots| u64::from(slots)).sum();
    let most = u64::from(most).min(all);
    // Up to and including each device, so that nothing is lost in rounding.
    let upto = |device: usize| {
        let before: u64 = slots[..device].iter().map(|&slots| u64::from(slots)).sum();
        before * most / all.max(1)
    };
    (0..slots.len()).map(|device| (upto(device + 1) - upto(device)) as u32).collect()
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
        LayerSlots { slots, slot_bytes }
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
    fn slots_divide_as_devices_have_them() {
        assert_eq!(divide(40, &[60, 20]), [30, 10]);
        assert_eq!(divide(u32::MAX, &[60, 20]), [60, 20]);
        assert_eq!(divide(5, &[0, 3, 3, 3]), [0, 1, 2, 2]);
        assert!(divide(5, &[]).is_empty());
        assert_eq!(divide(7, &[0, 0]), [0, 0]);
    }

    proptest! {
        #[test]
        fn no_slot_is_lost_or_given_twice(
            most in 0u32..2000,
            slots in proptest::collection::vec(0u32..500, 1..9),
        ) {
            let given = divide(most, &slots);
            prop_assert!(given.iter().zip(&slots).all(|(given, own)| given <= own));
            prop_assert_eq!(given.iter().sum::<u32>(), most.min(slots.iter().sum()));
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
