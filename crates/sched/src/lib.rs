//! The mind of Motley: which expert is computed where, what is loaded when, what stays.
//!
//! Judgement only: no clock, thread, file, byte or randomness. Time is an argument, actions are
//! answers, and the same events always give the same actions. The simulator and the engine drive
//! the same [`Scheduler`].
//!
//! Reading order:
//! - [`work`]: one layer's work, the lanes it can run on, and the plan a strategy writes.
//! - [`regime`]: from a machine and a model to the costs of its regime.
//! - [`timeline`]: H1, the timelines of units and links filled before anything runs.
//! - [`balance`]: the equations G2, G3 and G5.
//! - [`strategy`]: who computes; nine strategies behind one trait.
//! - [`prefetch`]: what to fetch early; six prefetchers behind one trait.
//! - [`cache`]: what stays; slots, leases and replacement policies.
//! - [`shares`]: how a device's slots divide among layers.
//! - [`resize`]: M3, how many slots while the machine's memory comes and goes.
//! - [`contention`]: how many threads decode while others want the cores too.
//! - [`scheduler`]: the state machine, `on_routed / on_loaded / on_computed` to `poll_action`.
//! - [`rules`]: who decides what in which memory, and the defaults of every regime.
//! - [`setup`]: all of it for one run, as one value.
//! - [`named`]: choices people write by name; [`by_memory`]: one for each memory.
//! - [`spans`]: what ran when, as both drivers record it.
//! - [`mod@overlap`]: how much of it ran side by side.
//! - [`skip`]: weak experts that would have to be read, left out.
//! - [`selective`]: W7, routed experts or all of them.
//! - [`graphs`]: H1 for a device whose graphs are compiled ahead.
//! - [`remote`]: W9 and W10, which machine computes the rows of each expert.
//! - [`overflow`]: N3, tokens past an expert's capacity.
//! - [`speculate`]: which tokens are computed before they are known, and how many.
//! - [`batch`]: M10, which sequences share the next step, and whose KV cells stay.
//! - [`admission`]: which requests may be read and prepared, before they are in a batch.
//! - [`models`]: which models of a server are in memory.

#![forbid(unsafe_code)]

pub mod admission;
pub mod balance;
pub mod batch;
pub mod by_memory;
pub mod cache;
pub mod contention;
pub mod graphs;
pub mod models;
pub mod named;
pub mod overflow;
pub mod overlap;
pub mod prefetch;
pub mod regime;
pub mod remote;
pub mod resize;
pub mod rules;
pub mod scheduler;
pub mod selective;
pub mod setup;
pub mod shares;
pub mod skip;
pub mod spans;
pub mod speculate;
pub mod strategy;
pub mod timeline;
pub mod work;

pub use by_memory::{ByMemory, Memories, NotThere};
pub use named::{Named, UnknownName};
pub use rules::{MemoryRules, Rules};
pub use scheduler::{
    Action, AtOnce, LoadLost, Place, Purpose, Routing, Scheduler, SchedulerLimits, SchedulerParts,
    TierParts,
};
pub use setup::{SchedulerSetup, TierSetup};
pub use skip::{LeftOut, RoutedPairs, SkipCold};
pub use strategy::Strategy;
pub use work::{
    Costs, Homes, LayerPlan, LayerWork, Layout, MAX_TIERS, Phase, Presence, Share, Tier, TierPlan,
    Unit, Whereabouts, WorkItem,
};
