//! Disk faults by seed: errors, short reads and delays, injected below the retry so that a
//! test of anything above meets what a failing disk would do. Nothing here runs unless asked.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The errno of a failing disk.
const EIO: i32 = 5;

/// How often what goes wrong. The n-th read of a place always meets the same fate.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FaultPlan {
    /// Replays a failure exactly.
    pub seed: u64,
    /// Reads out of 1000 that fail with EIO.
    pub eio_per_mille: u16,
    /// Reads out of 1000 that return half of what was asked.
    pub short_per_mille: u16,
    /// Reads out of 1000 that are late by `delay_us`.
    pub delay_per_mille: u16,
    /// Microseconds of a delay.
    pub delay_us: u64,
}

/// What happens to one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Eio,
    Short,
    Delay(Duration),
}

/// A plan being carried out.
pub(crate) struct Faults {
    plan: FaultPlan,
    /// Reads of each (file, offset) so far.
    visits: Mutex<HashMap<(usize, u64), u64>>,
}

impl Faults {
    pub(crate) fn new(plan: FaultPlan) -> Self {
        Self { plan, visits: Mutex::default() }
    }

    /// The fate of the next read at this place.
    pub(crate) fn next(&self, file: usize, offset: u64) -> Option<Fault> {
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        let visit = visits.entry((file, offset)).or_default();
        *visit += 1;
        self.plan.fate([file as u64, offset, *visit])
    }
}

impl FaultPlan {
    fn fate(&self, place: [u64; 3]) -> Option<Fault> {
        let draw = (place.into_iter().fold(mix(self.seed), |h, x| mix(h ^ x)) % 1000) as u16;
        let eio = self.eio_per_mille;
        let short = eio.saturating_add(self.short_per_mille);
        let delay = short.saturating_add(self.delay_per_mille);
        match draw {
            _ if draw < eio => Some(Fault::Eio),
            _ if draw < short => Some(Fault::Short),
            _ if draw < delay => Some(Fault::Delay(Duration::from_micros(self.delay_us))),
            _ => None,
        }
    }
}

impl Fault {
    /// What the read returns instead.
    pub(crate) fn apply(self, result: io::Result<usize>) -> io::Result<usize> {
        match self {
            Self::Eio => Err(io::Error::from_raw_os_error(EIO)),
            Self::Short => result.map(|got| got / 2),
            Self::Delay(time) => {
                std::thread::sleep(time);
                result
            }
        }
    }
}

/// SplitMix64's finaliser.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
