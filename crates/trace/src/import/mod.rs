//! Readers of other projects' routing traces, one file each.
//! Each is a [`VisitSource`](crate::VisitSource): it streams, it checks, it names the line.
//!
//! - [`bigmoe`]: `*.route.csv` of BigMoeOnEdge, with weights.
//! - [`waste`]: `trace_*.jsonl` of waste, expert ids only.

pub mod bigmoe;
pub mod waste;
