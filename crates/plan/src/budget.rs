//! M3: how one ceiling for memory divides, the least that works, the most that helps, and what
//! to take when nobody says. Arithmetic; the memory it speaks of is somebody else's.

use std::fmt;

use motley_model::KvType;
use serde::{Deserialize, Serialize};

use crate::headroom;

/// Least slots that work: one being computed and one being read.
pub const MIN_SLOTS: u32 = 2;

/// One chat has use for so many: where it is continued, edited, asked again, begun anew.
const SAVED_STATES_MIN: u16 = 8;
/// Those of a large model are 60 MB each.
const SAVED_STATES_MAX: u16 = 32;

/// What a session needs beside the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionShape {
    /// Length of the KV cache.
    pub context_tokens: u32,
    /// What it is kept in.
    #[serde(default)]
    pub kv: KvType,
    /// Whether layers that look back at a window keep no more than it: conversations then go on from
    /// their end only. One sequence.
    #[serde(default)]
    pub windows: bool,
    /// Largest prefill chunk.
    pub chunk_tokens: u32,
    /// Tokens of a pass whose logits are wanted: one per answer, all when text is scored.
    pub output_tokens: u32,
    /// States of recurrent layers: one per sequence, and those that are saved. Costs nothing where
    /// a model has none.
    pub states: u32,
}

/// How many states are saved for later prompts beside so many streams
/// (`motley_sched::batch::Sharing::States`).
pub fn saved_states(streams: u16) -> u16 {
    streams.clamp(SAVED_STATES_MIN, SAVED_STATES_MAX)
}

/// What a budget is divided into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Dense weights and shared experts, and a second copy of the routers.
    pub dense_bytes: u64,
    /// Of them the token embedding, which llama.cpp keeps in RAM wherever the others are.
    pub input_bytes: u64,
    /// Keys and values of the whole context, and recurrent states.
    pub kv_bytes: u64,
    /// Activations and logits of one chunk.
    pub compute_bytes: u64,
    pub process_bytes: u64,
    /// One expert's slots, rounding included.
    pub slot_bytes: u64,
    /// Experts of the model, over all layers.
    pub experts: u32,
}

/// A budget too small for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "--memory {} MiB is too little: this model needs at least {} MiB (a smaller --context or --chunk helps)",
    given_bytes >> 20,
    (needed_bytes >> 20) + 1
)]
pub struct TooLittleMemory {
    pub given_bytes: u64,
    pub needed_bytes: u64,
}

impl Budget {
    /// Everything but experts.
    pub fn fixed_bytes(&self) -> u64 {
        let parts = [self.dense_bytes, self.kv_bytes, self.compute_bytes, self.process_bytes];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// The same for RAM when a GPU with memory of its own has dense weights and KV cache.
    #[must_use]
    pub fn beside_dense_gpu(&self) -> Self {
        Self { dense_bytes: self.input_bytes, kv_bytes: 0, ..*self }
    }

    /// The same where a process is seen to hold `held_bytes` of its own before the first token: KV
    /// cache and buffers of a host, whose shape nobody told. Dense weights count beside them, since
    /// they may lie in a mapping that is not in memory yet.
    #[must_use]
    pub fn with_held(&self, held_bytes: u64) -> Self {
        let expected = self.kv_bytes.saturating_add(self.process_bytes);
        let more = held_bytes.saturating_sub(expected);
        Self { kv_bytes: self.kv_bytes.saturating_add(more), ..*self }
    }

    /// Slots for experts within `memory_bytes`; never more than all experts and one to read into.
    pub fn slots(&self, memory_bytes: u64) -> Result<u32, TooLittleMemory> {
        let left = memory_bytes.saturating_sub(self.fixed_bytes()) / self.slot_bytes.max(1);
        let slots = u32::try_from(left).unwrap_or(u32::MAX).min(self.experts.saturating_add(1));
        if slots < MIN_SLOTS && self.experts > 0 || self.fixed_bytes() > memory_bytes {
            let needed_bytes = self.smallest_bytes();
            return Err(TooLittleMemory { given_bytes: memory_bytes, needed_bytes });
        }
        Ok(if self.experts > 0 { slots } else { 0 })
    }

    /// Bytes that `slots` slots and everything else take.
    pub fn bytes_with(&self, slots: u32) -> u64 {
        self.fixed_bytes().saturating_add(self.slot_bytes.saturating_mul(u64::from(slots)))
    }

    /// The least memory that works.
    pub fn smallest_bytes(&self) -> u64 {
        self.bytes_with(if self.experts > 0 { MIN_SLOTS } else { 0 })
    }

    /// Memory in which every expert stays; more changes nothing.
    pub fn largest_sensible_bytes(&self) -> u64 {
        self.bytes_with(if self.experts > 0 { self.experts + 1 } else { 0 })
    }

    /// What `machine` can give beyond everything; 0 when it does not fit.
    pub fn spare_bytes(&self, machine: MachineMemory) -> u64 {
        machine.room_bytes().saturating_sub(self.largest_sensible_bytes())
    }

    /// What to take on `machine` when nobody says.
    pub fn default_bytes(&self, machine: MachineMemory) -> DefaultBudget {
        let (ceiling_bytes, ceiling) = machine.ceiling();
        let bytes = machine.room_bytes();
        let sensible = self.largest_sensible_bytes();
        let reason = if bytes >= sensible { BudgetReason::EverythingFits } else { ceiling };
        DefaultBudget { bytes: bytes.min(sensible), ceiling_bytes, reason }
    }
}

/// Memory of a machine at this moment, as a driver read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineMemory {
    /// Installed.
    pub total_bytes: u64,
    /// What the system could give now without swapping.
    pub available_bytes: u64,
    /// Ceiling of the control group, where there is one.
    pub cgroup_bytes: Option<u64>,
    /// What is set aside for other models of the same server.
    pub others_bytes: u64,
}

impl MachineMemory {
    /// What a run may use of it.
    pub fn room_bytes(&self) -> u64 {
        self.ceiling().0.saturating_sub(self.reserve_bytes()).saturating_sub(self.others_bytes)
    }

    fn ceiling(&self) -> (u64, BudgetReason) {
        let available = self.available_bytes.min(self.total_bytes);
        match self.cgroup_bytes.filter(|limit| *limit < available) {
            Some(limit) => (limit, BudgetReason::Cgroup),
            None => (available, BudgetReason::Available),
        }
    }

    /// What is left to everything else.
    fn reserve_bytes(&self) -> u64 {
        match self.ceiling() {
            (ceiling, BudgetReason::Cgroup) => headroom::in_control_group(ceiling),
            (ceiling, _) => headroom::beside_others(ceiling),
        }
    }
}

/// Why a default budget is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BudgetReason {
    /// Every expert fits; more would change nothing.
    EverythingFits,
    /// Bound by what the system could give.
    Available,
    /// Bound by the control group.
    Cgroup,
}

/// A budget nobody asked for, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultBudget {
    pub bytes: u64,
    /// What it was cut from.
    pub ceiling_bytes: u64,
    pub reason: BudgetReason,
}

impl fmt::Display for DefaultBudget {
    /// One line for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gib = |bytes: u64| bytes as f64 / (1u64 << 30) as f64;
        let (bytes, ceiling) = (gib(self.bytes), gib(self.ceiling_bytes));
        match self.reason {
            BudgetReason::EverythingFits => {
                write!(f, "{bytes:.1} GiB: everything fits ({ceiling:.1} GiB could be had)")
            }
            BudgetReason::Available => {
                write!(f, "{bytes:.1} GiB of the {ceiling:.1} GiB available now")
            }
            BudgetReason::Cgroup => {
                write!(f, "{bytes:.1} GiB of the {ceiling:.1} GiB this control group allows")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn budget() -> Budget {
        Budget {
            dense_bytes: GIB,
            input_bytes: GIB / 8,
            kv_bytes: GIB / 2,
            compute_bytes: GIB / 4,
            process_bytes: headroom::PROCESS_BYTES,
            slot_bytes: 3 << 20,
            experts: 3072,
        }
    }

    #[test]
    fn the_least_holds_two_slots_and_the_most_all_experts() {
        let budget = budget();
        assert_eq!(budget.slots(budget.smallest_bytes()), Ok(2));
        assert_eq!(budget.slots(budget.largest_sensible_bytes()), Ok(3073));
        assert_eq!(budget.slots(u64::MAX), Ok(3073));
        let error = budget.slots(GIB).unwrap_err();
        assert!(error.to_string().starts_with("--memory 1024 MiB is too little"), "{error}");
        let dense = Budget { experts: 0, slot_bytes: 0, ..budget };
        assert_eq!(dense.slots(8 * GIB), Ok(0));
        assert_eq!(dense.smallest_bytes(), dense.largest_sensible_bytes());
    }

    #[test]
    fn the_default_leaves_room_and_says_why() {
        let machine = |available, cgroup_bytes| MachineMemory {
            total_bytes: 24 * GIB,
            available_bytes: available,
            cgroup_bytes,
            others_bytes: 0,
        };
        let show = |memory| budget().default_bytes(memory).to_string();
        assert_eq!(
            show(machine(20 * GIB, None)),
            "10.9 GiB: everything fits (20.0 GiB could be had)"
        );
        assert_eq!(show(machine(8 * GIB, None)), "7.0 GiB of the 8.0 GiB available now");
        assert_eq!(
            show(machine(20 * GIB, Some(4 * GIB))),
            "3.7 GiB of the 4.0 GiB this control group allows"
        );
        assert_eq!(show(machine(20 * GIB, Some(1 << 62))), show(machine(20 * GIB, None)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn parts_add_up_and_never_exceed_what_was_given(
            parts in prop::array::uniform4(0u64..1 << 40),
            slot_bytes in 1u64..1 << 34,
            experts in 0u32..200_000,
            given in 0u64..1 << 48,
        ) {
            let [dense_bytes, kv_bytes, compute_bytes, process_bytes] = parts;
            let input_bytes = dense_bytes / 8;
            let budget = Budget {
                dense_bytes,
                input_bytes,
                kv_bytes,
                compute_bytes,
                process_bytes,
                slot_bytes,
                experts,
            };
            prop_assert_eq!(budget.fixed_bytes(), parts.iter().sum::<u64>());
            let beside = budget.beside_dense_gpu();
            let left = dense_bytes - input_bytes + kv_bytes;
            prop_assert_eq!(beside.fixed_bytes() + left, budget.fixed_bytes());
            prop_assert!(budget.smallest_bytes() <= budget.largest_sensible_bytes() || experts < 1);
            match budget.slots(given) {
                Ok(slots) => {
                    prop_assert!(budget.bytes_with(slots) <= given);
                    prop_assert!(slots <= experts + 1);
                    prop_assert!(experts == 0 || slots >= MIN_SLOTS);
                }
                Err(error) => prop_assert!(given < error.needed_bytes),
            }
        }

        #[test]
        fn the_default_never_exceeds_the_machine(
            total in 1u64..1 << 42,
            available in 0u64..1 << 42,
            cgroup in prop::option::of(0u64..1 << 42),
        ) {
            let memory = MachineMemory {
                total_bytes: total,
                available_bytes: available,
                cgroup_bytes: cgroup,
                others_bytes: 0,
            };
            let found = budget().default_bytes(memory);
            prop_assert!(found.bytes <= available && found.bytes <= total);
            prop_assert!(found.bytes <= cgroup.unwrap_or(u64::MAX));
        }
    }
}
