//! Memory nodes (NUMA), and the part of every layer's experts each of them keeps and computes (G1,
//! W11). Binds no memory and no thread.

use serde::{Deserialize, Serialize};

use super::threads::{NodeCores, ThreadSets};

/// A node's part of the experts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeShare {
    /// The system's number of the node.
    pub id: u32,
    /// CPUs near it; empty where only a description is known.
    pub cpus: Vec<usize>,
    /// Its part (0 to 1) of every layer's experts, by number: the first node has the first ones.
    /// Neighbours stay together, because a large page has one owner.
    pub part: f64,
}

/// What each node with threads of these sets keeps, by its cores; nothing when there is only one.
pub(crate) fn node_shares(nodes: &[NodeCores], sets: &ThreadSets) -> Vec<NodeShare> {
    let sets = [&sets.prefill, &sets.decode];
    let has_threads = |node: &&NodeCores| {
        let near = |cpus: &[usize]| cpus.iter().any(|cpu| node.cpus.contains(cpu));
        node.cores > 0 && sets.iter().any(|set| set.cpus.is_empty() || near(&set.cpus))
    };
    let used: Vec<&NodeCores> = nodes.iter().filter(has_threads).collect();
    let threads = sets.iter().map(|set| set.threads as usize).max().unwrap_or(1);
    if used.len() < 2 || threads < used.len() {
        return Vec::new();
    }
    let cores: u32 = used.iter().map(|node| node.cores).sum();
    let share = |node: &NodeCores| NodeShare {
        id: node.id,
        cpus: node.cpus.clone(),
        part: f64::from(node.cores) / f64::from(cores),
    };
    used.into_iter().map(share).collect()
}

/// The shares in words; `None` without any.
pub(crate) fn in_words(shares: &[NodeShare]) -> Option<String> {
    let count = shares.len();
    let half = count == 2 && shares[0].part == 0.5;
    let part = if half { "half" } else { "part" };
    let said =
        || format!("{count} memory nodes: each computes its own {part} of the experts first");
    (count > 1).then(said)
}

#[cfg(test)]
mod tests {
    use super::super::threads::ThreadSet;
    use super::*;

    /// Nodes with so many cores, CPUs numbered through.
    fn nodes(cores: &[u32]) -> Vec<NodeCores> {
        let mut next = 0;
        let node = |(id, &cores): (usize, &u32)| {
            let first = next;
            next += cores as usize;
            NodeCores { id: id as u32, cores, cpus: (first..next).collect() }
        };
        cores.iter().enumerate().map(node).collect()
    }

    fn parts(cores: &[u32], threads: u32, cpus: &[usize]) -> Vec<(u32, f64)> {
        let sets = ThreadSets::both(ThreadSet { threads, cpus: cpus.to_vec() });
        node_shares(&nodes(cores), &sets).iter().map(|share| (share.id, share.part)).collect()
    }

    #[test]
    fn experts_are_divided_where_threads_sit_on_several_nodes() {
        assert_eq!(parts(&[4, 4], 8, &[]), [(0, 0.5), (1, 0.5)]);
        assert_eq!(parts(&[4, 4], 2, &[3, 4]), [(0, 0.5), (1, 0.5)]);
        assert_eq!(parts(&[4, 4], 4, &[4, 5, 6, 7]), [], "all on the second");
        assert_eq!(parts(&[4, 4], 1, &[]), [], "one thread");
        assert_eq!(parts(&[8], 8, &[]), [], "one node");
        assert_eq!(parts(&[], 8, &[]), [], "none shown");
        assert_eq!(parts(&[8, 0], 8, &[]), [], "memory without cores computes nothing");
        assert_eq!(parts(&[6, 0, 2], 8, &[]), [(0, 0.75), (2, 0.25)]);
    }

    #[test]
    fn people_are_told() {
        let of = |cores: &[u32]| {
            let sets = ThreadSets::both(ThreadSet::anywhere(8));
            in_words(&node_shares(&nodes(cores), &sets))
        };
        let two = "2 memory nodes: each computes its own half of the experts first";
        assert_eq!(of(&[4, 4]).as_deref(), Some(two));
        assert!(of(&[2, 2, 4]).is_some_and(|said| said.contains("its own part")));
        assert_eq!(of(&[8]), None);
    }
}
