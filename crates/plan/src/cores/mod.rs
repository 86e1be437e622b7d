//! Which CPU cores decode (A1): the cheapest choice that is at most ε slower than the fastest.
//! State machines that say what to measure next; whoever drives them measures.
//!
//! ```text
//! next_to_measure() ── Some(set) ──► driver measures ──► report(set's speed, energy)
//!        ▲                                                        │
//!        └────────────────────────────────────────────────────────┘   None: selection()
//! ```
//!
//! - [`set`]: choices of cores, and where they come from.
//! - `outcome`: what was measured, and what became of each choice.
//! - [`objective`]: what is minimised, and what stays allowed.
//! - [`tree`]: A4, the candidates that grow from the fastest choice.
//! - [`aecs`]: A2 and A4, a handful of measurements.
//! - [`exhaustive`]: every choice, for comparison.
//! - [`threads`]: a choice as threads and CPU numbers.
//! - [`nodes`]: what each memory node keeps of the experts.

pub mod aecs;
pub mod exhaustive;
pub mod nodes;
pub mod objective;
mod outcome;
pub mod set;
pub mod threads;
pub mod tree;

pub use aecs::Aecs;
pub use exhaustive::{Exhaustive, TooManySets};
pub use nodes::NodeShare;
pub use objective::Objective;
pub use outcome::{Measurement, Selection, Tried, Verdict};
pub use set::{CorePool, CoreSet, Freedom, NoCores};
pub use threads::{MachineCores, NodeCores, ThreadSet, ThreadSets};

/// A search that a driver carries out.
pub trait CoreSearch {
    /// The choice to measure now; `None` when the search is over. Never the same twice.
    fn next_to_measure(&self) -> Option<&CoreSet>;

    /// The measurement of [`Self::next_to_measure`]; ignored when the search is over.
    fn report(&mut self, measurement: Measurement);

    /// What was found; `None` while the search goes on.
    fn selection(&self) -> Option<Selection>;
}

/// Carries a search out with a function that measures.
pub fn carry_out(
    search: &mut dyn CoreSearch,
    mut measure: impl FnMut(&CoreSet) -> Measurement,
) -> Option<Selection> {
    while let Some(set) = search.next_to_measure() {
        let measured = measure(set);
        search.report(measured);
    }
    search.selection()
}
