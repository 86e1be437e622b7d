//! What GPUs are used for beside the CPU: everything, dense weights and some experts, some
//! experts, or nothing. Dense weights and the KV cache come first: every token needs them.

use serde::{Deserialize, Serialize};

use crate::budget::Budget;

/// What goes to one or more devices, all together: dense layers and experts divide as their memory
/// does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceUse {
    /// All of it: the experts too are llama.cpp's, and Motley steps aside.
    Everything,
    /// Dense weights and KV cache, and experts in what is left: this much when all else is in.
    DenseAndExperts { expert_bytes: u64 },
    /// Dense weights and KV cache; the experts are on disk and pass through the CPU's memory alone.
    Dense,
    /// Experts only, since the rest does not fit.
    Experts { expert_bytes: u64 },
    /// Not one layer's choice of experts would fit.
    Nothing,
}

impl DeviceUse {
    /// Of devices with `rooms` (bytes) to give, for a model of which a token uses `used` experts
    /// in each layer: fewer there would be copied for nothing. Each has memory to compute in.
    pub fn of(budget: &Budget, used: u32, rooms: &[u64]) -> Self {
        let device_bytes = rooms.iter().sum::<u64>();
        let least = Self::least_bytes(budget, used);
        // Experts are not cut: of every device but one, less than a slot can stay empty.
        let cuts = rooms.len().saturating_sub(1) as u64;
        let all = (u64::from(budget.experts) + cuts) * budget.slot_bytes;
        match beside_dense(budget, rooms) {
            Some(left) if left >= all => Self::Everything,
            _ if budget.experts == 0 => Self::Nothing,
            Some(left) if left >= least => Self::DenseAndExperts { expert_bytes: left },
            _ if device_bytes >= least => Self::Experts { expert_bytes: device_bytes },
            _ => Self::Nothing,
        }
    }
}

impl DeviceUse {
    /// Whether dense weights and the KV cache are there.
    pub fn has_dense(self) -> bool {
        matches!(self, Self::Everything | Self::DenseAndExperts { .. } | Self::Dense)
    }

    /// Whether they share the experts with the CPU.
    pub fn has_some_experts(self) -> bool {
        matches!(self, Self::DenseAndExperts { .. } | Self::Experts { .. })
    }

    /// Of devices with `rooms`, what each has for weights and the KV cache. They divide as this
    /// does: what a device computes in is as large on a small one.
    pub fn rooms_for_weights(self, budget: &Budget, rooms: &[u64]) -> Vec<u64> {
        let computes_in = if self.has_dense() { budget.compute_bytes } else { 0 };
        rooms.iter().map(|room| room.saturating_sub(computes_in)).collect()
    }

    /// Memory for experts there.
    pub fn expert_bytes(self, budget: &Budget) -> u64 {
        match self {
            Self::Everything => u64::from(budget.experts) * budget.slot_bytes,
            Self::DenseAndExperts { expert_bytes } | Self::Experts { expert_bytes } => expert_bytes,
            Self::Dense | Self::Nothing => 0,
        }
    }

    /// The least memory with which one device is of use: one layer's choice of experts, or all of
    /// a model that has none.
    pub fn least_bytes(budget: &Budget, used: u32) -> u64 {
        match budget.experts {
            0 => budget.dense_bytes + budget.kv_bytes + budget.compute_bytes,
            _ => u64::from(used) * budget.slot_bytes,
        }
    }

    /// [`DeviceUse::of`] where experts are read from disk as they are needed. Dense weights come
    /// first here too: they leave their RAM to experts.
    pub fn of_streamed(budget: &Budget, used: u32, rooms: &[u64]) -> Self {
        match beside_dense(budget, rooms) {
            Some(left) if left < Self::least_bytes(budget, used) => Self::Dense,
            Some(left) => Self::DenseAndExperts { expert_bytes: left },
            None => Self::of(budget, used, rooms),
        }
    }
}

/// What is left to experts beside everything else; `None` if that does not fit. Each device has
/// memory of its own to compute in.
fn beside_dense(budget: &Budget, rooms: &[u64]) -> Option<u64> {
    let each = rooms.iter().map(|room| room.checked_sub(budget.compute_bytes));
    let for_weights: u64 = each.sum::<Option<u64>>()?;
    for_weights.checked_sub(budget.dense_bytes + budget.kv_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget {
        dense_bytes: 100,
        input_bytes: 30,
        kv_bytes: 20,
        compute_bytes: 5,
        process_bytes: 50,
        slot_bytes: 10,
        experts: 64,
    };

    #[test]
    fn dense_weights_come_first_and_all_that_fits_goes() {
        let of = |bytes| DeviceUse::of(&BUDGET, 4, &[bytes]);
        assert_eq!(of(39), DeviceUse::Nothing);
        assert_eq!(of(160), DeviceUse::Experts { expert_bytes: 160 });
        assert_eq!(of(165), DeviceUse::DenseAndExperts { expert_bytes: 40 });
        assert_eq!(of(764), DeviceUse::DenseAndExperts { expert_bytes: 639 });
        assert_eq!(of(765), DeviceUse::Everything);
    }

    #[test]
    fn several_devices_add_up_and_each_computes() {
        let of = |rooms: &[u64]| DeviceUse::of(&BUDGET, 4, rooms);
        assert_eq!(of(&[500, 265]), DeviceUse::DenseAndExperts { expert_bytes: 635 });
        assert_eq!(of(&[500, 279]), DeviceUse::DenseAndExperts { expert_bytes: 649 }, "cut once");
        assert_eq!(of(&[500, 280]), DeviceUse::Everything);
        assert_eq!(of(&[500, 4]), DeviceUse::Experts { expert_bytes: 504 }, "one cannot compute");
        assert_eq!(of(&[]), DeviceUse::Nothing);
    }

    #[test]
    fn beside_experts_on_disk_dense_weights_go_where_they_fit() {
        let of = |rooms: &[u64]| DeviceUse::of_streamed(&BUDGET, 4, rooms);
        assert_eq!([of(&[39]), of(&[])], [DeviceUse::Nothing; 2]);
        assert_eq!(of(&[124]), DeviceUse::Experts { expert_bytes: 124 });
        assert_eq!([of(&[125]), of(&[164])], [DeviceUse::Dense; 2]);
        assert_eq!(of(&[165]), DeviceUse::DenseAndExperts { expert_bytes: 40 });
        assert_eq!(of(&[9000]), DeviceUse::DenseAndExperts { expert_bytes: 8875 }, "as asked");
    }

    #[test]
    fn a_dense_model_goes_whole_or_not_at_all() {
        let of = |bytes| DeviceUse::of(&Budget { experts: 0, ..BUDGET }, 0, &[bytes]);
        assert_eq!([of(124), of(125)], [DeviceUse::Nothing, DeviceUse::Everything]);
    }
}
