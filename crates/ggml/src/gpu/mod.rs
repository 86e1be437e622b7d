//! Experts on a GPU: slots in its memory, copies into them, rows through them. Hands
//! only: which expert deserves a slot and which rows go where is decided elsewhere, and
//! no thread is started here.
//!
//! ```text
//!   driver thread                compute thread            copy thread
//!   GpuBlock::of(block) ──────►  GpuUnit::prepare(rows)    CopyLane::fill(lease, bytes)
//!   GpuTask::scatter(block) ◄──  GpuTask::run(lane)        └► GpuExpert
//!
//!           lease(layer)          fill()                clone()
//!   free ───────────────► GpuLease ───────► GpuExpert ───────────► task, task …
//!    ▲                     │ exclusive        │ readable
//!    └─────── drop ────────┘◄─── last drop ───┘
//! ```
//!
//! A *slot* holds one expert: gate, up and down (or gate_up and down) and their biases
//! have the same index in one device tensor each, so that `MUL_MAT_ID` and `ADD_ID` see
//! a stack of experts (W3, N5). Rows are packed (`k' = 1, n' = rows`) and operations
//! between are cloned from llama.cpp's graph. There is one read-back per computation.
//!
//! Modules, in reading order:
//! * `device`: the devices, and the CPU as a stand-in.
//! * `shape`: what a slot holds, and how many fit.
//! * `unit`: the slots of one device and who has them.
//! * `host`: memory of this process that the device reaches quickly.
//! * `copy`: expert bytes into slots; `lane`: where tasks run.
//! * `block`: what units need of a block, copied; `template`: its operations.
//! * `piece`: the rows of one computation; `task`: some rows of a block, in pieces;
//!   `refused`: why a unit does not take them.

mod block;
mod copy;
pub(crate) mod device;
mod host;
mod lane;
mod piece;
mod refused;
mod shape;
mod task;
pub(crate) mod template;
mod unit;

pub use block::GpuBlock;
pub use copy::{CopyLane, FillError, FillReason};
pub use device::{GpuDevice, gpu_devices};
pub use lane::ComputeLane;
pub use piece::GpuRow;
pub use refused::Refused;
pub use task::GpuTask;
pub use unit::{GpuExpert, GpuLease, GpuOptions, GpuUnit, UnitError};
