//! A slot has one tenant at a time, whatever happens to leases and to the arena's size.

use std::collections::HashSet;

use motley_model::gguf::GgmlType;
use motley_model::{ExpertTensor, Matrix, TensorPart};
use motley_store::{
    Arena, ArenaError, ArenaSpec, ExpertLease, ExpertSlot, Filled, HugePages, MAX_SLOTS, SlotLease,
};
use proptest::prelude::*;

use crate::world::arena;

#[test]
fn a_lease_becomes_filled_and_returns_with_its_last_reader() {
    let arena = arena(100, 1);
    let mut lease = arena.lease().expect("one slot");
    assert!(arena.lease().is_none());
    lease.bytes_mut()[10..13].copy_from_slice(b"abc");
    let lease = lease.fill(98, 3).expect_err("beyond the slot");
    let lease = lease.fill(usize::MAX, 2).expect_err("beyond everything");
    let filled = lease.fill(10, 3).expect("inside");
    let other = filled.clone();
    assert_eq!((filled.readers(), filled.bytes(), filled.at_bytes()), (2, &b"abc"[..], 10));
    drop(other);
    assert_eq!(arena.leased_slots(), 1);
    drop(filled);
    assert!(arena.lease().is_some());
}

#[test]
fn memory_above_the_usable_number_is_given_back() {
    let arena = arena(10_000, 3);
    assert_eq!(arena.stride_bytes() % 4096, 0);
    let mut leases: Vec<SlotLease> = std::iter::from_fn(|| arena.lease()).collect();
    leases.iter_mut().for_each(|lease| lease.bytes_mut().fill(7));
    let kept = leases.pop().expect("three leases");
    drop(leases);
    assert_eq!(arena.occupied_bytes(), 3 * arena.stride_bytes() as u64);
    assert_eq!(arena.set_usable(0), 1, "one lease has to return");
    assert_eq!(arena.occupied_bytes(), arena.stride_bytes() as u64);
    assert!(arena.lease().is_none());
    drop(kept);
    assert_eq!(arena.occupied_bytes(), 0);
    assert_eq!(arena.set_usable(99), 0);
    assert_eq!(arena.usable_slots(), 3, "no more than were reserved");
    let mut again: Vec<SlotLease> = std::iter::from_fn(|| arena.lease()).collect();
    assert!(again.iter_mut().all(|lease| lease.bytes_mut().iter().all(|&byte| byte == 0)));
}

#[test]
fn settling_moves_what_remains_to_the_lowest_slots() {
    let arena = arena(5000, 6);
    let fill = |mut lease: SlotLease| {
        let mark = lease.index() as u8 + 1;
        lease.bytes_mut()[100..200].fill(mark);
        lease.fill(100, 100).expect("it fits")
    };
    let filled: Vec<Filled> = std::iter::from_fn(|| arena.lease()).map(fill).collect();
    let odd: Vec<Filled> = filled.into_iter().filter(|slot| slot.index() % 2 == 1).collect();
    let held = odd[2].clone();
    assert_eq!(held.settle().expect_err("two readers").index(), 5);
    let settled: Vec<Filled> =
        odd.into_iter().rev().map(|slot| slot.settle().unwrap_or_else(|unmoved| unmoved)).collect();
    let places: Vec<(u32, u8)> = settled.iter().map(|s| (s.index(), s.bytes()[99])).collect();
    assert_eq!(places, [(0, 6), (2, 4), (1, 2)]);
    assert_eq!(arena.set_usable(3), 0);
    assert_eq!(arena.occupied_bytes(), 3 * arena.stride_bytes() as u64);
}

#[test]
fn slots_lie_at_a_fixed_stride_from_the_base() {
    let arena = arena(5000, 4);
    for expected in 0..4usize {
        let mut lease = arena.lease().expect("four slots");
        let address = arena.base().as_ptr() as usize + expected * arena.stride_bytes();
        assert_eq!(
            (lease.bytes_mut().as_ptr() as usize, lease.index()),
            (address, expected as u32)
        );
        std::mem::forget(lease);
    }
}

#[test]
#[cfg_attr(miri, ignore = "ends the interpreter, which has no address space to refuse")]
fn impossible_shapes_are_refused() {
    let huge_pages = HugePages::Ask;
    for (slot_bytes, max_slots) in [(0, 1), (1, MAX_SLOTS + 1), (usize::MAX, 2), (1 << 60, 64)] {
        let made = Arena::new(ArenaSpec { slot_bytes, max_slots, usable_slots: 1, huge_pages });
        assert!(matches!(made, Err(ArenaError::Shape { .. })), "{slot_bytes} {max_slots}");
    }
    let too_large = ArenaSpec { slot_bytes: 1 << 50, max_slots: 2, usable_slots: 1, huge_pages };
    assert!(matches!(Arena::new(too_large), Err(ArenaError::Reserve { .. })));
}

fn tensor(matrix: Matrix) -> ExpertTensor {
    let (part, ty) = (TensorPart::Weight, GgmlType::F32);
    ExpertTensor { tensor: 0, matrix, part, ty, file: 0, base_offset: 0, stride_bytes: 64 }
}

#[test]
fn an_expert_is_leased_whole_or_not_at_all_and_returned_so() {
    let (wide, tall) = (arena(64, 2), arena(64, 1));
    let tensors = [Matrix::Gate, Matrix::Up, Matrix::Down].map(tensor);
    let arena_of = |t: &ExpertTensor| Some(if t.matrix == Matrix::Down { &tall } else { &wide });
    let lease = ExpertLease::from_arenas(&tensors, arena_of).expect("room for one");
    assert_eq!((lease.len(), wide.leased_slots(), tall.leased_slots()), (3, 2, 1));
    assert!(ExpertLease::from_arenas(&tensors, arena_of).is_none());
    drop(lease);
    let narrow = [Matrix::Down, Matrix::Down].map(tensor);
    assert!(ExpertLease::from_arenas(&narrow, arena_of).is_none());
    assert_eq!((wide.leased_slots(), tall.leased_slots()), (0, 0), "a half lease is returned");

    let lease = ExpertLease::from_arenas(&tensors, arena_of).expect("room again");
    let slots = lease.into_slots().into_iter();
    let filled: ExpertSlot<Filled> =
        slots.map(|(m, p, slot)| (m, p, slot.fill(0, 64).expect("it fits"))).collect();
    let reader = filled.get(Matrix::Up, TensorPart::Weight).cloned();
    assert_eq!(filled.len(), 3);
    drop(filled);
    assert_eq!((wide.leased_slots(), tall.leased_slots()), (1, 0), "up is being read");
    drop(reader);
    assert_eq!((wide.leased_slots(), tall.leased_slots()), (0, 0));
}

/// What may happen to an arena.
#[derive(Debug, Clone)]
enum Step {
    Lease,
    Fill(prop::sample::Index),
    Share(prop::sample::Index),
    DropLease(prop::sample::Index),
    DropFilled(prop::sample::Index),
    Settle(prop::sample::Index),
    Resize(u32),
}

fn step() -> impl Strategy<Value = Step> {
    use prop::sample::Index;
    prop_oneof![
        4 => Just(Step::Lease),
        3 => any::<Index>().prop_map(Step::Fill),
        1 => any::<Index>().prop_map(Step::Share),
        1 => any::<Index>().prop_map(Step::DropLease),
        2 => any::<Index>().prop_map(Step::DropFilled),
        1 => any::<Index>().prop_map(Step::Settle),
        1 => (0..12u32).prop_map(Step::Resize),
    ]
}

/// The model: who holds what, and a mark in each slot that only its tenant may have written.
struct Held {
    arena: Arena,
    leases: Vec<(u8, SlotLease)>,
    filled: Vec<(u8, Filled)>,
    mark: u8,
}

impl Held {
    fn take(&mut self, step: Step) {
        match step {
            Step::Lease => self.lease(),
            Step::Fill(n) if !self.leases.is_empty() => {
                let (mark, lease) = self.leases.swap_remove(n.index(self.leases.len()));
                self.filled.push((mark, lease.fill(0, 9).expect("it fits")));
            }
            Step::Share(n) if !self.filled.is_empty() => {
                let shared = self.filled[n.index(self.filled.len())].clone();
                self.filled.push(shared);
            }
            Step::DropLease(n) if !self.leases.is_empty() => {
                self.leases.swap_remove(n.index(self.leases.len()));
            }
            Step::DropFilled(n) if !self.filled.is_empty() => {
                self.filled.swap_remove(n.index(self.filled.len()));
            }
            Step::Settle(n) if !self.filled.is_empty() => {
                let (mark, filled) = self.filled.swap_remove(n.index(self.filled.len()));
                let settled = filled.settle().unwrap_or_else(|unmoved| unmoved);
                self.filled.push((mark, settled));
            }
            Step::Resize(usable) => {
                self.arena.set_usable(usable);
            }
            _ => {}
        }
    }

    fn lease(&mut self) {
        let room = self.arena.leased_slots() < self.arena.usable_slots();
        let lease = self.arena.lease();
        assert_eq!(lease.is_some(), room);
        if let Some(mut lease) = lease {
            self.mark = self.mark.wrapping_add(1);
            lease.bytes_mut().fill(self.mark);
            self.leases.push((self.mark, lease));
        }
    }

    fn check(&mut self) {
        let mut tenants: HashSet<u32> = self.filled.iter().map(|(_, f)| f.index()).collect();
        for (mark, filled) in &self.filled {
            assert_eq!(filled.bytes(), [*mark; 9]);
        }
        for (mark, lease) in &mut self.leases {
            assert!(tenants.insert(lease.index()), "slot {} has two tenants", lease.index());
            assert!(lease.bytes_mut().iter().all(|byte| byte == mark));
        }
        assert_eq!(self.arena.leased_slots() as usize, tenants.len());
        let stride = self.arena.stride_bytes() as u64;
        let most = self.arena.usable_slots().max(self.arena.leased_slots());
        assert!(self.arena.occupied_bytes() <= u64::from(most) * stride);
    }
}

proptest! {
    #[test]
    fn a_slot_never_has_two_tenants(steps in prop::collection::vec(step(), 1..200)) {
        let arena = arena(9, 10);
        let mut held =
            Held { arena, leases: Vec::new(), filled: Vec::new(), mark: 0 };
        for step in steps {
            held.take(step);
            held.check();
        }
        let Held { arena, leases, filled, .. } = held;
        drop((leases, filled));
        prop_assert_eq!(arena.leased_slots(), 0);
    }
}
