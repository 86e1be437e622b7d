//! What is measured without a model: synthetic experts on any pool or device, and copies to
//! a device. Times nothing itself.
//!
//! Modules, in reading order:
//! * `bench`: a stack of synthetic experts and blocks over them.
//! * `copy`: copies between this program's memory and a device's.
//! * `synthetic`: the values of weights and rows that are only measured.

mod bench;
mod copy;
mod synthetic;

pub use bench::{BenchBlock, BenchError, ExpertStack, StackSpec};
pub use copy::DeviceCopy;
