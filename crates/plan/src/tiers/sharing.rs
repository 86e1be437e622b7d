//! W6: how several equal units share a layer's experts: each a slice of every expert (tensor
//! parallel), each some experts (expert parallel), or both.

use serde::{Deserialize, Serialize};

/// Narrowest slice of an expert that still fills a unit.
pub const MIN_SLICE_WIDTH: u64 = 128;
/// Experts each unit should hold, so that uneven routing evens out between units.
pub const MIN_EXPERTS_PER_UNIT: u32 = 8;

/// Units over which an expert is sliced, and groups of units over which experts are dealt out;
/// their product is the number of units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    /// Slices of one expert.
    pub tensor_parallel: u32,
    /// Groups that hold different experts.
    pub expert_parallel: u32,
}

/// Few or wide experts are sliced, many narrow ones are dealt out; where neither alone fits, as
/// few slices as leave every group its experts.
pub fn share_experts(units: u32, experts: u32, width: u64) -> Sharing {
    let units = units.max(1);
    let wide_enough = |slices: u32| width / u64::from(slices) >= MIN_SLICE_WIDTH;
    let many_enough = |groups: u32| experts >= MIN_EXPERTS_PER_UNIT * groups;
    let sharing =
        |slices: u32| Sharing { tensor_parallel: slices, expert_parallel: units / slices };
    let mut divisors = (1..=units).filter(|slices| units.is_multiple_of(*slices));
    let fits = |slices: &u32| *slices == 1 || wide_enough(*slices);
    // Slicing costs a sum over the units in every layer, so the fewest slices that do.
    let found = divisors.find(|slices| fits(slices) && many_enough(units / slices));
    let widest = (1..=units).rev().find(|slices| units.is_multiple_of(*slices) && fits(slices));
    sharing(found.or(widest).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_wide_experts_are_sliced_and_many_narrow_ones_dealt_out() {
        let of = |units, experts, width| {
            let found = share_experts(units, experts, width);
            (found.tensor_parallel, found.expert_parallel)
        };
        assert_eq!(of(8, 8, 14_336), (8, 1), "Mixtral: eight wide experts");
        assert_eq!(of(4, 128, 768), (1, 4), "Qwen3: many narrow experts");
        assert_eq!(of(16, 64, 1408), (2, 8), "between: both");
        assert_eq!(of(64, 16, 256), (2, 32), "slices never narrower than 128");
        assert_eq!(of(1, 8, 64), (1, 1));
    }
}
