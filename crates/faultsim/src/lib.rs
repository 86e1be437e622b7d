//! `motley-faultsim`: the engine's own parts in virtual time, under one seed, with faults. Not the
//! simulator of machines (`sim`): nothing here predicts a speed.
//!
//! ```text
//!  clients ──► Admission ──► Door ──► Supervised worker and planner   the engine's, unchanged
//!     ▲                      │ Compute
//!     │                      ▼
//!     │                 FakeModel: the next token is a hash, the cache is checked
//!     │                      │ ExpertBlocks
//!     │                      ▼
//!     │                 Machine: board, scheduler              the engine's, unchanged
//!     │                      │ and arenas, leases, read queue  the store's, unchanged
//!     │                      │ Disk
//!  ┌──┴──────────────────────┴──────────────────────────────┐
//!  │ Events: one queue of what happens when, one clock, one │
//!  │ seed that chooses latencies, orders and faults         │
//!  └────────────────────────────────────────────────────────┘
//! ```
//!
//! Everything runs on one thread. When the worker computes or waits for bytes, the event queue
//! moves on: clients come, read, stall and leave, reads end in an order the seed chose, memory
//! shrinks and grows. A seed therefore replays exactly.
//!
//! Two oracles judge a run:
//! * **Right or an error.** Every answer is the one a run without faults gives (`oracle`), or ends
//!   with an error, and errors come only when a fault was injected. Bytes are checked on use, and
//!   rows against the cells that changes of the cache have left (`model`).
//! * **Progress.** Every request ends within [`DEADLINE`] of virtual time; the worker never spins;
//!   in the end nothing is held: no slot, no cell beyond the kept prefixes, nobody waits.
//!
//! Modules, in reading order:
//! * [`plan`], [`machine_plan`]: what a seed chooses. [`world`]: one seed, run and judged.
//! * `clients`: who asks; `front`: how they are let in; `listening`: how they read. `oracle`: what
//!   they must be told.
//! * [`model`]: a model whose answers are known, and its cache.
//! * [`blocks`]: what it asks of expert bytes; `machine`: the drive loop over disk, memory and
//!   devices; `memory`: where bytes lie. [`disk`]: files of known bytes that fail.
//! * `events`: what happens when; `counts`: how often. [`report`]: many seeds.

#![forbid(unsafe_code)]

pub mod blocks;
mod clients;
mod counts;
pub mod disk;
mod events;
mod front;
pub mod hash;
mod listening;
mod machine;
pub mod machine_plan;
mod memory;
pub mod model;
mod oracle;
pub mod plan;
pub mod report;
pub mod world;

pub use counts::Counts;
pub use plan::{DEADLINE, Plan};
pub use report::Report;
pub use world::{Outcome, run};
