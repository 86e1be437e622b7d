//! Watches whether other programs take the cores away while a context decodes, and has fewer
//! threads decode while they do. Reads counters and makes pools; `sched::contention` decides.

use crate::clock::now;
use crate::threads::pools::pool;
use motley_cost::Nanos;
use motley_ggml::{Pools, Threadpool};
use motley_host::pressure;
use motley_plan::cores::ThreadSet;
use motley_sched::contention::{Contention, Seen};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Time between readings of the pressure on cores.
const INTERVAL: Nanos = Nanos(200_000_000);
/// Share of the time in which some task waited for a core, from which cores are contended. Short
/// waits of a machine's own housekeeping stay below.
const CONTENDED_SHARE: f64 = 0.15;

/// The watch of one context.
pub(crate) struct ContentionWatch {
    contention: Contention,
    /// What it decodes with when it has the cores for itself.
    all: ThreadSet,
    pools: Pools,
    /// Pools of fewer threads, made when first needed.
    fewer: Vec<Arc<Threadpool>>,
    started: Instant,
    read: (Nanos, Option<u64>),
    contended: Option<bool>,
    changes: u64,
    /// Of the last step.
    rows: usize,
}

impl ContentionWatch {
    /// A watch over a context that decodes on `pools.decode`, which was made from `all`.
    pub(crate) fn new(pools: Pools, all: ThreadSet) -> Self {
        Self {
            contention: Contention::new(all.threads, Nanos::ZERO),
            all,
            pools,
            fewer: Vec::new(),
            started: now(),
            read: (Nanos::ZERO, waited_us()),
            contended: None,
            changes: 0,
            rows: 1,
        }
    }

    /// How often the number of threads changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// After a step that computed `rows` tokens of as many sequences for `took`: the pools to go on
    /// with, when they change. Prompts have as few threads as tokens while others want the cores.
    pub(crate) fn after_step(&mut self, took: Nanos, rows: usize) -> Option<Pools> {
        let now = Nanos(self.started.elapsed().as_nanos() as u64);
        self.look(now);
        let before = self.contention.threads();
        if std::mem::replace(&mut self.rows, rows) != rows {
            self.contention.forget();
        }
        self.contention.observe(Seen { now, took, contended: self.contended });
        let threads = self.contention.threads();
        if threads == before {
            return None;
        }
        self.changes += 1;
        let way = if self.contention.is_trying() { "tries" } else { "goes on with" };
        tracing::info!(
            "decode {way} {threads} of {} threads: {:.0} ms for the last step, cores {}",
            self.all.threads,
            took.as_us() / 1e3,
            match self.contended {
                Some(true) => "contended",
                Some(false) => "free",
                None => "unknown",
            }
        );
        let decode = self.pool(threads)?;
        let yields = threads < self.all.threads && !self.contention.is_trying();
        let prefill = Arc::clone(if yields { &decode } else { &self.pools.prefill });
        Some(Pools { decode, prefill })
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
        if threads == self.all.threads {
            return Some(Arc::clone(&self.pools.decode));
        }
        if let Some(made) = self.fewer.iter().find(|pool| pool.threads() == threads) {
            return Some(Arc::clone(made));
        }
        let set = ThreadSet { threads, ..self.all.clone() };
        let pool = pool(&set)?;
        self.fewer.push(Arc::clone(&pool));
        Some(pool)
    }
}

fn waited_us() -> Option<u64> {
    pressure::cpu_some_total_us(Path::new("/"))
}
