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
//! - [`objective`]: what is minimised, and what stays allowed.
//! - [`tree`]: A4, the candidates that grow from the fastest choice.
//! - [`aecs`]: A2 and A4, a handful of measurements.
//! - [`exhaustive`]: every choice, for comparison.
//! - [`threads`]: a choice as threads and CPU numbers.

pub mod aecs;
pub mod exhaustive;
pub mod objective;
pub mod set;
pub mod threads;
pub mod tree;

pub use aecs::Aecs;
pub use exhaustive::{Exhaustive, TooManySets};
pub use objective::{Objective, Verdict};
pub use set::{CorePool, CoreSet, Freedom, NoCores};
pub use threads::{MachineCores, ThreadSet, ThreadSets};

/// What decoding on one choice of cores gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// Speed; what is not finite or not above zero counts as standing still.
    pub tokens_per_s: f64,
    /// Measured energy, where there is a meter.
    pub joules_per_token: Option<f64>,
}

/// One measured choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Tried {
    /// The cores.
    pub set: CoreSet,
    /// What was measured.
    pub measured: Measurement,
    /// `h(I)` (A3) in watts.
    pub heuristic_w: f64,
}

/// The end of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// The cheapest choice that is fast enough.
    pub chosen: CoreSet,
    /// The fastest choice, which sets the bar.
    pub fastest: CoreSet,
    /// Candidates the choice was made from, in the order of measuring, each with its verdict.
    pub candidates: Vec<(Tried, Verdict)>,
    /// Choices measured in all.
    pub measured: usize,
    /// Whether measured energy took part; otherwise the heuristic alone decided.
    pub energy_measured: bool,
}

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
