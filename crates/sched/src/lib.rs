//! The mind of Motley: which expert is computed where, what is loaded when, what stays.
//!
//! Judgement only: no clock, thread, file, byte or randomness. Time is an argument, actions are
//! answers, and the same events always give the same actions. The simulator and the engine drive
//! the same [`Scheduler`].
//!
//! Reading order:
//! - [`work`]: one layer's work, the lanes it can run on, and the plan a strategy writes.
//! - [`regime`]: from a machine and a model to the costs of its regime.
//! - [`timeline`]: H1, three timelines filled before anything runs.
//! - [`bound`]: what no schedule can beat.
//! - [`balance`]: the equations G2, G3 and G5.
//! - [`strategy`]: who computes; nine strategies behind one trait.
//! - [`prefetch`]: what to fetch early; six prefetchers behind one trait.
//! - [`cache`]: what stays; slots, leases and replacement policies.
//! - [`shares`]: how a device's slots divide among layers.
//! - [`breath`]: M3, how many slots while the machine's memory comes and goes.
//! - [`crowding`]: how many threads decode while others want the cores too.
//! - [`scheduler`]: the state machine, `on_routed / on_loaded / on_computed` to `poll_action`.
//! - [`hybrid`]: all of it for a device beside the CPU, as one value.
//! - [`spans`]: what ran when, as both drivers record it.
//! - [`mod@overlap`]: how much of it ran side by side.
//! - [`selective`]: W7, routed experts or all of them.
//! - [`overflow`]: N3, tokens past an expert's capacity.
//! - [`batch`]: M10, which sequences share the next step, and whose KV cells stay.

#![forbid(unsafe_code)]

pub mod balance;
pub mod batch;
pub mod bound;
pub mod breath;
pub mod cache;
pub mod crowding;
pub mod hybrid;
pub mod overflow;
pub mod overlap;
pub mod prefetch;
pub mod regime;
pub mod scheduler;
pub mod selective;
pub mod shares;
pub mod spans;
pub mod strategy;
pub mod timeline;
pub mod work;

pub use scheduler::{
    Action, AtOnce, Limits, LoadLost, Place, Purpose, Routing, Scheduler, SchedulerParts,
};
pub use strategy::Strategy;
pub use work::{
    Costs, Homes, LayerPlan, LayerWork, Layout, Phase, Presence, Share, Unit, WorkItem,
};
