//! Judgement before a run: from a machine, a model and what was measured to settings, and to the
//! speed they should give. No clock, file, thread: a driver hands over everything known.
//!
//! Modules in reading order:
//! - [`budget`]: M3, how one ceiling for memory divides.
//! - [`cores`]: A1, A2, A4: which CPU cores decode.
//! - [`calibration`]: the costs a plan is made with.
//! - `measured`: those costs from what a driver measured.
//! - [`demand`]: what a model asks of a machine for one token.
//! - [`expert_costs`]: what one of its experts costs where.
//! - [`device_use`]: what a GPU is used for beside the CPU.
//! - [`placement`]: what goes where.
//! - [`predict`]: how fast that should be, in terms (M1).
//! - [`mod@plan`]: all of it together.
//! - [`file`](mod@file): a plan as text.
//! - [`tiers`]: N2, N4, N5, W4, W6: static shapes, blocks, and sharing between units.

#![forbid(unsafe_code)]

pub mod budget;
pub mod calibration;
pub mod cores;
pub mod demand;
pub mod device_use;
pub mod expert_costs;
pub mod file;
mod measured;
pub mod placement;
pub mod plan;
pub mod predict;
pub mod tiers;

pub use budget::{
    Budget, BudgetReason, DefaultBudget, MachineMemory, SessionShape, TooLittleMemory,
};
pub use calibration::{Calibration, CoresRate, KernelRate, PathRate, UnitRates};
pub use demand::Demand;
pub use expert_costs::ExpertCosts;
pub use file::PlanError;
pub use motley_machine::Regime;
pub use placement::Placement;
pub use plan::{CorePlan, Goal, Inputs, Plan, TierPlan, plan};
pub use predict::{Prediction, Resource, Term, Work};
