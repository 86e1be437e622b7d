//! Slots and leases: which expert holds which slot, and who may be sent away.
//! Holds no bytes: a slot is a number the store maps to memory.
//!
//! ```text
//!            admit                 release (last lease)
//!   free ───────────▶ leased ◀───────────────────────▶ candidate
//!     ▲                              lease                 │
//!     └──────────── evict, or admit of another ────────────┘
//! ```

use motley_trace::{ExpertGrid, ExpertKey};
use thiserror::Error;

use super::{CachePolicy, Capacity, Rank, Ranks, Routed};

/// A slot's number, `0..slots`. In a per-layer cache each layer owns a contiguous range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotId(pub u32);

/// The right to use a resident expert's slot. While it lives the slot keeps its expert.
///
/// Give it back with [`ExpertCache::release`]; it cannot be copied. A lost lease blocks its slot
/// for good, which is safe but wasteful.
#[must_use = "a lease that is not released blocks its slot"]
#[derive(Debug, PartialEq, Eq)]
pub struct Lease {
    key: ExpertKey,
    slot: SlotId,
}

impl Lease {
    /// The expert in the slot.
    pub fn key(&self) -> ExpertKey {
        self.key
    }

    /// The slot.
    pub fn slot(&self) -> SlotId {
        self.slot
    }
}

/// A slot has been given to an expert; its bytes are still to be loaded.
#[derive(Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Lease on the slot, to be held at least until the bytes have arrived.
    pub lease: Lease,
    /// The expert that had the slot before.
    pub evicted: Option<ExpertKey>,
}

/// Why an expert did not get a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AdmitError {
    /// It has one; take a lease instead.
    #[error("expert {key} is resident already")]
    Resident { key: ExpertKey },
    /// Every slot of its pool is leased, or the pool has none.
    #[error("no slot for expert {key}: all slots of its pool are leased")]
    Leased { key: ExpertKey },
    /// The policy would rather keep the victim.
    #[error("expert {key} is ranked below the resident {victim} it would replace")]
    Declined {
        key: ExpertKey,
        /// The resident that stays.
        victim: ExpertKey,
    },
}

/// Slots, their experts, leases, and a policy that says who leaves.
///
/// Every operation is O(log n) in the number of experts or better. Keys outside the grid are a
/// programmer's error and panic.
pub struct ExpertCache {
    ranking: Ranking,
    ranks: Ranks,
    capacity: Capacity,
    /// Slot of each key, dense by [`ExpertGrid::index`].
    slot_of: Vec<Option<SlotId>>,
    slots: Vec<Slot>,
    /// Free slots of each pool; the last is taken first.
    free: Vec<Vec<SlotId>>,
    /// Slots taken out of use by [`Self::set_usable`]; global pools only.
    withheld: Vec<SlotId>,
    resident: u32,
}

/// Where ranks come from.
enum Ranking {
    Own(Box<dyn CachePolicy>),
    /// From another cache ([`ExpertCache::follow`]).
    Followed,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    key: Option<ExpertKey>,
    leases: u32,
}

impl ExpertCache {
    /// An empty cache. A per-layer capacity must name every layer of the grid.
    pub fn new(grid: ExpertGrid, capacity: Capacity, policy: Box<dyn CachePolicy>) -> Self {
        Self::ranked(grid, capacity, Ranking::Own(policy))
    }

    /// An empty cache that ranks as another does ([`Self::follow`]): for a policy that looks at
    /// visits only, so that many caches do not compute the same ranks many times.
    pub fn following(grid: ExpertGrid, capacity: Capacity) -> Self {
        Self::ranked(grid, capacity, Ranking::Followed)
    }

    fn ranked(grid: ExpertGrid, capacity: Capacity, ranking: Ranking) -> Self {
        let pools = match &capacity {
            Capacity::Global { slots } => vec![*slots],
            Capacity::PerLayer { slots } => {
                assert_eq!(slots.len(), usize::from(grid.layers), "one pool per layer");
                slots.clone()
            }
        };
        Self {
            ranking,
            ranks: Ranks::new(grid),
            slot_of: vec![None; grid.len()],
            slots: vec![Slot::default(); capacity.total() as usize],
            free: free_slots(&pools),
            capacity,
            withheld: Vec::new(),
            resident: 0,
        }
    }

    /// Whether needed experts may be used without a slot ([`CachePolicy::bypasses`]).
    pub fn bypasses(&self) -> bool {
        self.policy().is_some_and(CachePolicy::bypasses)
    }

    fn policy(&self) -> Option<&dyn CachePolicy> {
        match &self.ranking {
            Ranking::Own(policy) => Some(&**policy),
            Ranking::Followed => None,
        }
    }

    /// The domain of keys.
    pub fn grid(&self) -> ExpertGrid {
        self.ranks.grid()
    }

    /// Slots and pools.
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// Experts that hold a slot.
    pub fn resident(&self) -> u32 {
        self.resident
    }

    /// The ranks as the policy left them.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }

    /// Tells the policy what a layer needs; once per visit, before its lookups.
    pub fn on_visit(&mut self, routed: &Routed<'_>) {
        if let Ranking::Own(policy) = &mut self.ranking {
            policy.on_visit(routed, &mut self.ranks);
        }
    }

    /// Takes over the ranks of `layer` from `first`, after its [`Self::on_visit`], unless this
    /// cache has a policy of its own.
    pub fn follow(&mut self, first: &Self, layer: u16) {
        if matches!(self.ranking, Ranking::Followed) {
            self.ranks.set_layer(layer, first.ranks.of_layer(layer));
        }
    }

    /// The slot of `key` if it is resident. Changes nothing.
    pub fn slot(&self, key: ExpertKey) -> Option<SlotId> {
        self.slot_of[self.grid().index(key)]
    }

    /// Whether `key` holds a slot.
    pub fn contains(&self, key: ExpertKey) -> bool {
        self.slot(key).is_some()
    }

    /// Number of leases on `key`; 0 when it is not resident.
    pub fn leases(&self, key: ExpertKey) -> u32 {
        self.slot(key).map_or(0, |slot| self.slots[slot.0 as usize].leases)
    }

    /// A lease on `key` if it is resident.
    pub fn lease(&mut self, key: ExpertKey) -> Option<Lease> {
        let slot = self.slot(key)?;
        let entry = &mut self.slots[slot.0 as usize];
        entry.leases += 1;
        if entry.leases == 1 {
            self.ranks.remove_candidate(key);
        }
        Some(Lease { key, slot })
    }

    /// Gives a lease back. After the last one the expert may leave.
    ///
    /// # Panics
    /// When the lease was given by another cache and does not fit this one.
    pub fn release(&mut self, lease: Lease) {
        let entry = &mut self.slots[lease.slot.0 as usize];
        assert!(entry.key == Some(lease.key) && entry.leases > 0, "lease of another cache");
        entry.leases -= 1;
        if entry.leases == 0 {
            self.ranks.insert_candidate(lease.key);
        }
    }

    /// Whom [`Self::admit`] of `key` would send away: `Ok(None)` when a slot is free.
    pub fn victim_for(&self, key: ExpertKey) -> Result<Option<ExpertKey>, AdmitError> {
        if self.contains(key) {
            return Err(AdmitError::Resident { key });
        }
        if !self.free[self.pool(key)].is_empty() {
            return Ok(None);
        }
        let victim = match self.capacity {
            Capacity::Global { .. } => self.ranks.lowest(),
            Capacity::PerLayer { .. } => self.ranks.lowest_in(key.layer),
        };
        let victim = victim.ok_or(AdmitError::Leased { key })?;
        let (newcomer, resident) = (self.ranks.get(key), self.ranks.get(victim));
        if self.policy().is_none_or(|policy| policy.admits(newcomer, resident)) {
            Ok(Some(victim))
        } else {
            Err(AdmitError::Declined { key, victim })
        }
    }

    /// The rank of the one that leaves the pool of `layer` next; `None` while a slot is free or
    /// nobody may leave.
    pub fn next_to_leave(&self, layer: u16) -> Option<Rank> {
        let (pool, lowest) = match self.capacity {
            Capacity::Global { .. } => (0, self.ranks.lowest()),
            Capacity::PerLayer { .. } => (usize::from(layer), self.ranks.lowest_in(layer)),
        };
        lowest.filter(|_| self.free[pool].is_empty()).map(|key| self.ranks.get(key))
    }

    /// Gives `key` a slot, sending the lowest-ranked candidate of its pool away if none is free.
    pub fn admit(&mut self, key: ExpertKey) -> Result<Admitted, AdmitError> {
        let evicted = self.victim_for(key)?;
        if let Some(victim) = evicted {
            self.remove(victim);
        }
        let pool = self.pool(key);
        let slot = self.free[pool].pop().ok_or(AdmitError::Leased { key })?;
        let index = self.grid().index(key);
        self.slot_of[index] = Some(slot);
        self.slots[slot.0 as usize] = Slot { key: Some(key), leases: 1 };
        self.resident += 1;
        if let Ranking::Own(policy) = &mut self.ranking {
            policy.on_admit(key, &mut self.ranks);
        }
        Ok(Admitted { lease: Lease { key, slot }, evicted })
    }

    /// Slots that may be used now.
    pub fn usable(&self) -> u32 {
        self.capacity.total() - self.withheld.len() as u32
    }

    /// Uses only `usable` slots of a global pool from now on, at most its capacity (M3); those
    /// sent away for it, lowest first. Leased experts stay, so fewer slots than asked for may
    /// be withheld: ask again later. Per-layer pools keep their slots.
    pub fn set_usable(&mut self, usable: u32) -> Vec<(ExpertKey, SlotId)> {
        let mut evicted = Vec::new();
        let Capacity::Global { slots } = self.capacity else { return evicted };
        let free = &mut self.free[0];
        while self.withheld.len() as u32 > slots - usable.min(slots)
            && let Some(slot) = self.withheld.pop()
        {
            free.push(slot);
        }
        while self.usable() > usable {
            if let Some(slot) = self.free[0].pop() {
                self.withheld.push(slot);
            } else if let Some(victim) = self.ranks.lowest()
                && let Some(slot) = self.slot(victim)
            {
                self.remove(victim);
                evicted.push((victim, slot));
            } else {
                break;
            }
        }
        evicted
    }

    /// Sends `key` away and frees its slot. False when it is not resident or is leased.
    pub fn evict(&mut self, key: ExpertKey) -> bool {
        let leaves = self.contains(key) && self.leases(key) == 0;
        if leaves {
            self.remove(key);
        }
        leaves
    }

    fn remove(&mut self, key: ExpertKey) {
        let index = self.grid().index(key);
        let Some(slot) = self.slot_of[index].take() else { return };
        self.slots[slot.0 as usize] = Slot::default();
        self.ranks.remove_candidate(key);
        let pool = self.pool(key);
        self.free[pool].push(slot);
        self.resident -= 1;
        if let Ranking::Own(policy) = &mut self.ranking {
            policy.on_evict(key, &mut self.ranks);
        }
    }

    fn pool(&self, key: ExpertKey) -> usize {
        match self.capacity {
            Capacity::Global { .. } => 0,
            Capacity::PerLayer { .. } => usize::from(key.layer),
        }
    }
}

/// Free lists of consecutive pools; slots are handed out in ascending order.
fn free_slots(pools: &[u32]) -> Vec<Vec<SlotId>> {
    let mut first = 0;
    pools
        .iter()
        .map(|&slots| {
            let range = first..first + slots;
            first += slots;
            range.rev().map(SlotId).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests;
