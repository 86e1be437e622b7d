//! Judgement before a run: from a machine, a model and what was measured to settings, and to the
//! speed they should give. No clock, file, thread: a driver hands over everything known.
//!
//! Modules in reading order:
//! - [`decide`](mod@decide): facts and wishes in, one decision with its reasons out.
//! - [`headroom`]: what stays free of every memory.
//! - [`needs`]: what a model needs, in bytes.
//! - [`budget`]: M3, how one ceiling for memory divides.
//! - [`device_use`]: what GPUs are used for beside the CPU.
//! - [`placement`]: what each memory holds.
//! - [`cores`]: A1, A2, A4: which CPU cores decode.
//! - [`calibration`]: the costs a decision is made with.
//! - `measured`: those costs from what a driver measured.
//! - [`demand`]: what a model asks of a machine for one token.
//! - [`expert_costs`]: what one of its experts costs where.
//! - [`predict`]: how fast a placement should be, in terms (M1).
//! - [`price`]: what approximations cost, and which is the strongest that is accepted.
//! - [`quantisation`]: which of a model's quantisations a machine should have.
//! - [`kernels`]: how the CPU computes them.
//! - [`file`](mod@file): a decision as text.
//! - [`tiers`]: N2, N4, N5: static shapes.
//! - [`together`]: memory of several models on one machine.
//! - [`hosts`]: W9, which machine has which experts, and whether other machines pay.
//! - [`worker`]: memory of a machine that has experts and nothing else.
//! - `words`: numbers for people.

#![forbid(unsafe_code)]

pub mod budget;
pub mod calibration;
pub mod cores;
pub mod decide;
pub mod demand;
pub mod device_use;
pub mod expert_costs;
pub mod file;
pub mod headroom;
pub mod hosts;
pub mod kernels;
mod measured;
pub mod needs;
pub mod placement;
pub mod predict;
pub mod price;
pub mod quantisation;
pub mod tiers;
pub mod together;
pub mod worker;

pub use budget::{
    Budget, BudgetReason, DefaultBudget, MachineMemory, SessionShape, TooLittleMemory,
};
pub use calibration::{Calibration, CoresRate, KernelRate, PathRate, UnitRates};
pub use decide::asked::{Asked, CHUNKS, DevicesAsked, Goal, Loading, NamedDevice, Outputs};
pub use decide::decide;
pub use decide::decision::{Decision, DeviceShare};
pub use decide::error::DecideError;
pub use decide::facts::{Facts, GpuFact};
pub use decide::hosted::{HostedDecision, decide_hosted};
pub use demand::Demand;
pub use expert_costs::ExpertCosts;
pub use file::PlanError;
pub use kernels::{ExpertKernels, OfferedLayouts, TypeLayout};
pub use measured::MeasuredKernels;
pub use motley_machine::Regime;
pub use needs::ModelNeeds;
pub use placement::{Holding, Placement};
pub use predict::{Prediction, Resource, Term, Work};
