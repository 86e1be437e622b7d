//! Choices of cores as threads and CPU numbers: what a thread pool is made from. Starts none.

use motley_machine::{Machine, MemoryNode};
use serde::{Deserialize, Serialize};

use super::set::{CorePool, CoreSet, Freedom};

/// Threads and where they may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadSet {
    /// At least 1.
    pub threads: u32,
    /// CPUs they share; empty leaves the choice to the system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<usize>,
}

/// Threads of both phases (A5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadSets {
    /// For prompts.
    pub prefill: ThreadSet,
    /// For tokens decoded one by one, of however many streams.
    pub decode: ThreadSet,
}

impl ThreadSet {
    /// `threads` anywhere.
    pub fn anywhere(threads: u32) -> Self {
        Self { threads: threads.max(1), cpus: Vec::new() }
    }
}

impl ThreadSets {
    /// The same for both phases.
    pub fn both(set: ThreadSet) -> Self {
        Self { prefill: set.clone(), decode: set }
    }
}

/// The cores of a machine, biggest cluster first.
#[derive(Debug, Clone, PartialEq)]
pub struct MachineCores {
    /// What a search chooses from.
    pub pool: CorePool,
    /// CPU numbers of each cluster, one of every core before a core's second; empty where only
    /// a description is known.
    pub cpus: Vec<Vec<usize>>,
    /// CPUs this process may use.
    pub cpus_in_all: u32,
    /// Memory nodes; none where there is only one, or this process may not use all CPUs.
    pub nodes: Vec<NodeCores>,
}

/// Cores near one memory (NUMA).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCores {
    /// The system's number of the node.
    pub id: u32,
    /// None where a node is memory only.
    pub cores: u32,
    /// Their CPUs; empty where only a description is known.
    pub cpus: Vec<usize>,
}

impl MachineCores {
    /// The cores of a description. One without clusters has one core.
    pub fn described(machine: &Machine) -> Self {
        let pool = CorePool { clusters: machine.clusters.clone(), freedom: Freedom::Affinity };
        let cpus_in_all = machine.clusters.iter().map(|cluster| cluster.cores).sum::<u32>().max(1);
        let node =
            |node: &MemoryNode| NodeCores { id: node.id, cores: node.cores, cpus: Vec::new() };
        let nodes = machine.nodes.iter().map(node).collect();
        Self { pool, cpus: Vec::new(), cpus_in_all, nodes }
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

#[cfg(test)]
mod tests {
    use motley_machine::{CoreCluster, CoreRole};

    use super::*;

    #[test]
    fn choices_become_cpu_numbers_only_where_kinds_differ() {
        let cluster = CoreCluster {
            name: "core".into(),
            device: "cpu".into(),
            role: CoreRole::Prime,
            cores: 4,
            max_ghz: 1.0,
            power_scale: 1.0,
            capacity: None,
        };
        let pool = CorePool { clusters: vec![cluster.clone()], freedom: Freedom::Threads };
        let mut cores =
            MachineCores { pool, cpus: vec![vec![0, 1, 2, 3]], cpus_in_all: 4, nodes: Vec::new() };
        let two = CoreSet { per_cluster: vec![2] };
        assert_eq!(cores.threads(&two), ThreadSet::anywhere(2));
        cores.pool.clusters.push(cluster);
        cores.pool.freedom = Freedom::Affinity;
        cores.cpus = vec![vec![4, 5], vec![0, 1, 2, 3]];
        let mixed = CoreSet { per_cluster: vec![2, 1] };
        assert_eq!(cores.threads(&mixed), ThreadSet { threads: 3, cpus: vec![4, 5, 0] });
    }
}
