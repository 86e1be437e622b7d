//! One compiled graph, the rows in it, and what a launch of it takes.

use crate::clock::now;
use motley_npu::{Graph, GraphError, GraphSpec, GroupRows};
use motley_plan::tiers::Group;
use motley_sched::graphs::GraphCost;
use std::time::Duration;

/// One graph with its rows.
pub(super) struct LoadedGroup {
    pub(super) group: Group,
    graph: Graph,
    pub(super) rows: GroupRows,
    /// (token, slot) of each row pushed, and where it comes out.
    pub(super) targets: Vec<(usize, usize, usize)>,
    pub(super) output: Vec<f32>,
    pub(super) took: Duration,
    /// The fastest launch so far: what is asked of it never changes.
    pub(super) us: Option<f64>,
}

impl LoadedGroup {
    pub(super) fn new(group: Group, graph: Graph, spec: &GraphSpec) -> Self {
        let (targets, output) = (Vec::new(), Vec::new());
        let (rows, took) = (GroupRows::new(spec), Duration::ZERO);
        Self { group, graph, rows, targets, output, took, us: None }
    }

    /// What it costs, once that is known.
    pub(super) fn cost(&self) -> Option<GraphCost<'_>> {
        let Group { experts, capacity } = &self.group;
        Some(GraphCost { experts, capacity: *capacity, us: self.us? })
    }

    /// Computes all rows.
    pub(super) fn run(&mut self) -> Result<(), GraphError> {
        self.graph.run(&self.rows, &mut self.output)
    }

    /// A launch has taken so long.
    pub(super) fn ran(&mut self, took: Duration) {
        self.took = took;
        let us = took.as_secs_f64() * 1e6;
        self.us = Some(self.us.map_or(us, |before| before.min(us)));
    }

    /// Runs it on zeros, twice: the first time a provider may still prepare something.
    pub(super) fn measure(&mut self, launch: Duration) -> Result<f64, GraphError> {
        self.run()?;
        let begun = now();
        self.run()?;
        self.ran(begun.elapsed() + launch);
        Ok(self.us.unwrap_or(f64::INFINITY))
    }
}
