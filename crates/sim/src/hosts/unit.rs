//! The CPU of a host with its memory and disk: how long it takes for its experts of a block. Counts
//! time; which experts it gets is not its business.

use motley_cost::ComputeCost;
use motley_sched::cache::{Capacity, ExpertCache, PolicyChoice, RoutedBuffer};
use motley_trace::{ExpertKey, Phase, TraceHeader, Visit};

use crate::replay::Replayer;

/// A unit and what is in its memory.
pub struct HostUnit {
    cost: ComputeCost,
    /// For prompts.
    prefill: ComputeCost,
    buffer: RoutedBuffer,
    /// `None` where all of its experts are in memory.
    memory: Option<Memory>,
}

/// Memory in front of a disk.
#[derive(Debug, Clone, Copy)]
pub struct HostRoom {
    pub slots: u32,
    /// What stays.
    pub policy: PolicyChoice,
    /// One expert from the disk.
    pub read_us: f64,
}

struct Memory {
    cache: ExpertCache,
    replayer: Replayer,
    read_us: f64,
}

impl HostUnit {
    /// One that has all its experts in memory.
    pub fn new(header: &TraceHeader, cost: ComputeCost) -> Self {
        Self { cost, prefill: cost, buffer: RoutedBuffer::new(header), memory: None }
    }

    /// The same with costs of its own for prompts, as measured runs have them.
    #[must_use]
    pub fn with_prefill(self, prefill: ComputeCost) -> Self {
        Self { prefill, ..self }
    }

    /// One with less room, which begins with the first of `keys` and reads others as they are needed.
    #[must_use]
    pub fn with_disk(self, header: &TraceHeader, keys: &[ExpertKey], room: HostRoom) -> Self {
        let HostRoom { slots, policy, read_us } = room;
        let capacity = Capacity::Global { slots };
        let mut cache = ExpertCache::new(header.grid(), capacity, policy.build(header));
        for &key in keys.iter().take(slots as usize) {
            if let Ok(new) = cache.admit(key) {
                cache.release(new.lease);
            }
        }
        Self { memory: Some(Memory { cache, replayer: Replayer::new(header), read_us }), ..self }
    }

    /// The experts of `visit`, one after the other; those that are read come last, while the disk
    /// reads on.
    pub(crate) fn block_us(&mut self, visit: &Visit) -> f64 {
        let absent: &[ExpertKey] = match &mut self.memory {
            Some(Memory { cache, replayer, .. }) => {
                replayer.visit(visit, cache);
                replayer.misses()
            }
            None => &[],
        };
        let cost = match visit.phase {
            Phase::Prefill => self.prefill,
            Phase::Decode => self.cost,
        };
        let routed = self.buffer.fill(visit);
        let (mut us, mut read) = (0.0, Vec::new());
        for (at, &expert) in routed.experts.iter().enumerate() {
            let took_us = cost.us(routed.loads.get(at).copied().unwrap_or(1));
            match absent.contains(&visit.key(expert)) {
                true => read.push(took_us),
                false => us += took_us,
            }
        }
        let read_us = self.memory.as_ref().map_or(0.0, |memory| memory.read_us);
        let mut there_us: f64 = 0.0;
        for took_us in read {
            there_us += read_us;
            us = there_us.max(us) + took_us;
        }
        us
    }
}

#[cfg(test)]
mod tests {
    use motley_trace::record::FORMAT_VERSION;

    use super::*;

    fn visit(tokens: u32, experts: &[u16]) -> Visit {
        let positions = (0..tokens).collect();
        Visit { positions, experts: experts.to_vec(), ..Visit::default() }
    }

    #[test]
    fn experts_take_turns_and_reads_run_beside_them() {
        let header =
            TraceHeader { version: FORMAT_VERSION, model: "m".into(), layers: 1, experts: 8, k: 2 };
        let cost = ComputeCost { launch_us: 0.0, per_token_us: 4.0, floor_us: 10.0 };
        let mut all = HostUnit::new(&header, cost);
        assert_eq!(all.block_us(&visit(1, &[0, 1])), 20.0);
        // Four rows of expert 2 are above the floor.
        assert_eq!(all.block_us(&visit(4, &[2, 2, 2, 2, 3])), 26.0);
        let keys = [0, 1].map(|expert| ExpertKey::new(0, expert));
        let room = HostRoom { slots: 2, policy: PolicyChoice::Lru, read_us: 15.0 };
        let mut few = HostUnit::new(&header, cost).with_disk(&header, &keys, room);
        assert_eq!(few.block_us(&visit(1, &[0, 1])), 20.0);
        // Two reads of 15 beside 10 for expert 1: the second is there at 30.
        assert_eq!(few.block_us(&visit(1, &[1, 5, 6])), 40.0);
    }
}
