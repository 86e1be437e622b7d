//! Pieces in the order in which threads take them: one line for all threads, or one for each memory
//! node, whose threads take its own first and then help the others. Who computes a piece changes no
//! bit of it.

use super::jobs::Job;
use crate::layout::nodes::Nodes;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The lines of one block.
pub(super) struct Lines<'n> {
    lines: Vec<Line>,
    nodes: Option<&'n Nodes>,
}

/// Pieces from `next` to `end`. In cache lines of its own: nodes do not wait for each other.
#[repr(align(128))]
struct Line {
    next: AtomicUsize,
    end: usize,
}

impl<'n> Lines<'n> {
    /// Of `jobs` over a layer of `experts`. With nodes, pieces at home on one are moved together,
    /// and stay in their order among themselves.
    pub(super) fn new(jobs: &mut [Job], experts: usize, nodes: Option<&'n Nodes>) -> Self {
        let line = |first, end| Line { next: AtomicUsize::new(first), end };
        let Some(some) = nodes else { return Self { lines: vec![line(0, jobs.len())], nodes } };
        let ends: Vec<_> = (0..some.count()).map(|node| some.end(node, experts)).collect();
        let found = |job: &Job| ends.iter().position(|&end| (job.expert as usize) < end);
        let home = |job: &Job| found(job).unwrap_or(ends.len() - 1);
        jobs.sort_by_key(home);
        let mut first = 0;
        let lines = (0..ends.len()).map(|node| {
            let end = jobs.partition_point(|job| home(job) <= node);
            line(std::mem::replace(&mut first, end), end)
        });
        Self { lines: lines.collect(), nodes }
    }

    /// Numbers of the pieces that this thread, the pool's `thread`th, takes; each is taken once.
    pub(super) fn taken_by(&self, thread: usize) -> impl Iterator<Item = usize> {
        let own = self.nodes.map_or(0, |nodes| nodes.here(thread));
        let lines = self.lines[own..].iter().chain(&self.lines[..own]);
        lines.flat_map(|line| std::iter::from_fn(|| line.take()))
    }
}

impl Line {
    fn take(&self) -> Option<usize> {
        let taken = self.next.fetch_add(1, Relaxed);
        (taken < self.end).then_some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::nodes::NodeShare;
    use crate::seam::block::MAX_MATRICES;
    use std::ptr::null_mut;

    /// (expert, rows), largest first.
    fn jobs() -> Vec<Job> {
        let job = |(expert, rows)| Job {
            expert,
            first: 0,
            rows,
            rearranges: false,
            weights: [null_mut(); MAX_MATRICES],
        };
        [(6, 9), (1, 7), (3, 7), (7, 4), (0, 2), (4, 1)].map(job).to_vec()
    }

    fn experts(jobs: &[Job], taken: impl Iterator<Item = usize>) -> Vec<u32> {
        taken.map(|job| jobs[job].expert).collect()
    }

    #[test]
    fn without_nodes_there_is_one_line_in_the_given_order() {
        let mut jobs = jobs();
        let lines = Lines::new(&mut jobs, 8, None);
        assert_eq!(experts(&jobs, lines.taken_by(1).take(2)), [6, 1]);
        assert_eq!(experts(&jobs, lines.taken_by(0)), [3, 7, 0, 4], "largest first, as it was");
        assert_eq!(lines.taken_by(1).count(), 0);
    }

    #[test]
    fn a_node_takes_its_own_and_then_helps() {
        let mut jobs = jobs();
        let share = NodeShare { id: 0, cpus: Vec::new(), part: 0.5 };
        // CPUs of no node: threads are on them by their numbers.
        let nodes = Nodes::new(vec![share.clone(), share]).unwrap();
        let lines = Lines::new(&mut jobs, 8, Some(&nodes));
        assert_eq!(experts(&jobs, lines.taken_by(1).take(2)), [6, 7], "4 to 7, largest first");
        assert_eq!(experts(&jobs, lines.taken_by(0).take(1)), [1], "0 to 3, largest first");
        assert_eq!(experts(&jobs, lines.taken_by(1)), [4, 3, 0], "the rest, its own before");
        assert_eq!(lines.taken_by(0).count(), 0);
    }
}
