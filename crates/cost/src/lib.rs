//! What work costs: linear models of compute and transfer, and what cores draw (H4, M1).
//!
//! Judgement: pure functions of descriptions and samples. Nothing here measures, reads a
//! clock or touches a file; a driver hands over the samples.
//!
//! Reading order:
//! * [`time`]: [`Nanos`], the one unit of time that crosses crates.
//! * [`compute`]: time of one expert on one unit for a number of tokens.
//! * [`transfer`]: time to move bytes over a link.
//! * [`exchange`]: time of rows that other hosts compute.
//! * [`power`]: A3, what a choice of CPU cores draws, without a meter.
//! * [`derive`](mod@derive): the models from a machine description and an expert's shape.
//! * [`parallel`]: one expert split over several units (G1).
//! * [`nnls`]: the non-negative least squares under every fit.
//! * [`fit`]: what a fit reports beside its model: residuals.
//! * [`kernels`]: how the CPU computes experts, as far as costs differ.
//! * [`calibration`]: a measured machine as TOML: costs with their errors and where from.
//! * [`statistics`]: medians and quantiles.
#![forbid(unsafe_code)]

pub mod calibration;
pub mod compute;
pub mod derive;
pub mod exchange;
pub mod fit;
pub mod kernels;
pub mod nnls;
pub mod parallel;
pub mod power;
pub mod statistics;
pub mod time;
pub mod transfer;

pub use calibration::{CalibrationError, CalibrationFile, ExpertCost, WeightLayout};
pub use compute::{ComputeCost, ComputeSample};
pub use derive::{Efficiency, ExpertShape};
pub use exchange::HostLink;
pub use fit::{Fit, FitError, Residuals};
pub use parallel::TensorParallel;
pub use power::PowerHeuristic;
pub use time::Nanos;
pub use transfer::{TransferCost, TransferSample};
