//! Belady's bound: the expert whose next use is farthest leaves first, and none enters that is
//! needed later than all residents. Needs the future, so it is a yardstick and not a policy.

use motley_trace::{ExpertGrid, Trace};

use super::{CachePolicy, Rank, Ranks, Routed, RoutedBuffer};

/// Most expert uses a future may hold, at 4 bytes each: 1 GiB.
pub const MAX_USES: usize = 1 << 28;

/// Ranks by the next use. With bypass allowed, keeping the nearest next uses after every visit is
/// optimal for demand loading: no policy without prefetch hits more often at the same capacity.
#[derive(Clone, Debug)]
pub struct Belady {
    /// Visit of the next use of each used expert, in order of use; [`NEVER`] for none.
    next_uses: Vec<u32>,
    cursor: usize,
}

const NEVER: u32 = u32::MAX;

impl Belady {
    /// The future of exactly `trace`, to be replayed from its start. `None` when it holds more
    /// than [`MAX_USES`] uses.
    pub fn new(trace: &Trace) -> Option<Self> {
        let grid = trace.header.grid();
        let mut uses = Vec::new();
        let mut ends = Vec::with_capacity(trace.visits.len());
        let mut buffer = RoutedBuffer::new(&trace.header);
        for visit in &trace.visits {
            let routed = buffer.fill(visit);
            uses.extend(routed.keys().map(|key| grid.index(key) as u32));
            ends.push(uses.len());
            if uses.len() > MAX_USES || ends.len() >= NEVER as usize {
                return None;
            }
        }
        Some(Self { next_uses: next_uses(grid, uses, &ends), cursor: 0 })
    }
}

/// Replaces each used key by the number of the visit that uses it next.
fn next_uses(grid: ExpertGrid, mut uses: Vec<u32>, ends: &[usize]) -> Vec<u32> {
    let mut next = vec![NEVER; grid.len()];
    for visit in (0..ends.len()).rev() {
        let start = if visit == 0 { 0 } else { ends[visit - 1] };
        for used in &mut uses[start..ends[visit]] {
            let key = *used as usize;
            *used = std::mem::replace(&mut next[key], visit as u32);
        }
    }
    uses
}

impl CachePolicy for Belady {
    fn name(&self) -> &'static str {
        "belady"
    }

    fn on_visit(&mut self, routed: &Routed<'_>, ranks: &mut Ranks) {
        for key in routed.keys() {
            let next = self.next_uses.get(self.cursor).copied().unwrap_or(NEVER);
            self.cursor += 1;
            ranks.set(key, Rank::from_u64(u64::from(NEVER - next)));
        }
    }

    fn admits(&self, newcomer: Rank, victim: Rank) -> bool {
        newcomer > victim
    }

    fn bypasses(&self) -> bool {
        true
    }
}
