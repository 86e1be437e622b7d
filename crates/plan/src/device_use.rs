//! What a GPU is used for beside the CPU: everything, dense weights and some experts, some
//! experts, or nothing. Dense weights and the KV cache come first: every token needs them.

use crate::budget::Budget;

/// What goes to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceUse {
    /// All of it: the experts too are llama.cpp's, and Motley steps aside.
    Everything,
    /// Dense weights and KV cache, and experts in what is left: this much when all else is in.
    DenseAndExperts {
        /// Memory for experts.
        expert_bytes: u64,
    },
    /// Experts only, since the rest does not fit.
    Experts {
        /// Memory for experts.
        expert_bytes: u64,
    },
    /// Not one layer's choice of experts would fit.
    Nothing,
}

impl DeviceUse {
    /// Of a device with `device_bytes` to give, for a model of which a token uses `used` experts
    /// in each layer: fewer on the device would be copied for nothing.
    pub fn of(budget: &Budget, used: u32, device_bytes: u64) -> Self {
        let dense = budget.dense_bytes + budget.kv_bytes + budget.compute_bytes;
        let slots = |slots: u32| u64::from(slots) * budget.slot_bytes;
        let (all, least) = (slots(budget.experts), slots(used));
        let left = device_bytes.saturating_sub(dense);
        if device_bytes >= dense && left >= all {
            Self::Everything
        } else if budget.experts == 0 {
            Self::Nothing
        } else if left >= least {
            Self::DenseAndExperts { expert_bytes: left }
        } else if device_bytes >= least {
            Self::Experts { expert_bytes: device_bytes }
        } else {
            Self::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Budget = Budget {
        dense_bytes: 100,
        kv_bytes: 20,
        compute_bytes: 5,
        process_bytes: 50,
        slot_bytes: 10,
        experts: 64,
    };

    #[test]
    fn dense_weights_come_first_and_all_that_fits_goes() {
        let of = |bytes| DeviceUse::of(&BUDGET, 4, bytes);
        assert_eq!(of(39), DeviceUse::Nothing);
        assert_eq!(of(160), DeviceUse::Experts { expert_bytes: 160 });
        assert_eq!(of(165), DeviceUse::DenseAndExperts { expert_bytes: 40 });
        assert_eq!(of(764), DeviceUse::DenseAndExperts { expert_bytes: 639 });
        assert_eq!(of(765), DeviceUse::Everything);
    }

    #[test]
    fn a_dense_model_goes_whole_or_not_at_all() {
        let of = |bytes| DeviceUse::of(&Budget { experts: 0, ..BUDGET }, 0, bytes);
        assert_eq!([of(124), of(125)], [DeviceUse::Nothing, DeviceUse::Everything]);
    }
}
