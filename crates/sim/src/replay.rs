//! Replay (M6): a routing trace through a cache under a policy, counting hits.
//! No time and no bytes: what a miss costs is the drive loop's business.
//!
//! All experts of a visit are needed together. An expert is a hit when it is resident as the visit
//! begins. Misses are admitted in order; the visit's experts hold their slots until it ends, unless
//! the policy bypasses, in which case they may displace each other.

use motley_sched::cache::{ExpertCache, Lease, RoutedBuffer};
use motley_trace::{ExpertKey, Phase, Trace, TraceError, TraceHeader, Visit, VisitSource};
use serde::{Deserialize, Serialize};

/// Hits among needed experts, counted once per visit and distinct expert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HitCount {
    pub needed: u64,
    /// Of these resident when their visit began.
    pub hits: u64,
}

impl HitCount {
    /// Hits per needed expert; 0 when none was needed.
    pub fn rate(self) -> f64 {
        if self.needed == 0 { 0.0 } else { self.hits as f64 / self.needed as f64 }
    }

    /// Adds another count.
    pub fn add(&mut self, other: Self) {
        self.needed += other.needed;
        self.hits += other.hits;
    }
}

/// What a replay counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayCounts {
    pub prefill: HitCount,
    pub decode: HitCount,
}

/// Replays everything `source` yields; passes before `count_from` warm the cache uncounted.
pub fn replay(
    source: &mut dyn VisitSource,
    cache: &mut ExpertCache,
    count_from: u64,
) -> Result<ReplayCounts, TraceError> {
    let mut replayer = Replayer::new(source.header());
    let mut counts = ReplayCounts::default();
    let mut visit = Visit::default();
    while source.read_visit(&mut visit)? {
        let hits = replayer.visit(&visit, cache);
        if visit.pass < count_from {
            continue;
        }
        let phase = match visit.phase {
            Phase::Prefill => &mut counts.prefill,
            Phase::Decode => &mut counts.decode,
        };
        phase.add(hits);
    }
    Ok(counts)
}

/// Replays a trace in memory and reports every visit.
pub fn replay_passes(
    trace: &Trace,
    cache: &mut ExpertCache,
    mut on_visit: impl FnMut(&Visit, HitCount),
) {
    let mut replayer = Replayer::new(&trace.header);
    for visit in &trace.visits {
        let hits = replayer.visit(visit, cache);
        on_visit(visit, hits);
    }
}

/// Buffers of a replay.
pub(crate) struct Replayer {
    buffer: RoutedBuffer,
    misses: Vec<ExpertKey>,
    leases: Vec<Lease>,
}

impl Replayer {
    pub(crate) fn new(header: &TraceHeader) -> Self {
        Self { buffer: RoutedBuffer::new(header), misses: Vec::new(), leases: Vec::new() }
    }

    /// What the last visit did not find.
    pub(crate) fn misses(&self) -> &[ExpertKey] {
        &self.misses
    }

    pub(crate) fn visit(&mut self, visit: &Visit, cache: &mut ExpertCache) -> HitCount {
        let routed = self.buffer.fill(visit);
        cache.on_visit(&routed);
        self.misses.clear();
        self.misses.extend(routed.keys().filter(|&key| !cache.contains(key)));
        let bypasses = cache.bypasses();
        if !bypasses {
            self.leases.extend(routed.keys().filter_map(|key| cache.lease(key)));
        }
        for &key in &self.misses {
            let Ok(new) = cache.admit(key) else { continue };
            if bypasses {
                cache.release(new.lease);
            } else {
                self.leases.push(new.lease);
            }
        }
        self.leases.drain(..).for_each(|lease| cache.release(lease));
        let needed = routed.experts.len() as u64;
        HitCount { needed, hits: needed - self.misses.len() as u64 }
    }
}
