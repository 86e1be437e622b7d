//! What goes into the scheduler and what comes out: routing, actions, limits, counts. Data only.

use motley_trace::ExpertKey;

use crate::cache::{Routed, SlotId};
use crate::prefetch::{Prediction, PrefetchChoice};
use crate::work::{Phase, Share, Unit};

/// Named limits of one scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchedulerLimits {
    /// Transfers handed out and not yet reported back.
    pub loads_in_flight: u16,
    /// Buffers beside the cache for experts that do not stay; at least 1.
    pub staging_slots: u16,
    /// How many of them guesses may hold; at least one is always left for demand.
    pub prefetch_slots: u16,
    /// Guessed transfers under way at once; one is the most careful, a disk that is quick
    /// beside the computation wants more.
    pub guesses_in_flight: u16,
    /// Attempts at loading one expert before it is computed at home or given up.
    pub load_attempts: u16,
}

/// Slots that guesses may hold when experts come from disk.
const DISK_GUESS_SLOTS: u32 = 8;
/// Guesses read from disk at once.
const DISK_GUESSES_IN_FLIGHT: u16 = 4;
/// Loads in line for the disk: it takes four at a time and must not run dry while a batch of
/// experts is computed.
const DISK_LOADS_IN_FLIGHT: u16 = 64;

impl SchedulerLimits {
    /// Of `slots` of memory, for experts on disk: one is for experts that do not stay, and with
    /// a prefetcher up to a quarter of the others for guesses.
    pub fn beyond_ram(slots: u32, prefetch: PrefetchChoice) -> Self {
        let guesses = match prefetch {
            PrefetchChoice::None => 0,
            _ => (slots.saturating_sub(1) / 4).min(DISK_GUESS_SLOTS) as u16,
        };
        Self {
            loads_in_flight: DISK_LOADS_IN_FLIGHT,
            staging_slots: 1 + guesses,
            prefetch_slots: guesses,
            guesses_in_flight: DISK_GUESSES_IN_FLIGHT,
            // The reader has tried twice already.
            load_attempts: 1,
        }
    }
}

/// Slots of a device through which experts pass.
const DEVICE_STAGING_SLOTS: u32 = 8;

impl SchedulerLimits {
    /// Of `slots` of a device's memory, for experts that are also at home: a few let experts
    /// through, half of those for guesses.
    pub fn beside_home(slots: u32) -> Self {
        let staging_slots = DEVICE_STAGING_SLOTS.min(slots / 4).max(1) as u16;
        Self {
            staging_slots,
            prefetch_slots: staging_slots / 2,
            // What cannot be brought is computed where it is.
            load_attempts: 1,
            ..Self::default()
        }
    }
}

impl Default for SchedulerLimits {
    fn default() -> Self {
        Self {
            loads_in_flight: 2,
            staging_slots: 8,
            prefetch_slots: 6,
            guesses_in_flight: 1,
            load_attempts: 8,
        }
    }
}

/// Computations a unit may have at the same time.
///
/// One is what the simulator times. A driver whose unit computes several experts in one launch,
/// and brings their rows back together, asks for all that are ready (the most is not a limit in
/// practice); a unit still never has an expert whose bytes are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtOnce {
    /// On the unit of each tier; at least 1.
    pub tier: u16,
    /// On each home lane; at least 1.
    pub home: u16,
}

impl AtOnce {
    /// Everything that is ready.
    pub const ALL: Self = Self { tier: u16::MAX, home: u16::MAX };
}

impl Default for AtOnce {
    fn default() -> Self {
        Self { tier: 1, home: 1 }
    }
}

/// A buffer of a tier that holds one expert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A slot of the cache.
    Cache(SlotId),
    /// A staging buffer.
    Staging(u16),
}

/// Why something is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A routed expert waits for it.
    Demand,
    /// It may be needed soon.
    Guess,
}

/// What the driver is to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Bring (a part of) an expert from a tier's parent to a place in the tier.
    Load {
        tier: u16,
        key: ExpertKey,
        /// The part of it.
        share: Share,
        place: Place,
        purpose: Purpose,
    },
    /// Compute (a part of) an expert for the tokens routed to it.
    Compute {
        key: ExpertKey,
        /// The part of it.
        share: Share,
        unit: Unit,
        /// Where its bytes are; `None` on a home unit, which has them.
        place: Option<Place>,
        /// Tokens routed to it.
        tokens: u32,
        /// Tokens of the pass when the unit has to pay its entry for this layer first.
        enters: Option<u32>,
    },
    /// Two buffers of a tier change roles; no bytes move.
    Exchange {
        tier: u16,
        /// Expert whose buffer becomes a cache slot.
        key: ExpertKey,
        /// Its staging buffer so far, free afterwards.
        staging: u16,
        slot: SlotId,
    },
    /// The expert's bytes at this place are no longer needed.
    Release {
        tier: u16,
        key: ExpertKey,
        /// Where it was.
        place: Place,
    },
}

/// One routed layer.
#[derive(Debug, Clone, Copy)]
pub struct Routing<'a> {
    /// Layer, tokens, experts, loads and scores.
    pub routed: Routed<'a>,
    pub phase: Phase,
    /// Loads expected of the coming layers; may be empty.
    pub predictions: &'a [Prediction],
}

/// An expert could not be loaded and has no home unit to compute it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expert {key} could not be loaded in {attempts} attempts and cannot be computed in place")]
pub struct LoadLost {
    pub key: ExpertKey,
    /// How often it was tried.
    pub attempts: u16,
}

/// Counts since the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Routed experts over all layers.
    pub lookups: u64,
    /// Of them in a cache slot of a tier when routed.
    pub hits: u64,
    /// Of them in a staging buffer when routed, thanks to a guess.
    pub guessed_hits: u64,
    /// Demanded transfers handed out, repetitions included.
    pub demand_loads: u64,
    /// Guessed transfers handed out.
    pub guessed_loads: u64,
    /// Transfers that failed.
    pub failed_loads: u64,
    /// Experts or parts computed at home.
    pub home_computes: u64,
    /// Experts or parts computed by the units of tiers.
    pub tier_computes: u64,
}
