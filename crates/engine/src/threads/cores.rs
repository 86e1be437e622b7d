//! The machine's cores as a search for the best set sees them. Chooses nothing.

use motley_host::binding;
use motley_host::topology::{self, Node, Topology};
use motley_machine::{CoreCluster, CoreRole};
use motley_plan::cores::{CorePool, Freedom, MachineCores, NodeCores};
use std::path::Path;

/// Stands for a frequency nobody tells (virtual machines).
const UNKNOWN_GHZ: f64 = 1.0;

/// Reads the cores of this machine. Where clusters are unknown or not all CPUs may be used, it is
/// one cluster of as many cores as this process may use.
pub fn machine_cores() -> MachineCores {
    let all = parallelism() as usize;
    let found = topology::read(Path::new("/")).filter(|found| found.cpus.len() == all);
    found.map_or_else(|| alike(all), |found| of(&found))
}

fn of(topology: &Topology) -> MachineCores {
    let mut clusters = topology.machine_clusters("cpu", UNKNOWN_GHZ);
    let cpus: Vec<Vec<usize>> =
        topology.clusters.iter().map(|cluster| cores_first(&cluster.cpus, topology)).collect();
    for (cluster, cpus) in clusters.iter_mut().zip(&cpus) {
        cluster.cores = cpus.len() as u32;
    }
    // Threads of one kind of core need no binding: their number says it all.
    let may_bind = binding::is_offered();
    let freedom = if clusters.len() > 1 && may_bind { Freedom::Affinity } else { Freedom::Threads };
    let pool = CorePool { clusters, freedom };
    MachineCores { pool, cpus, cpus_in_all: parallelism(), nodes: node_cores(topology) }
}

/// None when there is only one.
fn node_cores(topology: &Topology) -> Vec<NodeCores> {
    let node = |node: &Node| NodeCores {
        id: node.id as u32,
        cores: topology.cores_near(node) as u32,
        cpus: node.cpus.clone(),
    };
    let several = topology.nodes.len() > 1;
    topology.nodes.iter().filter(|_| several).map(node).collect()
}

fn alike(cores: usize) -> MachineCores {
    let cluster = CoreCluster {
        name: "core".into(),
        device: "cpu".into(),
        role: CoreRole::Prime,
        cores: cores as u32,
        max_ghz: UNKNOWN_GHZ,
        power_scale: 1.0,
        capacity: None,
    };
    let pool = CorePool { clusters: vec![cluster], freedom: Freedom::Threads };
    let cpus = vec![(0..cores).collect()];
    MachineCores { pool, cpus, cpus_in_all: cores as u32, nodes: Vec::new() }
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

pub(super) fn parallelism() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use motley_testkit::machine_tree::Tree;

    #[test]
    fn this_machine_has_at_least_one_core() {
        let cores = machine_cores();
        let all = cores.pool.all_considered();
        assert!(cores.threads(&all).threads >= 1, "{cores:?}");
    }

    #[test]
    fn nodes_have_the_cores_and_cpus_of_the_system() {
        let found = |name| of(&topology::read(Tree::fixture(name).root()).unwrap()).nodes;
        let cpus = |first: usize| (first..first + 32).chain(first + 64..first + 96).collect();
        let node = |id: u32| NodeCores { id, cores: 32, cpus: cpus(32 * id as usize) };
        assert_eq!(found("two-socket-server"), [node(0), node(1)]);
        assert_eq!(found("small-vm"), [], "one node is no division");
    }
}
