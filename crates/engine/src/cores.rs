//! Which CPUs compute: sets of threads for both phases (A5), and the machine's cores as a search
//! for the best set sees them. Chooses nothing.

use motley_ggml::{Pools, Threadpool, ThreadpoolOptions};
use motley_host::topology::{self, Topology};
use motley_machine::{CoreCluster, CoreRole};
use motley_plan::cores::{CorePool, CoreSet, Freedom};
use std::path::Path;
use std::sync::Arc;

/// Stands for a frequency nobody tells (virtual machines).
const UNKNOWN_GHZ: f64 = 1.0;

/// Threads and where they may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadSet {
    /// How many, at least 1.
    pub threads: u32,
    /// CPUs they share; empty leaves the choice to the system.
    pub cpus: Vec<usize>,
}

/// Threads of both phases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadSets {
    /// For prompts.
    pub prefill: ThreadSet,
    /// For single tokens.
    pub decode: ThreadSet,
}

impl ThreadSet {
    /// `threads` anywhere.
    pub fn anywhere(threads: u32) -> Self {
        Self { threads: threads.max(1), cpus: Vec::new() }
    }

    /// As many threads as the system lets this process run at once.
    pub fn every_core() -> Self {
        Self::anywhere(parallelism())
    }

    pub(crate) fn pool(&self) -> Option<Arc<Threadpool>> {
        let usual = ThreadpoolOptions::with_threads(self.threads);
        let options = ThreadpoolOptions { cpus: self.cpus.clone(), ..usual };
        Threadpool::new(&options).map(Arc::new)
    }
}

impl ThreadSets {
    /// The same for both phases.
    pub fn both(set: ThreadSet) -> Self {
        Self { prefill: set.clone(), decode: set }
    }

    /// The pools; equal sets share one, because two would spin against each other. `None` when
    /// the system refuses the threads.
    pub(crate) fn pools(&self) -> Option<Pools> {
        let prefill = self.prefill.pool()?;
        let same = self.prefill == self.decode;
        let decode = if same { Arc::clone(&prefill) } else { self.decode.pool()? };
        Some(Pools { decode, prefill })
    }
}

/// The cores of this machine, biggest cluster first.
#[derive(Debug, Clone)]
pub struct MachineCores {
    /// What a search chooses from.
    pub pool: CorePool,
    /// CPU numbers of each cluster, one of every core before a core's second.
    cpus: Vec<Vec<usize>>,
}

impl MachineCores {
    /// Reads the machine. Where clusters are unknown or not all CPUs may be used, it is one
    /// cluster of as many cores as this process may use.
    pub fn read() -> Self {
        let all = parallelism() as usize;
        let found = topology::read(Path::new("/")).filter(|found| found.cpus.len() == all);
        found.map_or_else(|| Self::alike(all), |found| Self::of(&found))
    }

    fn of(topology: &Topology) -> Self {
        let mut clusters = topology.machine_clusters("cpu", UNKNOWN_GHZ);
        let cpus: Vec<Vec<usize>> =
            topology.clusters.iter().map(|cluster| cores_first(&cluster.cpus, topology)).collect();
        for (cluster, cpus) in clusters.iter_mut().zip(&cpus) {
            cluster.cores = cpus.len() as u32;
        }
        // Threads of one kind of core need no binding: their number says it all.
        let may_bind = cfg!(any(target_os = "linux", target_os = "android", windows));
        let freedom =
            if clusters.len() > 1 && may_bind { Freedom::Affinity } else { Freedom::Threads };
        Self { pool: CorePool { clusters, freedom }, cpus }
    }

    fn alike(cores: usize) -> Self {
        let cluster = CoreCluster {
            name: "core".into(),
            device: "cpu".into(),
            role: CoreRole::Prime,
            cores: cores as u32,
            max_ghz: UNKNOWN_GHZ,
            power_scale: 1.0,
        };
        let pool = CorePool { clusters: vec![cluster], freedom: Freedom::Threads };
        Self { pool, cpus: vec![(0..cores).collect()] }
    }

    /// The threads of a choice.
    pub fn threads(&self, set: &CoreSet) -> ThreadSet {
        let taken = || self.cpus.iter().zip(&set.per_cluster);
        let cpus = match self.pool.freedom {
            Freedom::Threads => Vec::new(),
            Freedom::Affinity => taken()
                .flat_map(|(cpus, count)| cpus.iter().take(*count as usize))
                .copied()
                .collect(),
        };
        ThreadSet { threads: set.cores().max(1), cpus }
    }
}

/// One CPU of every core, then the cores' second ones.
fn cores_first(cpus: &[usize], topology: &Topology) -> Vec<usize> {
    let is_first = |cpu: &&usize| {
        let found = topology.cpus.iter().find(|found| found.id == **cpu);
        found.is_none_or(|found| found.siblings.iter().all(|sibling| sibling >= *cpu))
    };
    let seconds = cpus.iter().filter(|cpu| !is_first(cpu));
    cpus.iter().filter(is_first).chain(seconds).copied().collect()
}

fn parallelism() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_become_cpu_numbers_only_where_kinds_differ() {
        let mut cores = MachineCores::alike(4);
        let two = CoreSet { per_cluster: vec![2] };
        assert_eq!(cores.threads(&two), ThreadSet::anywhere(2));
        cores.pool.clusters.push(cores.pool.clusters[0].clone());
        cores.pool.freedom = Freedom::Affinity;
        cores.cpus = vec![vec![4, 5], vec![0, 1, 2, 3]];
        let mixed = CoreSet { per_cluster: vec![2, 1] };
        assert_eq!(cores.threads(&mixed), ThreadSet { threads: 3, cpus: vec![4, 5, 0] });
    }

    #[test]
    fn this_machine_has_at_least_one_core() {
        let cores = MachineCores::read();
        let all = cores.pool.all_considered();
        assert!(cores.threads(&all).threads >= 1, "{cores:?}");
    }
}
