//! Choices of CPU cores. Counts per cluster, not core numbers: cores of one cluster are alike.

use motley_machine::{CoreCluster, CoreRole, Machine};
use serde::{Deserialize, Serialize};

/// Cores taken from each cluster, in the machine's order (biggest first).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CoreSet {
    /// One number per cluster.
    pub per_cluster: Vec<u32>,
}

impl CoreSet {
    /// Cores in all: the number of threads.
    pub fn cores(&self) -> u32 {
        self.per_cluster.iter().sum()
    }

    /// Whether cores of cluster `index` are taken.
    pub(crate) fn uses(&self, index: usize) -> bool {
        self.per_cluster[index] > 0
    }

    /// Without its `count` smallest cores; `None` when nothing would be left.
    pub(crate) fn without_smallest(&self, count: u32) -> Option<Self> {
        let mut rest = self.clone();
        for _ in 0..count {
            let smallest = rest.per_cluster.iter().rposition(|cores| *cores > 0)?;
            rest.per_cluster[smallest] -= 1;
        }
        (rest.cores() > 0).then_some(rest)
    }
}

/// What a program may say about where its threads run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freedom {
    /// Bind threads to cores (Linux, Android, Windows).
    Affinity,
    /// Only their number; the system takes big cores first (macOS, iOS).
    Threads,
}

/// The cores a search chooses from.
#[derive(Debug, Clone, PartialEq)]
pub struct CorePool {
    /// Clusters from big to small.
    pub clusters: Vec<CoreCluster>,
    /// What may be chosen.
    pub freedom: Freedom,
}

/// A machine without described cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the machine describes no CPU cores; add a [[cluster]] to its file")]
pub struct NoCores;

impl CorePool {
    /// The cores of `machine`.
    pub fn of(machine: &Machine, freedom: Freedom) -> Result<Self, NoCores> {
        let clusters: Vec<_> = machine.clusters.iter().filter(|c| c.cores > 0).cloned().collect();
        if clusters.is_empty() { Err(NoCores) } else { Ok(Self { clusters, freedom }) }
    }

    /// Clusters a decode selection considers: all but efficiency cores (A2), unless there are
    /// only those.
    pub fn considered(&self) -> usize {
        let big = self.clusters.iter().filter(|c| c.role != CoreRole::Efficiency).count();
        if big > 0 { big } else { self.clusters.len() }
    }

    /// One core of the biggest cluster: where stage 1 begins (A2).
    pub fn one_big_core(&self) -> CoreSet {
        let mut set = CoreSet { per_cluster: vec![0; self.clusters.len()] };
        set.per_cluster[0] = 1;
        set
    }

    /// `set` and the biggest considered core it leaves out; `None` when it has them all.
    pub fn one_more(&self, set: &CoreSet) -> Option<CoreSet> {
        let considered = self.clusters.iter().take(self.considered());
        let mut slots = considered.zip(&set.per_cluster);
        let at = slots.position(|(cluster, taken)| *taken < cluster.cores)?;
        let mut more = set.clone();
        more.per_cluster[at] += 1;
        Some(more)
    }

    /// All cores that a selection considers: what prefill, bound by arithmetic, uses (A5).
    pub fn all_considered(&self) -> CoreSet {
        let count = self.considered();
        let cores = |(i, c): (usize, &CoreCluster)| if i < count { c.cores } else { 0 };
        CoreSet { per_cluster: self.clusters.iter().enumerate().map(cores).collect() }
    }

    /// `2 x A77 2.54 GHz + 1 x A55 2.05 GHz`.
    pub fn describe(&self, set: &CoreSet) -> String {
        let taken = self.clusters.iter().zip(&set.per_cluster).filter(|(_, cores)| **cores > 0);
        let part =
            |(c, cores): (&CoreCluster, &u32)| format!("{cores} x {} {:.2} GHz", c.name, c.max_ghz);
        taken.map(part).collect::<Vec<_>>().join(" + ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str) -> CorePool {
        CorePool::of(&motley_machine::find(name).unwrap(), Freedom::Affinity).unwrap()
    }

    #[test]
    fn cores_are_added_big_to_small_and_efficiency_cores_left_out() {
        let pool = pool("mate-40-pro");
        let mut set = pool.one_big_core();
        let mut path = vec![set.per_cluster.clone()];
        while let Some(more) = pool.one_more(&set) {
            path.push(more.per_cluster.clone());
            set = more;
        }
        assert_eq!(path, [[1, 0, 0], [1, 1, 0], [1, 2, 0], [1, 3, 0]]);
        assert_eq!(pool.all_considered(), set);
        assert_eq!(pool.describe(&set), "1 x A77 3.13 GHz + 3 x A77 2.54 GHz");
    }

    #[test]
    fn the_smallest_cores_go_first_and_one_stays() {
        let set = CoreSet { per_cluster: vec![1, 2] };
        assert_eq!(set.without_smallest(1).unwrap().per_cluster, [1, 1]);
        assert_eq!(set.without_smallest(2).unwrap().per_cluster, [1, 0]);
        assert_eq!(set.without_smallest(3), None);
    }
}
