//! Memory nodes (NUMA) that divide the experts: where each expert's home is, which node a thread
//! runs on, and memory that comes from a node. Who gets how much is the caller's choice.

use crate::system::nodes::{current_cpu, prefer};
use std::ffi::c_void;
use std::io;

/// A node's part of every layer's experts.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeShare {
    /// The system's number of the node.
    pub id: u32,
    /// CPUs near it.
    pub cpus: Vec<usize>,
    /// 0 to 1; the first node has the first experts.
    pub part: f64,
}

/// Two nodes or more, by their places in the list they were made from.
#[derive(Debug)]
pub struct Nodes(Vec<NodeShare>);

impl Nodes {
    /// `None` when there is nothing to divide.
    pub fn new(shares: Vec<NodeShare>) -> Option<Self> {
        (shares.len() > 1).then_some(Self(shares))
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The first of `experts` that is not at home on `node` nor on one before it.
    pub(crate) fn end(&self, node: usize, experts: usize) -> usize {
        if node + 1 >= self.count() {
            return experts;
        }
        let part: f64 = self.0[..=node].iter().map(|share| share.part).sum();
        ((part * experts as f64).round() as usize).min(experts)
    }

    /// The node whose CPUs this thread runs on now. Threads are not bound: the system keeps them
    /// near their memory, and who is moved takes other experts from the next block on. Those
    /// elsewhere are divided by `number`.
    pub(crate) fn here(&self, number: usize) -> usize {
        let of = |cpu: usize| self.0.iter().position(|share| share.cpus.contains(&cpu));
        current_cpu().and_then(of).unwrap_or(number % self.count())
    }

    /// Has the system take `bytes` of this process's memory from `node` where it can, from the
    /// first touch on. Pages that reach beyond are left out.
    pub(crate) fn prefer(&self, node: usize, start: *mut c_void, bytes: usize) -> io::Result<()> {
        prefer(self.0[node].id, start, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(parts: &[f64]) -> Option<Nodes> {
        let share = |&part: &f64| NodeShare { id: 0, cpus: Vec::new(), part };
        Nodes::new(parts.iter().map(share).collect())
    }

    #[test]
    fn every_expert_has_one_home() {
        let ends = |parts: &[f64], experts| {
            let nodes = nodes(parts).unwrap();
            (0..parts.len()).map(|node| nodes.end(node, experts)).collect::<Vec<_>>()
        };
        assert_eq!(ends(&[0.5, 0.5], 128), [64, 128]);
        assert_eq!(ends(&[0.5, 0.5], 5), [3, 5]);
        assert_eq!(ends(&[0.1; 10], 8).last(), Some(&8), "tenths do not add up to one");
        assert_eq!(ends(&[0.75, 0.25], 1), [1, 1]);
        assert!(nodes(&[1.0]).is_none() && nodes(&[]).is_none(), "nothing to divide");
    }

    #[test]
    fn a_thread_is_where_its_cpu_is() {
        let share = |cpus: Vec<usize>| NodeShare { id: 0, cpus, part: 0.5 };
        let second = Nodes::new(vec![share(Vec::new()), share((0..4096).collect())]).unwrap();
        assert_eq!(second.here(0), 1);
        let unknown = nodes(&[0.5, 0.5]).unwrap();
        assert_eq!([0, 1, 2].map(|thread| unknown.here(thread)), [0, 1, 0]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_is_taken_from_its_node() {
        let mut memory = vec![0_u8; 1 << 16];
        let nodes = nodes(&[0.5, 0.5]).unwrap();
        match nodes.prefer(0, memory.as_mut_ptr().cast(), memory.len()) {
            Ok(()) => {
                let maps = std::fs::read_to_string("/proc/self/numa_maps").unwrap();
                assert!(maps.lines().any(|line| line.contains("prefer")), "{maps}");
            }
            // A kernel without nodes, or a container that may not bind.
            Err(error) => {
                assert!(
                    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)),
                    "{error}"
                );
            }
        }
    }

    #[test]
    fn a_node_that_is_not_there_is_an_error() {
        let share = |id| NodeShare { id, cpus: Vec::new(), part: 0.5 };
        let nodes = Nodes::new(vec![share(1 << 20), share(1000)]).unwrap();
        let mut memory = vec![0_u8; 1 << 16];
        for node in [0, 1] {
            assert!(nodes.prefer(node, memory.as_mut_ptr().cast(), memory.len()).is_err());
        }
    }
}
