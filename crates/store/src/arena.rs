//! Slots of memory for one matrix shape, held by leases. Hands out and takes back; which
//! expert deserves a slot is decided elsewhere.
//!
//! ```text
//!          lease()            fill()             clone()
//!  free ───────────► SlotLease ───────► Filled ───────────► Filled, Filled …
//!   ▲                 │  exclusive       │  shared, readable
//!   └──── drop ───────┘                  │
//!   └──────────────── last drop ─────────┘
//! ```
//!
//! One mapping holds all slots at a fixed stride, so ggml can see an arena as one tensor of
//! shape (slots, rows, columns). The number of slots in use can be lowered and raised while
//! running (M3); memory of slots above the number is given back to the system.

use std::collections::BTreeSet;
use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};

use motley_model::format_bytes;

use crate::memory::{HugePages, Mapping, page_bytes};
use crate::sync::{Mutex, MutexGuard};

/// Most slots of one arena: experts of all layers of the largest models, with room.
pub const MAX_SLOTS: u32 = 1 << 22;

/// Shape and size of an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArenaSpec {
    /// Bytes of one slot that may be used; the stride is this, rounded up to whole pages.
    pub slot_bytes: usize,
    /// Slots for which address space is reserved.
    pub max_slots: u32,
    /// Slots that may be leased at first; see [`Arena::set_usable`].
    pub usable_slots: u32,
    /// What pages back it.
    pub huge_pages: HugePages,
}

impl ArenaSpec {
    /// Slots for matrices of `matrix_bytes` read from files that want reads aligned to
    /// `alignment` bytes: with room for the aligned superset, so that a read lands in place.
    pub fn for_matrix(matrix_bytes: usize, alignment: usize, slots: u32) -> Self {
        Self {
            slot_bytes: matrix_bytes.saturating_add(alignment).next_multiple_of(alignment.max(1)),
            max_slots: slots,
            usable_slots: slots,
            huge_pages: HugePages::default(),
        }
    }
}

/// Why an arena could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArenaError {
    /// Slots without bytes, more than [`MAX_SLOTS`] of them, or more than can be addressed.
    #[error(
        "an arena of {slots} slots of {slot_bytes} bytes cannot be created (at most {MAX_SLOTS})"
    )]
    Shape { slot_bytes: usize, slots: u32 },
    /// The system refused the address space.
    #[error("the system refused {} of address space (ulimit -v?)", format_bytes(*bytes as u64))]
    Reserve { bytes: usize, source: io::Error },
}

/// Slots of one shape; clones are the same arena.
#[derive(Debug, Clone)]
pub struct Arena(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    memory: Mapping,
    slot_bytes: usize,
    stride_bytes: usize,
    max_slots: u32,
    slots: Mutex<Slots>,
}

/// Who has which slot. `leased + warm.len() <= usable` unless leases outlive a shrink.
#[derive(Debug)]
struct Slots {
    usable: u32,
    leased: u32,
    /// Free slots whose pages may be resident.
    warm: BTreeSet<u32>,
    /// Free slots without pages.
    cold: BTreeSet<u32>,
}

impl Arena {
    /// Reserves the address space; no page is used yet.
    pub fn new(spec: ArenaSpec) -> Result<Self, ArenaError> {
        let ArenaSpec { slot_bytes, max_slots, usable_slots, huge_pages } = spec;
        let shape = ArenaError::Shape { slot_bytes, slots: max_slots };
        let stride_bytes = slot_bytes.checked_next_multiple_of(page_bytes());
        let bytes = stride_bytes
            .filter(|_| slot_bytes > 0 && max_slots <= MAX_SLOTS)
            .and_then(|stride| stride.checked_mul(max_slots as usize));
        let (Some(stride_bytes), Some(bytes)) = (stride_bytes, bytes) else { return Err(shape) };
        let memory = Mapping::reserve(bytes, huge_pages)
            .map_err(|source| ArenaError::Reserve { bytes, source })?;
        let slots = Slots {
            usable: usable_slots.min(max_slots),
            leased: 0,
            warm: BTreeSet::new(),
            cold: (0..max_slots).collect(),
        };
        let slots = Mutex::new(slots);
        Ok(Self(Arc::new(Inner { memory, slot_bytes, stride_bytes, max_slots, slots })))
    }

    /// The lowest free slot, one with memory first; `None` when all usable ones are leased.
    pub fn lease(&self) -> Option<SlotLease> {
        let mut slots = self.0.slots();
        if slots.leased >= slots.usable {
            return None;
        }
        let index = slots.warm.first().or(slots.cold.first()).copied()?;
        self.0.occupy(&mut slots, index);
        Some(SlotLease { arena: self.clone(), index })
    }

    /// Changes how many slots may be leased, up to the reserved number. Pages of free slots
    /// above it are given back now, those of leased ones when they return; says how many
    /// leases still have to return.
    ///
    /// The system frees a huge page only when all of it was given back, or under pressure. To
    /// shrink at once: drop what goes, [`Filled::settle`] what stays, highest slots first, then
    /// lower the number. (1024 slots of 0.9 MB to half, scattered: 435 MB in use instead of
    /// 870, after 70 ms; without settling 870 until memory gets scarce.)
    pub fn set_usable(&self, usable_slots: u32) -> u32 {
        let mut slots = self.0.slots();
        slots.usable = usable_slots.min(self.0.max_slots);
        self.0.cool(&mut slots);
        slots.leased.saturating_sub(slots.usable)
    }

    /// Slots that may be leased.
    pub fn usable_slots(&self) -> u32 {
        self.0.slots().usable
    }

    /// Slots now leased, filled ones too.
    pub fn leased_slots(&self) -> u32 {
        self.0.slots().leased
    }

    /// Slots for which address space is reserved.
    pub fn max_slots(&self) -> u32 {
        self.0.max_slots
    }

    /// Bytes of one slot that may be used.
    pub fn slot_bytes(&self) -> usize {
        self.0.slot_bytes
    }

    /// Bytes from one slot to the next.
    pub fn stride_bytes(&self) -> usize {
        self.0.stride_bytes
    }

    /// Most memory the slots can occupy now: what a budget (M3) has to count.
    pub fn occupied_bytes(&self) -> u64 {
        let slots = self.0.slots();
        (slots.leased as u64 + slots.warm.len() as u64) * self.0.stride_bytes as u64
    }

    /// First byte of slot 0, page-aligned; slot `i` begins `i * stride_bytes()` further on.
    ///
    /// For ggml, which wants one base and a stride for all experts of a matrix. The address is
    /// good while any clone of the arena or lease of it lives; reading through it is sound only
    /// for the bytes of slots the caller holds as [`Filled`].
    pub fn base(&self) -> NonNull<u8> {
        self.0.memory.base()
    }
}

impl Inner {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_back(&self, index: u32) {
        let mut slots = self.slots();
        slots.leased -= 1;
        slots.warm.insert(index);
        self.cool(&mut slots);
    }

    /// Takes a free slot out of the free ones.
    fn occupy(&self, slots: &mut Slots, index: u32) {
        slots.leased += 1;
        if !slots.warm.remove(&index) && slots.cold.remove(&index) {
            self.memory.restore(index as usize * self.stride_bytes, self.stride_bytes);
        }
    }

    /// Gives back the pages of free slots beyond the usable number, the highest first.
    fn cool(&self, slots: &mut Slots) {
        while slots.leased as usize + slots.warm.len() > slots.usable as usize {
            let Some(index) = slots.warm.pop_last() else { return };
            // SAFETY: the slot is inside the mapping and free, and stays so while the lock is
            // held, so nobody reads or writes it.
            unsafe { self.memory.discard(index as usize * self.stride_bytes, self.stride_bytes) };
            slots.cold.insert(index);
        }
    }
}

/// One slot, exclusively held, to be filled. Dropping it returns the slot.
#[derive(Debug)]
pub struct SlotLease {
    arena: Arena,
    index: u32,
}

impl SlotLease {
    /// Number of the slot in its arena.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The arena it belongs to.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// All bytes of the slot; what an earlier tenant left, or zero.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the slot lies in the mapping, which the lease keeps alive; anonymous memory
        // is initialised; the lease is the only one of its slot and is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start().as_ptr(), self.arena.0.slot_bytes) }
    }

    /// Declares that the data lies in `[at_bytes, at_bytes + len_bytes)` of the slot and may be
    /// read; gives the lease back if that is not inside the slot.
    pub fn fill(self, at_bytes: usize, len_bytes: usize) -> Result<Filled, Self> {
        match at_bytes.checked_add(len_bytes) {
            Some(end) if end <= self.arena.0.slot_bytes => {
                Ok(Filled(Arc::new(Tenant { lease: self, at_bytes, len_bytes })))
            }
            _ => Err(self),
        }
    }

    /// First byte of the slot.
    pub(crate) fn start(&self) -> NonNull<u8> {
        // SAFETY: `index < max_slots`, so the address is inside the mapping.
        unsafe { self.arena.base().add(self.index as usize * self.arena.0.stride_bytes) }
    }
}

impl Drop for SlotLease {
    fn drop(&mut self) {
        self.arena.0.take_back(self.index);
    }
}

/// A filled slot, readable by every holder of a clone; the last drop returns the slot.
#[derive(Debug, Clone)]
pub struct Filled(Arc<Tenant>);

#[derive(Debug)]
struct Tenant {
    lease: SlotLease,
    at_bytes: usize,
    len_bytes: usize,
}

impl Filled {
    /// The data in the slot.
    pub fn bytes(&self) -> &[u8] {
        let Tenant { lease, at_bytes, len_bytes } = &*self.0;
        // SAFETY: `fill` checked that the range is inside the slot; a lease inside a tenant is
        // written by nobody.
        unsafe { std::slice::from_raw_parts(lease.start().as_ptr().add(*at_bytes), *len_bytes) }
    }

    /// Number of the slot in its arena.
    pub fn index(&self) -> u32 {
        self.0.lease.index
    }

    /// Where in the slot the data begins.
    pub fn at_bytes(&self) -> usize {
        self.0.at_bytes
    }

    /// The arena it belongs to.
    pub fn arena(&self) -> &Arena {
        &self.0.lease.arena
    }

    /// Holders of this slot now, this one included.
    pub fn readers(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// Moves the data to the lowest free slot, by copying, so that what is free lies together;
    /// gives it back unmoved if somebody else reads it or no lower slot is free. Needs no
    /// usable slot: the old one is returned.
    pub fn settle(self) -> Result<Self, Self> {
        let (arena, from) = (self.arena(), self.index());
        let mut slots = arena.0.slots();
        let lowest = slots.warm.iter().chain(&slots.cold).min().copied();
        let Some(index) = lowest.filter(|&to| to < from && self.readers() == 1) else {
            drop(slots);
            return Err(self);
        };
        arena.0.occupy(&mut slots, index);
        drop(slots);
        let mut lease = SlotLease { arena: arena.clone(), index };
        let (at_bytes, len_bytes) = (self.0.at_bytes, self.0.len_bytes);
        lease.bytes_mut()[at_bytes..at_bytes + len_bytes].copy_from_slice(self.bytes());
        Ok(Self(Arc::new(Tenant { lease, at_bytes, len_bytes })))
    }
}

#[cfg(test)]
mod schedules;
