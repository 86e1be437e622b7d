//! Watches whether other programs take the cores away while a session decodes, and has fewer
//! threads decode while they do. Reads counters and makes pools; `sched::crowding` decides.

use crate::cores::ThreadSet;
use motley_cost::Nanos;
use motley_ggml::{Pools, Threadpool};
use motley_host::pressure;
use motley_sched::crowding::{Crowding, Seen};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Time between readings of the pressure on cores.
const INTERVAL: Nanos = Nanos(200_000_000);
/// Share of the time in which some task waited for a core, from which cores are contended. Short
/// waits of a machine's own housekeeping stay below.
const CONTENDED_SHARE: f64 = 0.15;

/// The watch of one session.
pub(crate) struct CrowdWatch {
    crowding: Crowding,
    /// What the session decodes with when it has the cores for itself.
    usual: ThreadSet,
    pools: Pools,
    /// Pools of fewer threads, made when first needed.
    fewer: Vec<Arc<Threadpool>>,
    started: Instant,
    read: (Nanos, Option<u64>),
    contended: Option<bool>,
    changes: u64,
}

impl CrowdWatch {
    /// A watch over a session that decodes on `pools.decode`, which was made from `usual`.
    pub(crate) fn new(pools: Pools, usual: ThreadSet) -> Self {
        Self {
            crowding: Crowding::new(usual.threads, Nanos::ZERO),
            usual,
            pools,
            fewer: Vec::new(),
            started: now(),
            read: (Nanos::ZERO, waited_us()),
            contended: None,
            changes: 0,
        }
    }

    /// How often the number of threads changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// After a token that computed for `took`: the pools to go on with, when they change.
    pub(crate) fn after_token(&mut self, took: Nanos) -> Option<Pools> {
        let now = Nanos(self.started.elapsed().as_nanos() as u64);
        self.look(now);
        let threads = self.crowding.observe(Seen { now, took, contended: self.contended })?;
        self.changes += 1;
        let way = if self.crowding.is_trying() { "tries" } else { "goes on with" };
        tracing::info!(
            "decode {way} {threads} of {} threads: {:.0} ms for the last token, cores {}",
            self.usual.threads,
            took.as_us() / 1e3,
            match self.contended {
                Some(true) => "contended",
                Some(false) => "free",
                None => "unknown",
            }
        );
        let decode = self.pool(threads)?;
        Some(Pools { decode, prefill: Arc::clone(&self.pools.prefill) })
    }

    fn look(&mut self, now: Nanos) {
        let (then, before) = self.read;
        let passed = now.since(then);
        if passed < INTERVAL {
            return;
        }
        let waited = waited_us();
        self.read = (now, waited);
        self.contended = before.zip(waited).map(|(before, waited)| {
            let share = waited.saturating_sub(before) as f64 / passed.as_us();
            share > CONTENDED_SHARE
        });
    }

    fn pool(&mut self, threads: u32) -> Option<Arc<Threadpool>> {
        if threads == self.usual.threads {
            return Some(Arc::clone(&self.pools.decode));
        }
        if let Some(made) = self.fewer.iter().find(|pool| pool.threads() == threads) {
            return Some(Arc::clone(made));
        }
        let pool = ThreadSet { threads, ..self.usual.clone() }.pool()?;
        self.fewer.push(Arc::clone(&pool));
        Some(pool)
    }
}

fn waited_us() -> Option<u64> {
    pressure::cpu_some_total_us(Path::new("/"))
}

#[allow(clippy::disallowed_methods, reason = "a driver reads the clock")]
fn now() -> Instant {
    Instant::now()
}
